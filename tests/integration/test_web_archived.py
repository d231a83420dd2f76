"""Raw pages from the archive, as a real `shoal serve` gives them: text in a file, no more."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import web

from shoal.web.context import MAX_PAGES
from support.processes import Folder
from support.s3_servers import BUCKET, Rclone
from support.sites import Site, serving
from support.until import LIMIT_S, until_now
from support.web import Answered, Web, serving_web

SPIDER = """
from shoal import Spider

class Shop(Spider):
    name = "shop"
    start_urls = [{url!r}]
    rate = "none"
    robots = False
    allow_private = True

    def parse(self, page):
        for path in ("scripts", "zeros", "wide", "large", "twice"):
            yield page.follow(path, handler=self.look)
        yield page.follow("scripts", handler=self.look, json={{"a": 1}})

    def look(self, page):
        yield {{"url": page.url}}
        if page.url.endswith("twice") and page.body == b"first":
            raise ValueError("not yet")
"""
SCRIPTS = b"<!doctype html><script>alert(document.cookie)</script><img src=x onerror=alert(1)>"
PAGES = {
    "/": (b"<title>front</title>", "text/html"),
    "/scripts": (SCRIPTS, "text/html"),
    "/zeros": (
        b"\0\xff\xfe<script>alert(1)</script>\x80\x1b[31m\r\n",
        "text/html; charset=nonsense",
    ),
    "/large": (b"<p>" + b"x" * 6_000_000, "text/html"),
    "/wide": (b"\xff\xfe" + "<script>alert(1)</script>".encode("utf-16-le"), "image/svg+xml"),
}
POLICY = "default-src 'none'; "
PAGE = {"Accept": "text/html"}


def shop() -> Site:
    tries = [b"second", b"first"]

    async def answer(path: str) -> web.Response:
        body, kind = PAGES.get(path) or (tries.pop(), "text/html")
        return web.Response(body=body, headers={"Content-Type": kind})

    return Site(answer)


def crawled(folder: Folder, *options: str, is_repeated: bool = False) -> str:
    """Crawl the shop, and if it is repeated, its dead page again. Returns the shop's address."""
    with serving(shop()) as site:
        folder.write("shop.py", SPIDER.format(url=site.url))
        ended = folder.shoal("crawl", "shop.py", *options)
        assert ended.code == 3, ended
        if is_repeated:
            assert folder.shoal("dead", "retry", "shop").code == 0
            ended = folder.shoal("crawl", "shop.py", *options)
            assert ended.code == 0, ended
        return site.url


def download(server: Web, path: str = "/api/v1/crawls/shop/archived", **query: str) -> Answered:
    return server.get(f"{path}?{urlencode(query)}")


def tries(server: Web, url: str) -> list[dict[str, str]]:
    answer = server.get(f"/api/v1/crawls/shop/explain?{urlencode({'url': url})}").json
    return [page for each in (answer, *answer["others"]) for page in each["tries"]]


def explained(server: Web, url: str) -> str:
    """The screen about a URL."""
    query = urlencode({"crawl": "shop", "url": url})
    return server.get(f"/explain?{query}", PAGE).body.decode()


def links(screen: str) -> list[str]:
    """The addresses of raw pages to which a screen leads."""
    return [unescape(link) for link in re.findall(r'href="([^"]*/archived[^"]*)"', screen)]


def assert_problem(answer: Answered, status: int, says: str) -> None:
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert says in answer.json["detail"]


