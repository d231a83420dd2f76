"""Cookies of visits, on a real site: redirects and chains keep them, nobody else gets them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.login_site import CANARY, LoginSite, spider
from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer) -> Folder:
    env = {"SHOAL_FRONTIER": redis_server.url} if request.param == "redis" else {}
    return Folder(tmp_path, env)


@pytest.fixture
def site() -> Iterator[LoginSite]:
    with serving(LoginSite()) as site:
        yield site


def items(folder: Folder, crawl: str) -> dict[str, str]:
    return {row["url"].split("/", 3)[3]: row["text"] for row in folder.export(crawl)}


def kept_in(folder: Folder, redis_server: RedisServer) -> dict[str, str]:
    """What frontier and results keep, by table, or by the last part of a key."""
    with closing(sqlite3.connect(folder.path / "shoal.db")) as db:
        tables = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        kept = {name: repr(db.execute(f"SELECT * FROM {name}").fetchall()) for name in tables}
    assert "welcome" in "".join(kept.values()), "no items"
    with redis_server.client() as client:
        client.config_set("rdbcompression", "no")
        for key in client.keys("*"):
            last = key.decode().rpartition(":")[2]
            kept[last] = kept.get(last, "") + repr(client.dump(key))
    return kept


def test_a_login_by_redirects(folder: Folder, site: LoginSite) -> None:
    folder.write("login.py", spider(site, "account"))
    ended = folder.shoal("crawl", "login.py:Login")
    assert ended.code == 0, ended
    assert items(folder, "login") == {"account": "welcome"}
    assert site.cookies_of("/account") == ["", f"lang=de; sid={CANARY}-account-1"]
    assert site.sessions == 1


def test_without_cookies_it_is_a_loop(folder: Folder, site: LoginSite) -> None:
    folder.write("login.py", spider(site, "account", cookies="off"))
    assert folder.shoal("crawl", "login.py:Login").code == 3
    assert "redirects in a loop" in folder.shoal("dead", "list", "login").out
    assert not any(asked.cookie for asked in site.asked)


def test_other_cookies_lead_on_for_a_while_and_the_same_do_not(
    folder: Folder, site: LoginSite
) -> None:
    folder.write("login.py", spider(site, "maze", "loop"))
    assert folder.shoal("crawl", "login.py:Login").code == 3
    told = folder.shoal("dead", "list", "login").out
    assert "more than 10 redirects" in told
    assert "redirects in a loop" in told
    assert len(site.cookies_of("/maze")) == 11
    assert site.cookies_of("/loop") == ["", "same=1"]


def test_another_site_gets_none_of_them(folder: Folder, site: LoginSite) -> None:
    folder.write("login.py", spider(site, "away"))
    assert folder.shoal("crawl", "login.py:Login").code == 0
    assert [(it.host, it.cookie) for it in site.asked if it.path == "/landing"] == [
        ("127.0.0.2", "")
    ]


def test_each_chain_has_its_own(folder: Folder, site: LoginSite) -> None:
    chains = ["ann", "bob", "cleo"]
    folder.write("login.py", spider(site, chains=chains))
    ended = folder.shoal("crawl", "login.py:Chains", "--workers", "2")
    assert ended.code == 0, ended
    assert site.faults == []
    assert site.sessions == len(chains)
    found = items(folder, "chains")
    assert {path for path in found if "?" not in path} == {
        f"{name}/{step}" for name in chains for step in range(1, 6)
    }
    (last,) = site.cookies_of("/bob/5")
    assert last.startswith("lang=de; sid=")
    assert last.endswith("; step=4")


def test_nobody_is_told_their_values(
    folder: Folder, site: LoginSite, redis_server: RedisServer
) -> None:
    """Not by logs, answers to any question, exports or results."""
    folder.write("login.py", spider(site, "account", "maze", chains=["ann"]))
    urls = [site.url + path for path in ("account", "maze", "ann/3")]
    said = []
    for name in ("Login", "Chains"):
        crawl = name.lower()
        said += [folder.shoal("crawl", f"login.py:{name}", "--json-logs")]
        said += [folder.shoal("status", crawl), folder.shoal("status", crawl, "--json")]
        said += [folder.shoal("dead", "list", crawl), folder.shoal("dead", "list", crawl, "--json")]
        said += [folder.shoal("explain", crawl, url) for url in urls]
        said += [folder.shoal("explain", crawl, url, "--json") for url in urls]
        said += [folder.shoal("export", crawl, "-o", f"{crawl}.jsonl")]
    assert CANARY in str(site.asked)
    assert [each for each in said if each.code not in (0, 1, 3)] == []
    for each in said:
        assert CANARY not in each.out + each.err, each
    for path in folder.path.glob("*.jsonl"):
        assert CANARY not in path.read_text()
    for place, text in kept_in(folder, redis_server).items():  # A dead task may be tried again.
        assert CANARY not in text or place in ("tasks", "dead"), place


def test_the_frontier_keeps_none_when_all_is_done(
    folder: Folder, site: LoginSite, redis_server: RedisServer
) -> None:
    folder.write("login.py", spider(site, "account", chains=["ann"]))
    assert folder.shoal("crawl", "login.py:Login").code == 0
    assert folder.shoal("crawl", "login.py:Chains").code == 0
    for place, text in kept_in(folder, redis_server).items():
        assert CANARY not in text, place
