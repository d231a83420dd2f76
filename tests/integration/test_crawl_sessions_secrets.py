"""What nobody may learn by a crawl with accounts: passwords, and cookies of others."""

from __future__ import annotations

import re
import secrets
import sqlite3
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from shoal.web.api import API
from shoal.web.screens import SCREENS
from support.doorman import CANARY
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.session_crawls import (
    ACCOUNTS,
    LOGIN,
    SessionFolder,
    assert_all_found,
    assert_honest,
)
from support.session_site import SessionSite
from support.sites import serving
from support.web import serving_web

PASSWORD = f"{CANARY}-password"
KEY = {"SHOAL_KEY": b64encode(secrets.token_bytes(32)).decode()}

AWAY = """
    def start(self):
        yield SITE + "away"
        yield SITE + "catalog"
        yield SITE + "trap"
"""


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def stored(folder: SessionFolder, redis_server: RedisServer) -> dict[str, bytes]:
    """All that the crawl has left behind, by table, key or file; not what the user has written."""
    own = {"shop.csv", "shop.py"}
    found = {
        str(path.relative_to(folder.path)): path.read_bytes()
        for path in folder.path.rglob("*")
        if path.is_file() and path.name not in own and not path.name.startswith("shoal.db")
    }
    for path in folder.path.glob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
            for (name,) in db.execute(tables).fetchall():
                found[name] = repr(db.execute(f"SELECT * FROM {name}").fetchall()).encode()
    with redis_server.client() as client:
        client.config_set("rdbcompression", "no")
        for key in client.keys("*"):
            found[key.decode()] = key + (client.dump(key) or b"")
    return found


def places(texts: dict[str, bytes], canary: str) -> set[str]:
    return {place for place, text in texts.items() if canary.encode() in text}


def said(folder: SessionFolder, site: SessionSite, env: dict[str, str]) -> dict[str, bytes]:
    """What commands say of the crawl."""
    commands = [
        *(("status", "shop"), ("status", "shop", "--json"), ("dead", "list", "shop")),
        *(("dead", "list", "shop", "--json"), ("explain", "shop", f"{site.url}product/1")),
        *(("explain", "shop", f"{site.url}trap"), ("explain", "shop", f"{site.url}trap", "--json")),
        *(("sessions", "list"), ("sessions", "list", "--json")),
        ("export", "shop", "-o", "items.jsonl"),
    ]
    ends = {" ".join(command): folder.shoal(*command, env=env) for command in commands}
    assert {name: each for name, each in ends.items() if each.code not in (0, 3)} == {}
    return {name: (each.out + each.err).encode() for name, each in ends.items()}


def served(folder: SessionFolder, site: SessionSite, env: dict[str, str]) -> dict[str, bytes]:
    """What the dashboard and the API say of it, on every page that they have."""
    paths = [
        route.path.replace("{crawl}", "shop")
        for route in (*API, *SCREENS)
        if route.method == "GET" and "{name}" not in route.path
    ]
    trap = quote(f"{site.url}trap", safe="")
    paths += [
        f"/api/v1/crawls/shop/explain?url={trap}&session=shop",
        f"/explain?crawl=shop&url={trap}",
    ]
    with serving_web(folder, "--json-logs", env=env) as web:
        answers = {path: web.get(path) for path in paths}
        log = web.process.err
    assert "shop#alice" in answers["/api/v1/crawls/shop/snapshot"].body.decode()
    assert "no proof of the login" in answers["/live/crawls/shop/sessions"].body.decode()
    found = [path for path, answer in answers.items() if answer.status == 200]
    assert len(found) > 40, {path: answer.status for path, answer in answers.items()}
    return {path: answer.body for path, answer in answers.items()} | {"serve": log.encode()}


@pytest.mark.parametrize("encrypted", first_then_rare(False, True), ids=["plain", "encrypted"])
def test_nobody_is_told(folder: SessionFolder, redis_server: RedisServer, encrypted: bool) -> None:
    """Of passwords nobody but the site; of cookies the frontier, as jars of accounts; with a key
    not even that."""
    key = ("--encrypt-key", "env:SHOAL_KEY") if encrypted else ()
    env = {**KEY, **({"SHOAL_ENCRYPT_KEY": "env:SHOAL_KEY"} if encrypted else {})}
    with serving(SessionSite({**ACCOUNTS, "dan": "x"})) as site:
        folder.put_accounts({**ACCOUNTS, "dan": f"{PASSWORD}-wrong"})
        folder.put_group(site)
        folder.put_shop(site, AWAY, archive="file:///pages")
        command = ("crawl", "shop.py", "--workers", "2", "--json-logs", *key)
        ended = folder.shoal(*command, env=KEY)
        assert ended.code == 3, ended
        assert site.door.refused, "no password was wrong"
        told = said(folder, site, env) | {"crawl": (ended.out + ended.err).encode()}
        if not encrypted:  # Else there is less to tell.
            told |= served(folder, site, env)
    assert CANARY in str(site.door.log)
    kept = stored(folder, redis_server)
    assert places(told, CANARY) == set()
    assert places(kept, PASSWORD) == set()
    assert "items.jsonl" in kept
    holding = places(kept, f"{CANARY}-")
    if encrypted:
        assert holding == set()
    else:
        assert [place for place in holding if not re.search("accounts|jar", place)] == []
        assert holding


def test_cookies_stay_with_their_account_and_their_site(folder: SessionFolder) -> None:
    """Another site gets none, though pages lead there; and what that one has set does not come
    here."""
    methods = """
    def start(self):
        yield SITE + "away"
        yield SITE + "catalog"
        yield Task(url=OTHER + "open/1", job_type="elsewhere")

    def elsewhere(self, page):
        pass
"""
    with serving(SessionSite(ACCOUNTS, 30, takes_s=0.01)) as site:
        folder.put_group(site)
        folder.put_shop(site, methods.replace("OTHER", repr(site.other_url)), robots=True)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        log = site.door.log
    elsewhere = [seen for seen in log if seen.host == "127.0.0.2"]
    assert {seen.path for seen in elsewhere} == {"/landing", "/open/1", "/robots.txt"}
    assert {seen.cookie for seen in log if seen.path == "/robots.txt"} == {""}
    assert not any(CANARY in seen.cookie for seen in elsewhere)
    here = [seen for seen in log if seen.host == "127.0.0.1"]
    assert not any("open=" in seen.cookie for seen in here)
    for seen in here:
        others = {user for user in ACCOUNTS if f"sid={CANARY}-{user}" in seen.cookie}
        assert others <= {seen.account}, seen


@pytest.mark.rare
def test_another_key_is_refused_until_the_cookies_are_forgotten(folder: SessionFolder) -> None:
    """Else a wrong key would log out everybody."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts(ACCOUNTS)
        folder.put_plain_group()
        folder.put_shop(site, LOGIN)
        first = ("crawl", "shop.py", "--encrypt-key", "env:SHOAL_KEY")
        assert folder.shoal(*first, "--max-pages", "8", env=KEY).code == 0
        before = len(site.door.logins)
        other = {"SHOAL_KEY": b64encode(secrets.token_bytes(32)).decode()}
        ended = folder.shoal(*first, env=other)
        assert (ended.code, len(site.door.logins)) == (2, before), ended
        assert "they were encrypted with another key" in ended.err
        assert folder.shoal("sessions", "logout", "shop", "--all").code == 0
        ended = folder.shoal(*first, env=other)
        assert ended.code == 0, ended
        assert len(site.door.logins) > before
        assert site.door.overlaps == site.door.violations == []
        assert_all_found(folder, site)
