"""shoal sessions, and what other commands say of accounts: on a real site, with a real frontier."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.identities import IdentityReport, LoginChange
from shoal.frontier.port import Frontier
from support.processes import Ended, Folder
from support.sites import Site, html, serving

CANARY = "canary-4711"
HELD_S = 3600.0


class Members(Site):
    """`/login` has a form; who fills it in with the password gets a cookie, which all pages ask
    for."""

    def __init__(self) -> None:
        super().__init__(self._page)
        self.users: list[str] = []

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        await super()._respond(request)
        if request.path == "/robots.txt":
            return html("gone", 404)
        if request.method == "POST":
            return await self._log_in(request)
        is_in = f"sid={CANARY}" in request.headers.get("Cookie", "")
        if request.path == "/login":
            return html("<form id=login method=post><input name=user><input name=pw></form>")
        if not is_in:
            return web.Response(status=302, headers={"Location": "/login"})
        return await self._page(request.path)

    async def _log_in(self, request: web.BaseRequest) -> web.StreamResponse:
        form = await request.post()
        self.users.append(str(form["user"]))
        if form["pw"] != CANARY:
            return html("wrong password")
        answer = web.Response(status=302, headers={"Location": "/home"})
        answer.headers.add("Set-Cookie", f"sid={CANARY}-1; Path=/; HttpOnly; Max-Age=86400")
        return answer

    async def _page(self, path: str) -> web.Response:
        return html(f"<h1>{path}</h1><a class=out href=/logout>log out</a>")


SPIDER = """
from shoal import Spider

class Shop(Spider):
    start_urls = ["{site}home"]
    session = "shop"
    allow_private = True
    rate = "none"

    def parse(self, page):
        yield {{"title": page.css("h1::text").get()}}
