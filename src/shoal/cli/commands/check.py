"""shoal check: finds mistakes before a crawl does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag
from shoal.config import CONFIG_FILE
from shoal.insight.figures import counted
from shoal.runtime.eventloop import run
from shoal.workbench.checking import Checked
from shoal.workbench.checking import check as look

Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET", help="As for `shoal crawl`, or a folder. [default: this folder]"
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Contact no servers.")]


@examples("shoal check", "shoal check shop.py --offline")
def check(targets: Targets = None, offline: Offline = False, json: JsonFlag = False) -> None:
    """Find what is wrong with spiders and shoal.toml.

    It looks for missing handlers, misspelt settings, wrong values, hooks with wrong parameters and
    bad start URLs; in shoal.toml, it also checks schedules, feeds and alerts. It tries to reach the
    servers that they name. Nothing is crawled.

    Exit codes: 0 nothing was found; 2 something was.
    """
    checked = run(look(targets or [], offline=offline))
    if json:
        display.print_json(msgspec.to_builtins(checked))
    else:
        _show(checked)
    raise typer.Exit(2 if checked.findings else 0)


def _show(checked: Checked) -> None:
    for finding in checked.findings:
        display.say(finding.text)
    looked = [counted(len(checked.spiders), "spider")]
    if Path(CONFIG_FILE).exists():
        looked.append(CONFIG_FILE)
    what = counted(len(checked.findings), "finding") if checked.findings else "nothing is wrong"
    display.say(f"{' and '.join(looked)}: {what}")
