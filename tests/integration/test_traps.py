"""Sites that never end, crawled with limits for pages that are alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from support.links import put_spider
from support.processes import Folder
from support.sites import Site, html, serving

MONTHS = 5
RULES = """
from shoal import Follow, Spider

class Links(Spider):
    start_urls = [{url!r}]
    allow_private = True
    rate = "none"
    rules = [Follow(allow="/calendar", handler={handler!r}, follow=True), Follow(deny="*/y/")]

    def month(self, page):
        yield {{"url": page.url}}
"""


async def endless(path: str) -> web.Response:
    """A shop with a calendar that goes on for ever, and links that are relative by mistake."""
    if path == "/robots.txt":
        return html("", 404)
    if path == "/":
        return html('<a href="/about">a</a><a href="/calendar/2026/1?view=1">b</a><a href="x/y/">')
    if path.startswith("/calendar"):
        month = int(path.partition("?")[0].rpartition("/")[2])
        return html(f'<a href="/calendar/2026/{month + 1}?view={month}">next</a>')
    return html('<a href="x/y/">deeper</a>' if path.endswith("/") else "")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(endless)) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, [site], rate="none", robots=False)
    return folder


def test_an_endless_site_ends(folder: Folder, site: Site) -> None:
    ended = folder.shoal("crawl", "links.py", "--max-pages-per-shape", str(MONTHS))
    assert ended.code == 0, ended
    host = site.url.removeprefix("http://").removesuffix("/")
    kept_out = f"more than {MONTHS} pages like /calendar/N/N?view of {host}"
    said = folder.shoal("status", "links").out
    assert f"{kept_out}: 1 link not followed" in said
    told = folder.shoal("status", "links", "--json").json()["traps"]
    assert told[0] == {"host": host, "shape": "/calendar/N/N?view", "kept_out": 1}
    explained = folder.shoal("explain", "links", f"{site.url}calendar/1999/12?view=9").out
    assert f"never added: {kept_out}" in explained
    assert kept_out not in folder.shoal("explain", "links", f"{site.url}elsewhere").out


def test_segments_that_repeat_for_ever_are_cut_without_a_limit(folder: Folder, site: Site) -> None:
    ended = folder.shoal("crawl", "links.py", "--max-pages", "60")
    assert ended.code == 0, ended
    assert max(path.count("x/y") for path in site.paths) == 8
    explained = folder.shoal("explain", "links", f"{site.url}{'x/y/' * 9}").out
    assert "never added: its path repeats /x/y" in explained


def test_rules_are_followed_on_pages_of_which_they_say_so(folder: Folder, site: Site) -> None:
    folder.write("links.py", RULES.format(url=site.url, handler="month"))
    ended = folder.shoal("crawl", "links.py", "--max-pages-per-shape", str(MONTHS))
    assert ended.code == 0, ended
    assert len(folder.export("links")) == MONTHS
    assert {"/", "/about"} < set(site.paths)
    assert not any("/y/" in path for path in site.paths)


@pytest.mark.parametrize("command", ["crawl", "worker"])
def test_a_rule_that_names_no_method_is_one_line(folder: Folder, site: Site, command: str) -> None:
    folder.write("links.py", RULES.format(url=site.url, handler="mouth"))
    ended = folder.shoal(command, "links.py")
    assert (ended.code, ended.err) == (
        2,
        "shoal: Links.rules: no method 'mouth' to read the pages\n",
    )
    assert site.hits == []
