"""A crawl of pages that mean harm: each ends as documented, and no worker grows over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.frontier.values import Record
from support.crashes import has_crashed
from support.hostile import HostileServer
from support.hostile_pages import PAGES
from support.processes import Folder, peak_memory_kb
from support.sites import serving
from support.until import until_now

SPIDER = """
from shoal import Spider

class Hostile(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True

    def parse(self, page):
        path = "/" + page.url.partition("://")[2].partition("/")[2]
        yield {{"path": path, "h1": page.css("h1::text").get(), "text": page.text}}
        yield from page.follow_all("a")
"""
PLAIN = ("--rate", "none", "--allow-private")
LIMITS = ("--timeout-s", "2", "--max-retries", "0")
"""One try each: ten failures in a row, as of retries at the end, would be those of a sick host."""

MAX_MEMORY_KB = 300 * 1000

TOO_LARGE = "dead: body larger than 8388608 bytes (max_body_bytes)"
TOO_SLOW = "dead: timed out after 2 s"
HEADERS = "dead: response headers too large"
CLOSED_EARLY = "dead: server closed the connection before the body was complete"
NOT_HTTP = "dead: not a valid HTTP response"

VERDICTS = {
    "/links": "done",
    "/ok": "done",
    "/empty": "done",
    "/not-html": "done",
    "/no-charset": "done",
    "/wrong-charset": "done",
    "/no-length": "done",
    "/chunked": "done",
    "/gzip": "done",
    "/two-answers": "done",
    "/status/500": "dead: HTTP 500",
    "/redirect-self": "dead: redirects in a loop: ",
    "/redirect-loop": "done: HTTP 302 to ",
    "/redirect-loop-2": "done: HTTP 302 to ",
    "/redirect-brotli": "done: HTTP 302 to ",
    "/redirect-chain/3": "done: HTTP 302 to ",
    "/redirect-to": "done: HTTP 302 to ",
    "/redirect-private": "done: HTTP 302 to ",
    "/endless": TOO_LARGE,
    "/endless-no-length": TOO_LARGE,
    "/huge": TOO_LARGE,
    "/gzip-bomb": "dead: decompressed body larger than 8388608 bytes (max_body_bytes)",
    "/header-flood": HEADERS,
    "/long-header": HEADERS,
    "/hard-to-parse": "dead: Unparsable: the page takes too long to parse",
    "/drip": TOO_SLOW,
    "/slow-headers": TOO_SLOW,
    "/silent": TOO_SLOW,
    "/gzip-truncated": "dead: gzip: the compressed data ends too early",
    "/gzip-corrupt": "dead: gzip: the compressed data is corrupt",
    "/brotli": "dead: cannot read Content-Encoding: 'br'",
    "/closes-mid-body": CLOSED_EARLY,
    "/closes-mid-chunk": CLOSED_EARLY,
    "/closes-at-once": "dead: server closed the connection",
    "/reset": "dead: connection reset by peer",
    "/garbage": NOT_HTTP,
    "/bad-chunk": NOT_HTTP,
    "/length-and-chunks": NOT_HTTP,
}
TRIES = {
    "/status/500": 2,
    "/reset": 2,
    "/garbage": 2,
    "/huge": 1,
    "/brotli": 1,
    "/redirect-self": 1,
}
"""A second try may help, or would be the same again."""


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with serving(HostileServer()) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: HostileServer) -> Folder:
    folder = Folder(tmp_path)
    folder.write("hostile.py", SPIDER.format(url=server.url("/links")))
    return folder


def records(folder: Folder, server: HostileServer) -> dict[str, Record]:
    """What the frontier knows of every hostile page."""
    found = {path: folder.find("hostile", server.url(path)) for path in VERDICTS}
    return {path: record for path, record in found.items() if record is not None}


def test_every_hostile_page_is_expected_here() -> None:
    """Those with a slash at the end stand for all below them."""
    assert {path.removesuffix("3").removesuffix("500") for path in VERDICTS} == set(PAGES)


def test_every_page_ends_as_documented(folder: Folder, server: HostileServer) -> None:
    ended = folder.shoal("crawl", "hostile.py", *LIMITS, "--workers", "2")
    assert ended.code == 3, ended
    assert not has_crashed(ended.err), ended
    found_records = records(folder, server)
    assert set(found_records) == set(VERDICTS)
    for path, record in found_records.items():
        verdict = f"{record.state}: {record.reason}" if record.reason else str(record.state)
        assert verdict.startswith(VERDICTS[path]), path
    found = {item["path"]: item for item in folder.export("hostile")}
    assert set(found) == {path for path, verdict in VERDICTS.items() if verdict == "done"}
    for path in ("/ok", "/no-length", "/chunked", "/gzip"):
        assert found[path]["h1"] == "ok"
    assert "Käse, Brötchen und Süßes für 3 £" in found["/no-charset"]["text"]
    assert "se, Br\N{REPLACEMENT CHARACTER}tchen" in found["/wrong-charset"]["text"]
    assert found["/empty"]["text"] == ""
    assert found["/two-answers"]["text"] == "ok"  # And nobody else got its second answer.


def test_what_may_pass_is_tried_again(folder: Folder, server: HostileServer) -> None:
    urls = [server.url(path) for path in TRIES]
    assert folder.shoal("crawl", *urls, *PLAIN, "--max-retries", "1", "--name", "tries").code == 3
    dead = folder.shoal("dead", "list", "tries", "--json").json()
    assert {task["url"]: task["tries"] for task in dead} == dict(
        zip(urls, TRIES.values(), strict=True)
    )


def test_redirects_without_end(folder: Folder, server: HostileServer) -> None:
    starts = [server.url("/redirect-loop"), server.url("/redirect-chain/12")]
    assert folder.shoal("crawl", *starts, *PLAIN, "--name", "redirects").code == 3
    dead = folder.shoal("dead", "list", "redirects", "--json").json()
    chain, loop = sorted(dead, key=lambda task: str(task["url"]))
    assert loop["url"] == server.url("/redirect-loop-2")
    assert loop["reason"].startswith("redirects in a loop: ")
    assert chain["reason"] == f"more than 10 redirects, from {starts[1]}"
    assert len(server.requests) == len(set(server.paths))


def test_a_name_that_does_not_resolve(folder: Folder) -> None:
    command = ("crawl", "http://no-such-name.invalid/", "--name", "dns", "--no-robots")
    assert folder.shoal(*command, "--max-retries", "1").code == 3
    (dead,) = folder.shoal("dead", "list", "dns", "--json").json()
    assert dead["reason"].startswith("DNS: ")
    assert dead["tries"] == 2


def test_memory_stays_bounded(folder: Folder, server: HostileServer) -> None:
    """Several of the largest pages at once, beside all the others."""
    large = ("/endless", "/endless-no-length", "/huge", "/gzip-bomb")
    urls = [server.url(f"{path}?copy={copy}") for path in large for copy in range(6)]
    folder.shoal("seed", "hostile", *urls)
    peaks: dict[int, int] = {}
    with folder.running("crawl", "hostile.py", *LIMITS, "--workers", "2") as crawl:

        def ended() -> bool:
            peaks.update((pid, peak) for pid in crawl.workers() if (peak := peak_memory_kb(pid)))
            return crawl.has_ended()

        until_now("the end of the crawl", ended)
        assert crawl.wait().code == 3
    assert len(peaks) == 2
    assert max(peaks.values()) < MAX_MEMORY_KB, peaks


@pytest.mark.rare
@pytest.mark.parametrize("robots", ["--robots", "--no-robots"])
def test_the_crawl_counts_what_went_over_the_network(
    folder: Folder, server: HostileServer, robots: str
) -> None:
    """Pages, redirects, failures and robots.txt, as the server itself counts them."""
    paths = ("/ok", "/gzip", "/chunked", "/status/404", "/redirect-chain/3", "/closes-mid-body")
    urls = [server.url(path) for path in paths]
    once = ("--max-retries", "0", "--max-depth", "0", "--name", "counted")
    folder.shoal("crawl", *urls, *PLAIN, *once, robots)
    stats = folder.shoal("status", "counted", "--json").json()
    assert stats["wire_bytes"] == server.bytes_received + server.bytes_sent
    assert "on the wire" in folder.shoal("status", "counted").out
