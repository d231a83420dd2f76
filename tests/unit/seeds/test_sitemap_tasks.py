"""Sitemaps as tasks: what they lead to, however they were written."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from shoal.config import Rules, Settings
from shoal.core.task import Task, decode, encode
from shoal.errors import BadUrl
from shoal.fetch import robots
from shoal.frontier.admission import Admission
from shoal.seeds import sitemap_tasks
from shoal.seeds.sitemap_tasks import (
    SITEMAP,
    Listed,
    SitemapNote,
    can_be_read,
    read_listed,
    sitemap_task,
)
from shoal.seeds.sitemap_xml import CHUNK_BYTES, MAX_BYTES
from shoal.worker.visits.sitemap_visits import for_large_ones, large_ones_at_once
from support.sitemaps import index, urlset

ADMISSION = Admission(Rules())
ABOVE = b"12345678"


async def listed_in(task: Task, body: bytes, status: int = 200) -> Listed:
    return await read_listed(task, ABOVE, status, body, ADMISSION)


def addresses(listed: Listed) -> list[str]:
    return [entry.task.url for entry in listed.entries]


def identity(task: Task) -> bytes:
    return ADMISSION.admit(task).fingerprint


def test_a_reading_is_part_of_who_it_is() -> None:
    address = "https://a.example/all.xml"
    one, again = (
        sitemap_task(address, SitemapNote("one")),
        sitemap_task(address, SitemapNote("one")),
    )
    assert identity(one) == identity(again)
    assert identity(one) != identity(sitemap_task(address, SitemapNote("two")))
    assert identity(one) != identity(Task(url=address))
    assert decode(encode(one)) == one


def test_what_is_no_address_is_no_sitemap() -> None:
    with pytest.raises(BadUrl):
        sitemap_task("nonsense", SitemapNote())


async def test_pages_are_seeds_and_know_where_they_were_found() -> None:
    task = sitemap_task("https://a.example/all.xml", SitemapNote("one"))
    (entry,) = (await listed_in(task, urlset("https://a.example/1"))).entries
    page = Task(url="https://a.example/1", site="a.example", parent=ABOVE.hex())
    assert entry.task == page


async def test_what_a_sitemap_lists_is_as_deep_as_it_is() -> None:
    """One that a handler followed is no way around `max_depth`."""
    task = Task(url="https://a.example/all.xml", job_type=SITEMAP, depth=3)
    for body in (urlset("https://a.example/1"), index("https://a.example/1.xml")):
        (entry,) = (await listed_in(task, body)).entries
        assert entry.task.depth == 3


@pytest.mark.parametrize("rules", [Rules(), Rules(fingerprints="scrapy")])
async def test_a_sitemap_cannot_send_us_to_every_port_of_a_machine(rules: Rules) -> None:
    admission, fine = Admission(rules), "https://b.example:8080/1"
    task = admission.admit(sitemap_task("https://b.example:8080/all.xml", SitemapNote())).task
    ports = [f"https://victim.example:{port}/" for port in range(81, 91)]
    listed = await read_listed(task, ABOVE, 200, urlset(fine, *ports), admission)
    assert (addresses(listed), listed.filtered) == ([fine], len(ports))
    listed = await read_listed(task, ABOVE, 200, index(*ports), admission)
    assert (addresses(listed), listed.filtered) == ([], len(ports))


async def test_what_is_known_of_a_sitemap_goes_on_to_those_it_names() -> None:
    task = sitemap_task("https://a.example/index.xml", SitemapNote("one", 100.0))
    (entry,) = (await listed_in(task, index("a/b.xml"))).entries
    assert entry.task.url == "https://a.example/a/b.xml"
    assert entry.task.meta == {SITEMAP: {"reading": "one", "since": 100.0, "level": 1}}
    assert entry.task.job_type == SITEMAP


@pytest.mark.parametrize(
    "meta", [{}, {SITEMAP: 5}, {SITEMAP: {"level": "x"}}, {SITEMAP: {"since": []}}]
)
async def test_a_task_of_anybodys(meta: dict[str, Any]) -> None:
    """Any language can seed a sitemap: a URL and the name are enough."""
    task = Task(url="https://a.example/all.xml", job_type=SITEMAP, meta=meta)
    assert addresses(await listed_in(task, urlset("https://a.example/1"))) == [
        "https://a.example/1"
    ]
    robots = Task(url="https://a.example/robots.txt", job_type=SITEMAP, meta=meta)
    assert addresses(await listed_in(robots, b"Sitemap: /a.xml")) == ["https://a.example/a.xml"]


async def test_what_is_too_much_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_tasks, "MAX_LOCATIONS", 3)
    for body in (urlset, index):
        pages = [f"https://a.example/{number}" for number in range(4)]
        task = sitemap_task("https://a.example/all.xml", SitemapNote())
        assert (await listed_in(task, body(*pages[:3]))).problem == ""
        listed = await listed_in(task, body(*pages))
        assert addresses(listed) == pages[:3]
        assert listed.problem == "more than 3 addresses: the rest is left out"


MEGABYTE = 1 << 20
PAGES = [f"https://a.example/{number}" for number in range(20_000)]


@pytest.mark.parametrize(
    ("body", "turns_at_least"),
    [
        (urlset(*PAGES), len(PAGES) // 200),
        (b"<urlset>" + b"<a/>" * (MEGABYTE // 4), MEGABYTE // CHUNK_BYTES),
        (b"<urlset><url><loc>" + b"x" * MEGABYTE, MEGABYTE // CHUNK_BYTES),
        (gzip.compress(b"<urlset>" + b" " * MEGABYTE), MEGABYTE // CHUNK_BYTES),
        (b"https://a.example/1\n" + b"\n" * MEGABYTE, MEGABYTE // CHUNK_BYTES),
    ],
    ids=["addresses", "elements", "one address", "packed", "lines"],
)
async def test_others_get_their_turn_while_a_large_one_is_read(
    body: bytes, turns_at_least: int
) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        for _ in range(1_000_000):
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await listed_in(sitemap_task("https://a.example/all.xml", SitemapNote()), body)
    counting.cancel()
    assert turns >= turns_at_least


async def test_of_a_robots_txt_no_more_is_read_than_of_any() -> None:
    task = sitemap_task("https://a.example", SitemapNote())
    early, late = b"Sitemap: /early.xml\n", b"Sitemap: /late.xml\n"
    body = early + b"\n" * robots.MAX_BYTES + late
    assert addresses(await listed_in(task, body)) == ["https://a.example/early.xml"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"\xef\xbb\xbfSitemap: /a.xml", ["a.xml"]),
        (b"Disallow: /\r sitemap : /a.xml \r\nSITEMAP:/b.xml#x", ["a.xml", "b.xml"]),
        (b"Sitemap:\nX-Sitemap: /a.xml", ["sitemap.xml"]),
    ],
)
async def test_what_a_robots_txt_names(text: bytes, named: list[str]) -> None:
    found = addresses(await listed_in(sitemap_task("https://a.example", SitemapNote()), text))
    assert found == [f"https://a.example/{name}" for name in named]


@pytest.mark.parametrize(
    ("address", "status", "readable"),
    [
        ("https://a.example/all.xml", 200, True),
        ("https://a.example/all.xml", 404, False),
        ("https://a.example/all.xml", 301, False),
        ("https://a.example", 404, True),
        ("https://a.example", 429, False),
        ("https://a.example", 500, False),
    ],
)
def test_which_answers_say_something(address: str, status: int, readable: bool) -> None:
    assert can_be_read(sitemap_task(address, SitemapNote()), status) == readable


async def test_the_error_page_of_a_site_without_a_robots_txt_is_not_read() -> None:
    task = sitemap_task("https://a.example", SitemapNote())
    found = addresses(await listed_in(task, b"Sitemap: /nowhere.xml", 404))
    assert found == ["https://a.example/sitemap.xml"]


def test_no_spider_has_a_handler_of_that_name() -> None:
    assert not SITEMAP.isidentifier()


@pytest.mark.parametrize(
    ("concurrency", "body_bytes", "at_once"),
    [(32, 8 << 20, 4), (1, 8 << 20, 1), (32, 1000, 1), (32, 128 << 20, 32)],
)
def test_large_ones_take_no_more_memory_than_pages(
    concurrency: int, body_bytes: int, at_once: int
) -> None:
    settings = Settings(concurrency=concurrency, max_body_bytes=body_bytes)
    assert large_ones_at_once(settings) == at_once
    assert for_large_ones(settings).max_body_bytes == max(body_bytes, MAX_BYTES)
