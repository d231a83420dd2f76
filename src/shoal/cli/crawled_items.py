"""crawl -o: writes the items of a crawl to a file when it is over."""

from __future__ import annotations

import os
from pathlib import Path

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.config import Settings
from shoal.errors import ConfigError
from shoal.export import export, format_of, require
from shoal.fleet.summary import Summary
from shoal.insight.figures import counted
from shoal.results import STREAM_SCHEMES, results_at
from shoal.runtime.eventloop import run


def check_output(output: Path, settings: Settings) -> None:
    """Raise ConfigError if the file could not be written: before hours of crawling, not after.
    It does not create the file."""
    require(format_of(output))
    if settings.results.partition(":")[0] in STREAM_SCHEMES:
        raise ConfigError("-o cannot read items from a stream: it leads to another store")
    if output.exists() and not output.is_file():
        raise ConfigError(f"{output}: not a regular file")
    folder = Path(os.path.realpath(output)).parent
    if not folder.is_dir():
        raise ConfigError(f"{output}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{output}: the folder {folder} is not writable")


def write_items(output: Path, settings: Settings, summary: Summary) -> None:
    """Write the items of a crawl, and print how many there are. If the crawl stopped early, these
    are the items so far: the same command continues it and writes the file again."""
    count = run(_write(output, settings, summary))
    so_far = "" if summary.finished else f" so far: {summary.stats.crawl} is not finished"
    display.say(f"{counted(count, 'item')} in {output}{so_far}", err=True)


async def _write(output: Path, settings: Settings, summary: Summary) -> int:
    async with results_at(settings.results) as results:
        with bars("items", sum(summary.items.values())) as watch:
            return await export(
                results, summary.stats.crawl, output, format_of(output), progress=watch
            )
