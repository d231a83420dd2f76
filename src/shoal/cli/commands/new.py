"""shoal new: writes a first spider."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.workbench.first_spider import write_first_spider

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write: shop.py.")]
Url = Annotated[str | None, typer.Option(help="The URL where the spider starts.")]
Name = Annotated[
    str | None, typer.Option(help="The name of its class. [default: from the file's name]")
]


@examples("shoal new shop.py --url https://shop.example/catalog")
def new(file: File, url: Url = None, name: Name = None) -> None:
    """Write a first spider that runs as it is.

    It reads the title of each page of one host, and follows its links. An existing file is never
    overwritten.
    """
    write_first_spider(file, url, name)
    display.say(f"{file} is written")
    target = shlex.quote(str(file))
    display.say(f"to try one page: shoal try {target}")
    display.say(f"to find mistakes: shoal check {target}")
    display.say(f"to crawl: shoal crawl {target} --max-pages 20")
