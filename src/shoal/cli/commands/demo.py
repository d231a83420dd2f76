"""shoal demo: a self-contained tour."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import urljoin

import msgspec
import typer

from shoal import config
from shoal.cli import display
from shoal.cli.commands.crawl import run_and_show
from shoal.cli.commands.explain import ask, show_explanation
from shoal.cli.commands.trying import show as show_tried
from shoal.cli.examples import examples
from shoal.config import Settings
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.demo.spider import URLS_VARIABLE, ShopSpider
from shoal.fleet import target
from shoal.fleet.stores import stores_at
from shoal.runtime.eventloop import run
from shoal.spider.own_settings import settings_of
from shoal.workbench.wanted_page import try_from_site

ITEMS_SHOWN = 8
STORE = "sqlite:///shoal-demo.db"
TARGET = "shoal.demo.spider:ShopSpider"
PAGE, HANDLER = "/product/1", "product"

Workers = Annotated[int, typer.Option(min=1, help="How many worker processes.")]
Hosts = Annotated[int, typer.Option(min=1, max=20, help="How many shops to serve.")]
Products = Annotated[int, typer.Option(min=1, help="Products per shop.")]
Rate = Annotated[str, typer.Option(help="Requests per shop, for all workers together.")]


@examples("shoal demo", "shoal demo --workers 8 --products 1000 --rate none")
def demo(
    workers: Workers = 3, hosts: Hosts = 4, products: Products = 100, rate: Rate = "20/s"
) -> None:
    """Take a tour: a fleet crawls shops made up here.

    It serves some shops on this machine, crawls them, and shows their items. They have everything
    that makes crawling hard: products at many addresses, pages that fail at first, pages that are
    gone, broken pages, and areas that robots.txt forbids. The results stay in shoal-demo.db for you
    to explore.
    """
    options = {"workers": workers, "rate": rate, "allow_private": True}
    options |= {"frontier": STORE, "results": STORE}
    settings = config.load(spider=settings_of(ShopSpider), options=options)
    with _shops(hosts, products) as urls:
        display.say(f"{hosts} shops are open, the first at {urls[0]}")
        display.say("Some of their products are broken: expect a few errors.")
        os.environ[URLS_VARIABLE] = ",".join(urls)
        # The shops end with this command, so the crawl cannot be continued.
        run_and_show(ShopSpider, settings, [TARGET], fresh=True, again=None, json=False)
        _show_items(run(_items(settings)))
        display.say("Broken products are dead and forbidden pages dropped, as they should be.")
        _show_one_page(settings, urljoin(urls[0], PAGE))


def _show_one_page(settings: Settings, url: str) -> None:
    """Show the tools for writing a spider: try and explain one page of the shop."""
    display.say("")
    display.say(
        f"What does the spider make of one page? shoal try {TARGET} {url} --handler {HANDLER}"
    )
    spider = target.create(ShopSpider)
    task = Task(url=url, job_type=HANDLER)
    show_tried(*run(try_from_site(spider, settings, task)))
    stores = f"--frontier {STORE} --results {STORE}"
    display.say("")
    display.say(f"What became of it? shoal explain {ShopSpider.name} {url} {stores}")
    show_explanation(run(ask(settings, ShopSpider.name, url)))


@contextmanager
def _shops(hosts: int, products: int) -> Iterator[list[str]]:
    command = [sys.executable, "-m", "shoal.demo.shop"]
    command += ["--hosts", str(hosts), "--products", str(products), "--latency", "0.02"]
    # In a process of its own: the shops must not share a core with the progress line.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:  # noqa: S603
        try:
            assert server.stdout is not None  # noqa: S101 - we asked for a pipe
            yield msgspec.json.decode(server.stdout.readline(), type=list[str])
        finally:
            server.terminate()


async def _items(settings: Settings) -> list[StoredItem]:
    found = []
    async with stores_at(settings, archive=False) as stores:
        async for item in stores.results.items(ShopSpider.name):
            found.append(item)
            if len(found) == ITEMS_SHOWN:
                break
    return found


def _show_items(items: list[StoredItem]) -> None:
    rows = [(item.key, item.data.decode()) for item in items]
    display.out().print(display.facts("the first items", rows))