"""
TABLE = """
[sessions.shop]
accounts = "file:accounts.csv"
login_url = "{site}login"
form = "#login"
fields = {{ user = "{{user}}", pw = "{{password}}" }}
logged_in = "a.out"
"""


@pytest.fixture
def site() -> Iterator[Members]:
    with serving(Members()) as site:
        yield site


class Scene(Folder):
    """A folder with a spider, and accounts for it."""

    def __init__(self, path: Path, site: Members) -> None:
        super().__init__(path)
        self.write("shop.py", SPIDER.format(site=site.url))
        self.write("shoal.toml", TABLE.format(site=site.url))
        self.accounts(alice=CANARY, bob="old")

    def accounts(self, **passwords: str) -> None:
        rows = "".join(f"{name},{password}\n" for name, password in passwords.items())
        self.write("accounts.csv", f"user,password\n{rows}")

    def sessions(self, *args: str) -> Ended:
        ended = self.call("sessions", *args)
        assert CANARY not in ended.out + ended.err
        return ended

    def states(self) -> dict[str, str]:
        (group,) = self.sessions("list", "shop", "--json").json()
        return {each["identity"]: each["state"] for each in group["accounts"]}

    def hold(self, identity: str) -> None:
        assert asyncio.run(self.ask_frontier(lambda it: it.hold(identity, "", HELD_S)))

    def say(self, identity: str, report: IdentityReport) -> None:
        async def told(frontier: Frontier) -> None:
            held = await frontier.hold(identity, "", HELD_S)
            assert held is not None
            await frontier.let_go(held, report)

        asyncio.run(self.ask_frontier(told))


@pytest.fixture
def scene(tmp_path: Path, site: Members) -> Scene:
    return Scene(tmp_path, site)


@pytest.fixture
def crawled(scene: Scene) -> Scene:
    """After a crawl in which alice has logged in."""
    scene.accounts(alice=CANARY)
    ended = scene.shoal("crawl", "shop.py")
    assert ended.code == 0, ended
    return scene


def kept(scene: Scene) -> str:
    """What frontier and results keep."""
    with closing(sqlite3.connect(scene.path / "shoal.db")) as db:
        named = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return repr([db.execute(f"SELECT * FROM {name}").fetchall() for (name,) in named])


def test_accounts_are_listed(crawled: Scene) -> None:
    shown = crawled.sessions("list", "shop")
    assert shown.out.startswith("session shop: 1 account, 1 logged in\n")
    assert "shop#alice" in shown.out
    assert "shop#alice" in crawled.sessions("list").out
    (group,) = crawled.sessions("list", "shop", "--json").json()
    (alice,) = group["accounts"]
    assert (alice["logins"], alice["expired"], alice["failures"]) == (1, 0, 0)
    assert alice["requests"] > 1
    assert alice["exit"] is None


def test_one_is_shown_with_its_cookies_and_without_their_values(crawled: Scene) -> None:
    shown = crawled.sessions("show", "shop", "shop#alice")
    assert shown.code == 0, shown
    words = shown.out.split()
    assert {"sid", "127.0.0.1", "logged", "http"} <= set(words)
    told = crawled.sessions("show", "shop", "shop#alice", "--json").json()
    (cookie,) = told["cookies"]
    assert (cookie["name"], cookie["http_only"], cookie["secure"]) == ("sid", True, False)
    assert cookie["expires"] > 0
    assert "value" not in cookie


def test_encrypted_cookies_need_the_key(scene: Scene) -> None:
    scene.accounts(alice=CANARY)
    scene.write("key", base64.b64encode(bytes(range(32))).decode())
    assert scene.shoal("crawl", "shop.py", "--encrypt-key", "file:key").code == 0
    assert CANARY not in kept(scene)
    shown = scene.sessions("show", "shop", "shop#alice")
    assert "they are encrypted, and there is no key here (encrypt_key)" in shown.out
    told = scene.sessions("show", "shop", "shop#alice", "--json").json()
    assert told["cookies"] is None
    with_key = scene.sessions("show", "shop", "shop#alice", "--encrypt-key", "file:key", "--json")
    assert [cookie["name"] for cookie in with_key.json()["cookies"]] == ["sid"]
    without = scene.shoal("crawl", "shop.py")
    assert (without.code, without.err) == (
        2,
        "shoal: encrypt_key: the cookies of shop#alice cannot be read: they are encrypted, and"
        " there is no key here (encrypt_key); shoal sessions logout forgets them\n",
    )


def test_accounts_are_checked(crawled: Scene, site: Members) -> None:
    crawled.accounts(alice=CANARY, bob="old")
    checked = crawled.sessions("check", "shop")
    assert checked.code == 3
    alice, bob = checked.out.splitlines()
    assert alice.startswith("shop#alice  logged in, 3 requests, ")
    assert bob.startswith("shop#bob  failed: no proof of the login on http://127.0.0.1:")
    assert site.users[-2:] == ["alice", "bob"]
    assert crawled.states() == {"shop#alice": "logged in", "shop#bob": "resting"}
    crawled.accounts(alice=CANARY, bob=CANARY)
    (told,) = crawled.sessions("check", "shop", "shop#bob", "--spider", "shop.py", "--json").json()
    assert (told["identity"], told["logged_in"], told["requests"]) == ("shop#bob", True, 3)
    assert crawled.states()["shop#bob"] == "logged in", "its rest is over"


def test_who_is_in_use_is_left_alone(crawled: Scene, site: Members) -> None:
    crawled.hold("shop#alice")
    asked = len(site.users)
    checked = crawled.sessions("check", "shop")
    assert checked.code == 0
    assert checked.out == "shop#alice  left alone: in use, or no exit that it could go by\n"
    assert len(site.users) == asked
    left = crawled.sessions("logout", "shop", "--all")
    assert left.code == 3
    assert left.out == "shop#alice  left alone: in use\n"
    assert crawled.states() == {"shop#alice": "in use"}


def test_a_host_that_is_down_is_no_failure_of_the_account(tmp_path: Path) -> None:
    with serving(Members()) as site:
        scene = Scene(tmp_path, site)
        scene.accounts(alice=CANARY)
        assert scene.shoal("crawl", "shop.py").code == 0
    checked = scene.sessions("check", "shop")
    assert checked.code == 3
    assert checked.out.startswith("shop#alice  failed: 127.0.0.1:")
    assert scene.states() == {"shop#alice": "logged in"}


def test_what_cannot_be_tried_is_no_failure_of_the_account(crawled: Scene, site: Members) -> None:
    table = TABLE.format(site=site.url)
    crawled.write("shoal.toml", table.replace('logged_in = "a.out"', ""))
    checked = crawled.sessions("check", "shop")
    assert checked.code == 3
    assert checked.out.startswith("shop#alice  failed: nothing proves a login")
    crawled.write("shoal.toml", table)
    (crawled.path / "accounts.csv").unlink()
    checked = crawled.sessions("check", "shop")
    assert checked.code == 3
    assert checked.out == "shop#alice  failed: it is no account that is known here\n"
    assert "session shop: file:accounts.csv: No such file or directory" in checked.err
    crawled.write("shoal.toml", "")
    ended = crawled.sessions("check", "shop")
    assert (ended.code, ended.err) == (
        2,
        "shoal: no accounts are known here: write a [sessions.NAME] table for them\n",
    )
    assert crawled.states() == {"shop#alice": "logged in"}


def test_who_is_logged_out_begins_anew(crawled: Scene) -> None:
    assert CANARY in kept(crawled)
    ended = crawled.sessions("logout", "shop", "shop#alice")
    assert (ended.code, ended.out) == (0, "shop#alice  logged out\n")
    assert CANARY not in kept(crawled)
    assert crawled.states() == {"shop#alice": "logged out"}
    failed = IdentityReport(LoginChange.FAILED, "wrong password")
    for _ in range(4):
        crawled.say("shop#alice", failed)
    assert crawled.states() == {"shop#alice": "banned"}
    shown = crawled.call("status", "shop")
    assert "session shop: 1 account, 1 banned (alice: wrong password)" in shown.out
    assert "session shop: all accounts are banned; see why" in shown.out
    assert crawled.sessions("logout", "shop", "shop").code == 0
    assert crawled.states() == {"shop#alice": "logged out"}


def test_mistakes_are_told_in_one_line(crawled: Scene) -> None:
    for args, says in (
        ("list nosuch", "no crawl named 'nosuch' here"),
        ("show shop shop#zoe", "no such account: shop#zoe (sessions: shop)"),
        ("show shop shop", "not an account: shop (write shop#NAME)"),
        ("check shop zoe", "no such account: zoe (sessions: shop)"),
        ("check nosuch", "no crawl named 'nosuch' here"),
        ("logout shop", "name accounts (shop#alice), or use --all"),
        ("logout shop shop#alice --all", "name accounts (shop#alice), or use --all"),
    ):
        ended = crawled.sessions(*args.split())
        assert (ended.code, ended.err.partition(" (see")[0].strip()) == (2, f"shoal: {says}")


def test_a_crawl_without_sessions(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.call("seed", "plain", "https://shop.example/")
    ended = folder.call("sessions", "list", "plain")
    assert (ended.code, ended.err) == (2, "shoal: crawl 'plain': it has no sessions\n")
    assert folder.call("sessions", "list").out == "no accounts: no worker has brought any yet\n"


def test_other_commands_name_accounts_and_no_exits(crawled: Scene) -> None:
    assert crawled.call("proxies", "list").out == "no pools: no worker has brought any yet\n"
    status = crawled.call("status", "shop")
    assert "session shop: 1 account, 1 logged in" in status.out
    told: dict[str, Any] = crawled.call("status", "shop", "--json").json()
    assert told["pools"] == []
    assert told["sessions"][0]["states"] == {"logged in": 1}


def test_a_page_is_explained_by_its_session(crawled: Scene, site: Members) -> None:
    url = f"{site.url}home"
    explained = crawled.call("explain", "shop", url)
    assert "by shop#alice" in explained.out
    assert explained.out == crawled.call("explain", "shop", url, "--session", "shop").out
    for other in ("none", "shop#alice"):
        ended = crawled.call("explain", "shop", url, "--session", other)
        assert ended.code == 0
        assert "never added: no handler or rule followed a link to it" in ended.out
        assert "by shop#alice" in ended.out, "others at this address follow"
    wrong = crawled.call("explain", "shop", url, "--session", "club")
    assert (wrong.code, wrong.err) == (2, "shoal: no such session: club (there are: shop)\n")


def test_a_task_says_which_account_it_waits_for(crawled: Scene, site: Members) -> None:
    url = f"{site.url}orders"
    assert crawled.call("seed", "shop", url).code == 0
    assert "waits for" not in crawled.call("explain", "shop", url).out
    crawled.hold("shop#alice")
    told = crawled.call("explain", "shop", url, "--json").json()
    assert told["verdict"] == "waiting: waits for an account of session shop: 1 in use"
    assert told["record"]["task"]["session"] == "shop"


def test_nobody_forgets_the_session_by_mistake(crawled: Scene, site: Members) -> None:
    crawled.write("shop.py", SPIDER.format(site=site.url).replace('    session = "shop"\n', ""))
    ended = crawled.shoal("crawl", "shop.py")
    assert (ended.code, ended.err) == (
        2,
        "shoal: crawl 'shop' has gone with session shop so far: name it again (--session shop),"
        " or go on without it (--session none)\n",
    )
    assert crawled.shoal("crawl", "shop.py", "--session", "none").code == 0


@pytest.mark.rare
def test_nor_does_an_account_leave_in_another_way_by_mistake(crawled: Scene) -> None:
    """Other workers may be at it, and would leave from their own address at once."""

    async def by_pool(frontier: Frontier) -> None:
        rules = (await frontier.stats("shop")).rules
        await frontier.start("shop", replace(rules, pools=("res",), proxy_pool="res"))
        await frontier.put_pool(PoolRules(name="res"), [ExitEntry("res-1")])
        group = PoolRules(name="@shop", through="res")
        await frontier.put_pool(group, [ExitEntry("@shop#alice")])

    asyncio.run(crawled.ask_frontier(by_pool))
    ended = crawled.shoal("crawl", "shop.py")
    assert ended.code == 2
    assert ended.err.startswith("shoal: crawl 'shop' has gone by pool res so far: name it again")
    (group,) = crawled.sessions("list", "shop", "--json").json()
    assert group["pool"] == "res"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--session", "club"], "session: no such session: club (there are: shop)"),
        (["--session", "shop#zoe"], "[sessions.shop]: no account 'zoe' is in it"),
        (["--accounts", "none.csv"], "[sessions.shop]: file:none.csv: No such file or directory"),
        (["--encrypt-key", "env:NONE"], "encrypt_key: NONE: the variable is not set"),
    ],
)
def test_no_crawl_begins_without_what_it_needs(scene: Scene, options: list[str], says: str) -> None:
    ended = scene.shoal("crawl", "shop.py", *options)
    assert (ended.code, ended.err) == (2, f"shoal: {says}\n")
