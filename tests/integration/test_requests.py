"""What a crawl sends, and to whom: secrets, proxies, and what cannot be sent at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hostile import HostileServer
from support.processes import Folder
from support.rarely import first_then_rare
from support.sites import serving

PLAIN = ("--rate", "none", "--allow-private", "--no-robots", "--max-retries", "0")

SPIDER = """
from shoal import Spider
from shoal.core.task import Task

SECRETS = {{"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-Api-Key": "s3cret"}}
FORM = {{"Content-Type": "application/x-www-form-urlencoded"}}

class Secret(Spider):
    def start(self):
        for status in (302, 307):
            headers = SECRETS | {{"Accept-Language": "de"}}
            yield Task(url="{url}&status=%d" % status, headers=headers)
        yield Task(url="{url}&form", method="POST", headers=SECRETS | FORM, body="q=s3cret")

    def parse(self, page):
        yield {{"url": page.url}}

class Early(Spider):
    def start(self):
        yield Task(url="http://127.0.0.1:1/", session="mine")
"""


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with serving(HostileServer()) as server:
        yield server


@pytest.fixture
def elsewhere() -> Iterator[HostileServer]:
    with serving(HostileServer()) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, server: HostileServer, elsewhere: HostileServer) -> Folder:
    folder = Folder(tmp_path)
    url = server.url(f"/redirect-to?url={elsewhere.url('/ok')}")
    folder.write("spiders.py", SPIDER.format(url=url))
    return folder


def test_secrets_stay_with_their_host(
    folder: Folder, server: HostileServer, elsewhere: HostileServer
) -> None:
    assert folder.shoal("crawl", "spiders.py:Secret", *PLAIN).code == 0
    assert len(server.requests) == 3
    for request in server.requests:
        assert (request.headers["Authorization"], request.headers["X-Api-Key"]) == (
            "Bearer s3cret",
            "s3cret",
        )
    assert elsewhere.requests
    for request in elsewhere.requests:
        assert request.method == "GET"
        assert "s3cret" not in str(request)
        assert set(request.headers) <= {
            *("Host", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language")
        }
    (path,) = (path for path in server.paths if path.endswith("status=302"))
    explained = folder.shoal("explain", "secret", server.url(path))
    assert "without Authorization, Cookie, X-Api-Key" in " ".join(explained.out.split())


@pytest.mark.parametrize("workers", first_then_rare("2", "1"))
def test_proxies_of_the_environment_are_not_ignored_in_silence(
    folder: Folder, server: HostileServer, workers: str
) -> None:
    proxies = {"HTTP_PROXY": "http://me:s3cret@127.0.0.1:1", "all_proxy": "http://127.0.0.1:1"}
    command = ("crawl", server.url("/ok"), *PLAIN, "--workers", workers)
    ended = folder.shoal(*command, env=proxies)
    assert ended.code == 0
    says = "HTTP_PROXY and ALL_PROXY: not heeded, pages are fetched without"
    assert ended.err.count(says) == 1, ended.err
    assert "s3cret" not in ended.err + ended.out


@pytest.mark.rare
def test_a_worker_says_so_too(folder: Folder, server: HostileServer) -> None:
    assert folder.shoal("crawl", server.url("/ok"), *PLAIN, "--name", "crawl").code == 0
    command = ("worker", server.url("/ok"), "--name", "crawl", "--until-finished")
    ended = folder.shoal(*command, env={"https_proxy": "http://127.0.0.1:1"})
    assert (ended.code, ended.err.count("HTTPS_PROXY: not heeded")) == (0, 1)


@pytest.mark.parametrize("env", first_then_rare({"NO_PROXY": "localhost"}, {"HTTP_PROXY": ""}, {}))
def test_nothing_is_said_where_nothing_is_ignored(
    folder: Folder, server: HostileServer, env: dict[str, str]
) -> None:
    ended = folder.shoal("crawl", server.url("/ok"), *PLAIN, env=env)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.rare
def test_a_session_that_nobody_knows(folder: Folder) -> None:
    early = folder.shoal("crawl", "spiders.py:Early", *PLAIN)
    assert early.code == 2
    assert early.err.strip() == "shoal: no such session: mine: 'http://127.0.0.1:1/'"


@pytest.mark.parametrize("host", first_then_rare("a..b", f"{'x' * 64}.example", ".example"))
def test_a_host_that_is_no_name(folder: Folder, host: str) -> None:
    ended = folder.shoal("crawl", f"http://{host}/", *PLAIN, "--name", "odd")
    assert (ended.code, ended.err) == (3, "")
    (dead,) = folder.shoal("dead", "list", "odd", "--json").json()
    assert dead["reason"] == f"not a host name: {host[:60]!r}"


@pytest.mark.rare
def test_a_host_of_ones_own(folder: Folder, server: HostileServer) -> None:
    """Rate, robots.txt and identity all go by the URL."""
    spider = f"""
from shoal import Spider
from shoal.core.task import Task

class Host(Spider):
    def start(self):
        yield Task(url="{server.url("/ok")}", headers={{"host": "another.example"}})
"""
    folder.write("host.py", spider)
    assert folder.shoal("crawl", "host.py", *PLAIN).code == 3
    (dead,) = folder.shoal("dead", "list", "host", "--json").json()
    assert dead["reason"].startswith("header 'host' cannot be set: it follows from the URL")
    assert server.requests == []
