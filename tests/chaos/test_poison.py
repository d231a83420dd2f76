"""Pages that kill their worker, and handlers that raise what no handler should raise."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.links import numbered_pages
from support.processes import Folder
from support.rarely import first_then_rare
from support.sites import Site, serving

PAGES = 40
POISON = 7

SPIDER = """
import asyncio, os, signal, sys
from shoal import Spider

class Fragile(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True

    def parse(self, page):
        if page.url.endswith("/{poison}"):
            {harm}
        yield {{"url": page.url}}
        yield from page.follow_all("a")
"""


def crawl_with(folder: Folder, site: Site, harm: str, *options: str) -> list[dict[str, str]]:
    """Crawl a site with one harmful page. Returns the dead tasks."""
    folder.write("fragile.py", SPIDER.format(url=site.url, poison=POISON, harm=harm))
    ended = folder.shoal("crawl", "fragile.py", *options)
    assert ended.code == 3, ended
    dead: list[dict[str, str]] = folder.shoal("dead", "list", "fragile", "--json").json()
    return dead


@pytest.mark.parametrize(
    "harm", first_then_rare("os.kill(os.getpid(), signal.SIGKILL)", "os._exit(7)")
)
def test_a_page_that_kills_its_worker_ends_alone(tmp_path: Path, harm: str) -> None:
    folder = Folder(tmp_path)
    with serving(Site(numbered_pages(PAGES))) as site:
        (dead,) = crawl_with(folder, site, harm, "--workers", "2")
        assert dead["url"] == f"{site.url}{POISON}"
    assert dead["reason"] == "poison: 5 workers died with it"
    assert len(folder.export("fragile")) == PAGES


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ("raise KeyError('price')", "KeyError: 'price'"),
        ("sys.exit('bye')", "SystemExit: bye"),
        ("raise asyncio.CancelledError('odd')", "CancelledError: odd"),
        ("raise BaseException('base')", "BaseException: base"),
    ],
)
def test_whatever_a_handler_raises_is_its_tasks_failure(
    tmp_path: Path, harm: str, reason: str
) -> None:
    folder = Folder(tmp_path)
    with serving(Site(numbered_pages(PAGES))) as site:
        (dead,) = crawl_with(folder, site, harm)
        assert len(site.paths) == PAGES + 1
    assert dead["reason"] == reason
    assert harm in dead["traceback"]
    assert folder.stats("fragile").lost == 0
    assert len(folder.export("fragile")) == PAGES
