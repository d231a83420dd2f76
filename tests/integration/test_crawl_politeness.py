"""Politeness holds for the whole fleet: measured where it counts, at the server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiohttp import web

from shoal.core.policy import SEND_SLACK_S
from support.links import numbered_pages, put_spider
from support.processes import Folder
from support.sitemaps import SiteWithSitemaps, index, urlset
from support.sites import Answer, Hit, Site, html, serving
from support.until import until_now

pytestmark = pytest.mark.alone

PER_SECOND = 10
HOSTS, PAGES = 3, 30
RETRY_AFTER_S = 3
CRAWL_DELAY_S = 0.6


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def all_hits(site: Site) -> list[Hit]:
    """robots.txt is a request like any other."""
    return sorted([*site.robots_hits, *site.hits])


def gaps(hits: Sequence[Hit], distance: int = 1) -> list[float]:
    """The longest times that can have been between each hit and the one so many places later."""
    return [after.at - before.since for before, after in zip(hits, hits[distance:], strict=False)]


def refusing_once(path: str) -> Answer:
    """Ten pages; the first request of one of them is answered with 429."""
    answer, refused = numbered_pages(10), False

    async def refuse_once(asked: str) -> web.Response:
        nonlocal refused
        if asked != path or refused:
            return await answer(asked)
        refused = True
        return web.Response(status=429, headers={"Retry-After": str(RETRY_AFTER_S)})

    return refuse_once


async def slow_down(path: str) -> web.Response:
    if path == "/robots.txt":
        return web.Response(text=f"User-agent: *\nCrawl-delay: {CRAWL_DELAY_S}\n")
    return await numbered_pages(6)(path)


async def to_every_port(path: str) -> web.Response:
    """Links to many ports of one machine, and a redirect to one more."""
    if path == "/away":
        return web.Response(status=302, headers={"Location": "http://victim.example:99/"})
    ports = (f'<a href="http://victim.example:{port}/"></a>' for port in range(8000, 8050))
    return html("".join(ports) + '<a href="/away"></a>')


def test_a_page_cannot_have_us_hit_every_port_of_a_machine(folder: Folder) -> None:
    with serving(Site(to_every_port)) as site:
        put_spider(folder, [site])
        assert folder.shoal("crawl", "links.py", "--rate", "none").code == 0
        told = folder.shoal("explain", "links", "http://victim.example:8000/").out
        moved = folder.shoal("explain", "links", f"{site.url}away").out
    assert [host.host for host in folder.hosts("links")] == [f"127.0.0.1:{site.port}"]
    stats = folder.stats("links")
    assert (stats.filtered, stats.done, stats.dropped) == (50, 1, 1)
    for text in (told, moved):
        assert "another port, which allowed_hosts does not name" in text


def test_no_window_sees_more_than_the_rate(folder: Folder) -> None:
    with ExitStack() as stack:
        sites = [stack.enter_context(serving(Site(numbered_pages(PAGES)))) for _ in range(HOSTS)]
        put_spider(folder, sites)
        command = ("crawl", "links.py", "--rate", f"{PER_SECOND}/s", "--workers", "4")
        assert folder.shoal(*command).code == 0
        for site in sites:
            hits = all_hits(site)
            assert len(hits) == PAGES + 2
            assert min(gaps(hits, PER_SECOND)) > 1.0
            needed_s = (len(hits) - 1) * (1.0 + SEND_SLACK_S) / PER_SECOND
            assert hits[-1].at - hits[0].at < 1.5 * needed_s


def test_a_crawl_delay_is_the_rate_of_its_host(folder: Folder) -> None:
    with serving(Site(slow_down)) as site:
        put_spider(folder, [site])
        assert folder.shoal("crawl", "links.py", "--rate", "none", "--workers", "2").code == 0
        hits = all_hits(site)
    assert len(hits) == 6 + 2
    assert min(gaps(hits)) > CRAWL_DELAY_S - SEND_SLACK_S


def test_a_refusal_stops_everybody_for_as_long_as_the_host_asks(folder: Folder) -> None:
    with serving(Site(refusing_once("/3"))) as site:
        put_spider(folder, [site])
        command = ("crawl", "links.py", "--rate", "20/s", "--workers", "3")
        assert folder.shoal(*command).code == 0
        hits = all_hits(site)
    assert len(hits) == 10 + 2 + 1
    refused = next(hit for hit in hits if hit.path == "/3")
    before = [hit for hit in hits if hit.at <= refused.at + 1.0]
    after = hits[len(before) :]
    # What was on its way when the refusal came in could not be called back.
    assert len(after) >= 5
    assert after[0].at - before[-1].at > RETRY_AFTER_S - SEND_SLACK_S


@pytest.mark.rare
def test_a_refusal_is_not_forgotten_by_a_restart(folder: Folder) -> None:
    with serving(Site(refusing_once("/3"))) as site:
        put_spider(folder, [site])
        command = ("crawl", "links.py", "--rate", "20/s")
        with folder.running(*command) as crawl:
            until_now("the refusal", lambda: "/3" in site.paths)
            until_now("its effect", lambda: folder.hosts("links")[0].penalty_s > 0)
            crawl.kill_all()
        known = len(site.hits)
        assert folder.shoal(*command).code == 0
        refused = next(hit for hit in site.hits if hit.path == "/3")
        assert site.hits[known].at - refused.at > RETRY_AFTER_S


@pytest.mark.rare
def test_sitemaps_are_requests_like_any_other(folder: Folder) -> None:
    """They are named while the fleet crawls their host: no window sees one too many."""
    with serving(SiteWithSitemaps()) as site:
        numbers = range(1, 9)
        site.bodies = {f"/{n}.xml": urlset(*site.pages(f"of-{n}")) for n in numbers}
        site.bodies["/index.xml"] = index(*(f"/{n}.xml" for n in numbers))
        links = "".join(f'<a href="{page}"></a>' for page in site.pages(*range(20)))
        site.bodies["/"] = links.encode()
        put_spider(folder, [site])
        command = ("crawl", "links.py", "--rate", "2/s", "--workers", "2")
        with folder.running(*command) as crawling:
            until_now("the crawl", lambda: len(site.hits) >= 2)
            assert folder.shoal("seed", "links", "--sitemap", f"{site.url}index.xml").code == 0
            assert crawling.wait().code == 0
        hits = all_hits(site)
    assert len(hits) == 1 + 1 + 20 + 1 + 2 * len(numbers)
    assert min(gaps(hits, 2)) > 1.0
