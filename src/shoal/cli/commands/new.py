"""shoal new: a first spider."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.workbench.first_spider import write_first_spider

File = Annotated[Path, typer.Argument(metavar="FILE", help="Where to: shop.py.")]
Url = Annotated[str | None, typer.Option(help="Where the spider starts.")]
Name = Annotated[
    str | None, typer.Option(help="What its class is called. [default: after the file]")
]


@examples("shoal new shop.py --url https://shop.example/catalog")
def new(file: File, url: Url = None, name: Name = None) -> None:
    """Write a first spider, which runs as it is.

    It reads the title of each page of one host, and follows its links. A file that is there is
    never overwritten.
    """
    write_first_spider(file, url, name)
    display.say(f"{file} is written")
    target = shlex.quote(str(file))
    display.say(f"one page of it: shoal try {target}")
    display.say(f"what is wrong with it: shoal check {target}")
    display.say(f"all of it: shoal crawl {target} --max-pages 20")
