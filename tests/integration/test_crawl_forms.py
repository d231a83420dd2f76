"""Forms in real crawls: a search, a login with a token, an upload, an API; on both frontiers."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from support.form_site import FormSite
from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1000
PLAIN = ("--rate", "none", "--allow-private", "--max-retries", "0")

SPIDER = """
from shoal import Spider, Task

PICTURE = {picture!r}[:8] + bytes(range(256)) * 1000

class Forms(Spider):
    def start(self):
        yield "{url}"
        yield Task.post("{url}api", json={{"query": "lamp", "limit": 1}}, job_type="api")
        yield Task.post("{url}upload", form=[("title", "t")], files={{"picture": ("x", b"\\xff")}})

    def parse(self, page):
        yield page.submit("#search", {{"q": "lamp", "sort": "name"}}, handler=self.found)
        yield page.follow("/login", handler=self.login)

    def found(self, page):
        yield {{"url": page.url, "found": page.css("li::text").getall()}}
        yield page.follow("/api", json={{"query": "table", "limit": 5}}, handler=self.api)

    def login(self, page):
        secret = {{"user": "ada", "password": "l\\u00f6velace & co"}}
        yield page.submit("#login", secret, button="[value=login]", handler=self.account)

    def account(self, page):
        yield {{"hello": page.css("h1::text").get()}}
        picture = ("lamp.png", PICTURE)
        values = {{"title": "Gr\\u00fc\\u00dfe", "picture": picture}}
        yield page.submit("#upload", values, handler=self.uploaded)

    def uploaded(self, page):
        texts = page.css("h1::text, p::text, i::text, b::text").getall()
        yield {{"uploaded": sorted(texts)}}

    def api(self, page):
        yield {{"api": page.json()["found"]}}

class Wrong(Forms):
    def parse(self, page):
        yield page.submit("#search", {{"query": "lamp"}})
"""


@pytest.fixture(scope="module")
def site() -> Iterator[FormSite]:
    with serving(FormSite()) as site:
        yield site


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, site: FormSite, server: RedisServer
) -> Folder:
    site.uploads.clear()
    server.flush()
    env = {"SHOAL_FRONTIER": server.url} if request.param == "redis" else {}
    folder = Folder(tmp_path, env)
    folder.write("forms.py", SPIDER.format(url=site.url, picture=PICTURE[:8]))
    return folder


def found(folder: Folder, crawl: str) -> list[dict[str, Any]]:
    items = [item.get("data", item) for item in folder.export(crawl)]
    return [{name: item[name] for name in item if not name.startswith("_")} for item in items]


def test_forms_of_a_site(folder: Folder, site: FormSite) -> None:
    ended = folder.shoal("crawl", "forms.py:Forms", *PLAIN)
    dead = folder.shoal("dead", "list", "forms", "--json").json()
    assert [each["reason"] for each in dead] == ["HTTP 400"], (ended.err, dead)
    assert [each["url"] for each in dead] == [f"{site.url}upload"]
    shown = folder.shoal("dead", "show", "forms", f"{site.url}upload").out
    assert "body in base64" in " ".join(shown.split())
    items = found(folder, "forms")
    digest = sha256(PICTURE).hexdigest()
    for wanted in (
        {"url": f"{site.url}search?q=lamp&sort=name&shop=7", "found": ["lamp", "lamp shade"]},
        {"api": ["lamp"]},
        {"api": ["table"]},
        {"hello": "Hello ada"},
        {"uploaded": sorted(["Grüße", "lamp.png", "image/png", digest])},
    ):
        assert wanted in items
    assert len(items) == 5
    assert site.uploads == [PICTURE]
    assert site.tokens == set()


def test_a_wrong_field_is_a_dead_page_in_one_line(folder: Folder, site: FormSite) -> None:
    assert folder.shoal("crawl", "forms.py:Wrong", *PLAIN).code == 3
    reasons = [each["reason"] for each in folder.shoal("dead", "list", "wrong", "--json").json()]
    assert (
        f"ValueError: #search on {site.url}: no field 'query'; the form has 'q', 'sort', 'shop'"
        in reasons
    )
