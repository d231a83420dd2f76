"""The commands and their modules. A module is loaded when its command is used: loading all of them
takes longer than most commands do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from shoal.cli.help import HelpfulCommand

COMMANDS = {
    "crawl": "crawl:crawl",
    "new": "new:new",
    "try": "trying:try_",
    "shell": "shell:shell",
    "check": "check:check",
    "spiders": "spiders:spiders",
    "worker": "worker:worker",
    "autoscale": "autoscale:autoscale",
    "seed": "seed:seed",
    "feed": "feed:feed",
    "serve": "serve:serve",
    "schedule": "schedule:app",
    "alerts": "alerts:app",
    "status": "status:status",
    "advise": "advise:advise",
    "explain": "explain:explain",
    "dead": "dead:app",
    "rejected": "rejected:app",
    "pause": "control:pause",
    "resume": "control:resume",
    "cancel": "control:cancel",
    "export": "export:export",
    "diff": "diff:diff",
    "merge": "merge:merge",
    "results": "results:app",
    "reparse": "reparse:reparse",
    "drain": "drain:drain",
    "proxies": "proxies:app",
    "sessions": "sessions:app",
    "scrapy": "scrapy:app",
    "demo": "demo:demo",
}
"""The commands in the order in which help shows them, each with its module in `shoal.cli.commands`
and the command or group of commands in it."""


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _OnDemand()


class _OnDemand(Mapping[str, Any]):
    """The commands by name, as typer expects them."""

    def __getitem__(self, name: str) -> Any:
        place, _, what = COMMANDS[name].partition(":")
        found = getattr(import_module(f"shoal.cli.commands.{place}"), what)
        alone = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            for command in found.registered_commands:
                command.cls = HelpfulCommand
            alone.add_typer(found, name=name)
        else:
            alone.command(name, cls=HelpfulCommand)(found)
        return get_group(alone).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)