@pytest.fixture(scope="module", params=["blobs", "warc"])
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder whose crawl has archived its pages."""
    folder = Folder(tmp_path_factory.mktemp("archived"))
    options = ("--archive", "file:raw", "--archive-format", request.param)
    site = crawled(folder, *options, is_repeated=True)
    folder.write("site", site)
    return folder


@pytest.fixture(scope="module")
def served(kept: Folder) -> Iterator[Web]:
    with serving_web(kept, "--archive", "file:raw") as server:
        yield server


@pytest.fixture
def site(kept: Folder) -> str:
    return (kept.path / "site").read_text()


@pytest.mark.parametrize("path", PAGES)
def test_whatever_a_page_is_it_comes_as_text_in_a_file(served: Web, site: str, path: str) -> None:
    answer = download(served, url=site + path[1:])

    assert (answer.status, answer.body) == (200, PAGES[path][0])
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert re.fullmatch(
        r'attachment; filename="page-[0-9a-f]+\.txt"', answer.headers["Content-Disposition"]
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].startswith(POLICY)
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_screen_leads_to_the_page_of_each_try(served: Web, site: str) -> None:
    found = links(explained(served, f"{site}twice"))

    assert [served.get(link).body for link in found] == [b"first", b"second"]
    assert download(served, url=f"{site}twice").body == b"second"
    for page, body in zip(tries(served, f"{site}twice"), (b"first", b"second"), strict=True):
        named = {"fingerprint": page["fingerprint"], "place": page["archived"]}
        assert download(served, **named).body == body


def connected(server: Web, asked: str) -> socket.socket:
    """A connection on which a request was sent."""
    host, _, port = server.base.removeprefix("http://").rpartition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(LIMIT_S)
    client.connect((host, int(port)))
    client.sendall(f"{asked} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return client


@pytest.mark.parametrize("route", ["archived?url={site}scripts", "export?format=jsonl"])
def test_a_head_is_all_that_was_asked_for(served: Web, site: str, route: str) -> None:
    path = f"/api/v1/crawls/shop/{route.format(site=site)}"
    with connected(served, f"HEAD {path}") as client, client.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    length = len(served.get(path).body)

    assert head.startswith(b"HTTP/1.1 200 ")
    assert f"Content-Length: {length}\r\n".encode() in head
    assert length > 0
    assert body == b""


def test_clients_that_go_away_leave_nothing_behind(served: Web, site: str) -> None:
    path = f"/api/v1/crawls/shop/archived?url={site}large"
    for _ in range(MAX_PAGES):
        with connected(served, f"GET {path}") as client:
            assert client.recv(15) == b"HTTP/1.1 200 OK"
    until_now("room for another", lambda: served.get(path).status == 200)
    assert "Traceback" not in served.process.err


def test_only_so_many_are_sent_at_once(served: Web, site: str) -> None:
    path = f"/api/v1/crawls/shop/archived?url={site}large"
    with ExitStack() as stack:
        for _ in range(MAX_PAGES):
            client = stack.enter_context(connected(served, f"GET {path}"))
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        answer = served.get(path)
        assert_problem(answer, 503, f"there are {MAX_PAGES} downloads of pages under way")
        assert answer.headers["Retry-After"] == "5"
        assert served.get("/api/v1/crawls").status == 200
    until_now("room for another", lambda: served.get(path).status == 200)


def test_what_was_sent_with_a_body_is_there_too(served: Web, site: str) -> None:
    found = links(explained(served, f"{site}scripts"))

    assert len(found) == len({link.partition("fingerprint=")[2] for link in found}) == 2
    assert {served.get(link).body for link in found} == {SCRIPTS}


def test_what_is_not_there(served: Web, site: str) -> None:
    other = tries(served, site)[0]["archived"]
    for place in ("../../etc/passwd#1", "shop/pages/x.gz#1", "x", other):
        assert_problem(download(served, url=f"{site}scripts", place=place), 404, "no such page")
    assert_problem(download(served, url=f"{site}never"), 404, "crawl 'shop' has archived no such")
    assert_problem(download(served, fingerprint="00" * 8), 404, "has archived no such page")
    assert_problem(download(served, "/api/v1/crawls/no/archived", url=site), 404, "no crawl named")
    for query in ({}, {"url": site, "fingerprint": "00" * 8}):
        assert_problem(download(served, **query), 400, "either a url or a fingerprint")
    for wrong in ({"fingerprint": "zz"}, {"url": "ftp://x"}, {"url": site, "file": "/etc"}):
        assert download(served, **wrong).status == 400
    screen = served.get(f"/crawls/shop/archived?{urlencode({'url': site + 'never'})}", PAGE)
    assert screen.status == 404
    assert "has archived no such page" in unescape(screen.body.decode())


def test_who_may_only_look_may_have_pages_and_others_may_not(kept: Folder, site: str) -> None:
    kept.write("tokens", "read read-token-of-the-test\n").chmod(0o600)
    path = f"/x/api/v1/crawls/shop/archived?{urlencode({'url': site})}"
    options = ("--archive", "file:raw", "--token-file", "tokens", "--prefix", "/x")
    with serving_web(kept, *options) as server:
        assert server.get(path).status == 401
        assert server.get(path.replace("/api/v1", ""), PAGE).status == 401
        by_reader = {"Authorization": "Bearer read-token-of-the-test"}
        assert server.get(path, by_reader).body == PAGES["/"][0]
        screen = server.get(
            f"/x/explain?{urlencode({'crawl': 'shop', 'url': site})}", {**PAGE, **by_reader}
        )
        (link,) = links(screen.body.decode())
        assert server.get(link, by_reader).body == PAGES["/"][0]


def test_without_an_archive_there_are_no_links(kept: Folder, site: str) -> None:
    with serving_web(kept) as server:
        screen = explained(server, site)
        assert ("archived" in screen, links(screen)) == (True, [])
        assert_problem(download(server, url=site), 404, "started without --archive")


def test_a_crawl_that_has_archived_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    site = crawled(folder)
    with serving_web(folder, env={"SHOAL_ARCHIVE": "file:raw"}) as server:
        assert links(explained(server, site)) == []
        assert_problem(download(server, url=site), 404, "crawl 'shop' has archived no such page")
    assert not (tmp_path / "raw").exists()


def test_what_is_gone_too_large_or_out_of_reach_is_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    site = crawled(folder, "--archive", "file:raw")
    folder.write("shoal.toml", 'archive = "file:raw"\nmax_body_bytes = 50\n')
    with serving_web(folder) as server:
        assert download(server, url=site).body == PAGES["/"][0]
        assert_problem(download(server, url=f"{site}scripts"), 501, "see max_body_bytes")
        for body in (tmp_path / "raw" / "blobs").rglob("*.gz"):
            body.write_bytes(b"damaged")
        assert_problem(download(server, url=site), 404, "does not have the page any more")
        shutil.rmtree(tmp_path / "raw" / "blobs")
        assert_problem(download(server, url=site), 404, " is gone")
        screen = server.get(f"/crawls/shop/archived?{urlencode({'url': site})}", PAGE)
        assert screen.status == 404
        assert " is gone" in unescape(screen.body.decode())
        shutil.rmtree(tmp_path / "raw")
        (tmp_path / "raw").write_text("no folder")
        assert_problem(download(server, url=site), 503, "the archive cannot be used: ")
    with serving_web(folder, "--archive", "ftp://me:s3cr3t@x") as server:
        answer = download(server, url=site)
        assert_problem(answer, 503, "no archive for 'ftp://me:***@x'")


def test_a_bucket(tmp_path: Path) -> None:
    address = f"s3://{BUCKET}/x"
    with Rclone(tmp_path / "rclone") as bucket:
        folder = Folder(tmp_path, bucket.environment)
        site = crawled(folder, "--archive", address)
        with serving_web(folder, "--archive", address) as server:
            assert download(server, url=f"{site}zeros").body == PAGES["/zeros"][0]
            bucket.kill()
            answer = download(server, url=f"{site}zeros")
            assert_problem(answer, 503, "cannot reach the service")
            assert answer.headers["Retry-After"] == "2"
            screen = server.get(f"/crawls/shop/archived?{urlencode({'url': site})}", PAGE)
            assert (screen.status, b"do not answer" in screen.body) == (503, True)
