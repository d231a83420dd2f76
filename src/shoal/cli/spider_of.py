"""Finds the spider for a command on a crawl that has run before."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.errors import ConfigError, UnknownCrawl
from shoal.results.port import RunNote

SpiderTarget = Annotated[
    str | None,
    typer.Option(
        "--spider", metavar="TARGET", help="As for `shoal crawl`. [default: that of the last run]"
    ),
]


def targets_of(crawl: str, given: str | None, note: RunNote | None, results: str) -> list[str]:
    """The target to run. It is only read from a local file: others may write to a database."""
    if given is not None:
        return [given]
    if note is None:
        raise UnknownCrawl(crawl)
    if not note.targets:
        raise ConfigError(f"'{crawl}' was run from Python: name its spider with --spider")
    if not results.startswith("sqlite:"):
        shown = ascii(" ".join(note.targets))
        raise ConfigError(f"name the spider with --spider (the last run of '{crawl}' had {shown})")
    return note.targets
