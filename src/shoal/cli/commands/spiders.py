"""shoal spiders: lists spiders."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag
from shoal.workbench.checking import spiders_at
from shoal.workbench.listing import COLUMNS, listed, row

Places = Annotated[
    list[str] | None,
    typer.Argument(metavar="PLACE", help="A folder, a file, or a module. [default: this folder]"),
]


@examples("shoal spiders", "shoal spiders shops/ more.py")
def spiders(places: Places = None, json: JsonFlag = False) -> None:
    """List the spiders of a folder, a file or a module.

    Files that define a class are imported, as `shoal crawl` does. If one cannot be imported, the
    reason is printed, and the exit code is 1.
    """
    found = spiders_at(places or [])
    spiders_here = [listed(each) for each in found.spiders]
    if json:
        faults = msgspec.to_builtins(found.faults)
        display.print_json({"spiders": msgspec.to_builtins(spiders_here), "faults": faults})
    else:
        if spiders_here:
            display.print_folded(COLUMNS, map(row, spiders_here))
        elif not found.faults:
            display.say("no spiders here: shoal new shop.py writes a first one")
        for fault in found.faults:
            why = fault.message
            display.say(why if why.startswith(fault.place) else f"{fault.place}: {why}", err=True)
    raise typer.Exit(1 if found.faults else 0)
