"""The accounts of a worker, what the fleet is told of them, and what no crawl begins with."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from shoal import config
from shoal.config import Settings
from shoal.core.cookies import Cookie, Jar
from shoal.core.exits import Exit, ExitEntry, PoolRules, PoolState
from shoal.core.identities import Account, AccountState
from shoal.core.session_config import SessionConfig
from shoal.errors import ConfigError
from shoal.frontier.port import HasExits
from shoal.sessions.own import OwnSessions, own_sessions
from shoal.sessions.telling import tell_of_sessions
from shoal.sessions.vault import Vault
from support.until import until

CANARY = "canary-4711"
KEY = bytes(range(32))
JAR = Jar((Cookie(name="sid", value=CANARY, domain="shop.example"),))


class Told:
    """What a frontier was told. (The real ones are asked in the contract suite.)"""

    def __init__(self) -> None:
        self.puts: list[tuple[PoolRules, list[ExitEntry]]] = []
        self.jars: dict[str, bytes] = {}

    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        self.puts.append((rules, list(exits)))

    async def pools(self) -> list[PoolState]:
        return [PoolState(rules=rules) for rules, _ in self.puts]

    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        return [
            Account(name=name, exit=Exit(id="", pool=group), state=AccountState(), jar=jar)
            for name, jar in self.jars.items()
        ]

    @property
    def ids(self) -> list[str]:
        return [entry.id for entry in self.puts[-1][1]]

    @property
    def as_frontier(self) -> HasExits:
        return cast(HasExits, self)


def written(folder: Path, *names: str, more: str = "", pools: str = "") -> Settings:
    rows = "".join(f"{name},{CANARY}\n" for name in names)
    (folder / "accounts.csv").write_text(f"user,password\n{rows}", "utf-8")
    text = f"{pools}[sessions.shop]\naccounts = 'file:{folder}/accounts.csv'\n{more}"
    (folder / "shoal.toml").write_text(text, "utf-8")
    return config.load(folder=folder)


def res(folder: Path) -> str:
    (folder / "list.txt").write_text("h.example:80\n")
    return f"[proxies.res]\nfrom = 'file:{folder}/list.txt'\n"


def can_log_in(table: SessionConfig) -> None:
    return None


@asynccontextmanager
async def opened(settings: Settings, told: Told, **environ: str) -> AsyncIterator[OwnSessions]:
    own = own_sessions(settings, told.as_frontier, environ)
    assert own is not None
    await own.open()
    fresh = asyncio.create_task(own.keep_fresh())
    try:
        yield own
    finally:
        fresh.cancel()
        with suppress(asyncio.CancelledError):
            await fresh
        await own.close()


def test_who_has_no_tables_has_no_accounts(tmp_path: Path) -> None:
    assert own_sessions(config.load(folder=tmp_path), Told().as_frontier) is None


async def test_the_fleet_knows_names_and_no_passwords(tmp_path: Path) -> None:
    told = Told()
    settings = written(tmp_path, "alice", "bob", more="concurrency = 2\ntimeout = '30m'\n")
    async with opened(settings, told) as own:
        ((rules, entries),) = told.puts
        assert rules == PoolRules(name="@shop", concurrency=2, timeout_s=1800.0)
        assert [entry.id for entry in entries] == ["@shop#alice", "@shop#bob"]
        assert own.pools == ("@shop",)
        account = own.account("shop#alice")
        assert account is not None
        assert account.fields["password"] == CANARY
        assert own.table("shop#alice").concurrency == 2
    assert CANARY not in repr(told.puts)


async def test_they_are_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    caplog.set_level(logging.INFO, "shoal")
    async with opened(written(tmp_path, "alice", more="refresh = '0.01s'"), told) as own:
        written(tmp_path, "bob", "carol")
        await until("the new ones", lambda: len(told.puts) == 2)
        assert told.ids == ["@shop#bob", "@shop#carol"]
        assert "session shop: 2 accounts, 2 new, 1 gone" in caplog.text
        for broken in ("", "user,password\n", "<html>", None):
            caplog.clear()
            if broken is None:
                (tmp_path / "accounts.csv").unlink()
            else:
                (tmp_path / "accounts.csv").write_text(broken)
            await until("a complaint", lambda: "; it stays as it was" in caplog.text)
            assert own.pools == ("@shop",)
            assert own.account("shop#carol") is not None
            written(tmp_path, "bob", "carol")
            await until("all is well", lambda: not any(own._groups["shop"]._complaints.values()))
    assert len(told.puts) == 2
    assert CANARY not in caplog.text


async def test_a_missing_account_has_them_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    async with opened(written(tmp_path, "alice"), told) as own:
        written(tmp_path, "alice", "bob")
        assert own.account("shop#bob") is None
        assert own.account("other#bob") is None
        await until("bob", lambda: own.account("shop#bob") is not None)
    assert caplog.text.count("shop#bob is no account that is known here") == 1


async def test_several_sources(tmp_path: Path) -> None:
    written(tmp_path, "alice")
    more = '[{"user": "bob"}]'
    sources = [f"file:{tmp_path}/accounts.csv", "env:MORE"]
    settings = config.with_groups(config.build({}), {"shop": SessionConfig(accounts=sources)})
    told = Told()
    async with opened(settings, told, MORE=more):
        assert told.ids == ["@shop#alice", "@shop#bob"]
    twice = {"MORE": '[{"user": "alice"}]'}
    with pytest.raises(
        ConfigError,
        match=r"^\[sessions.shop\]: env:MORE: an account of this name was there before$",
    ):
        await tell_of_sessions(settings, told.as_frontier, can_log_in, twice)


@pytest.mark.parametrize(
    ("more", "proxy_pool", "through"),
    [
        ("", None, ""),
        ("", "res", "res"),
        ("", "direct", ""),
        ("pool = 'res'\n", None, "res"),
        ("pool = 'direct'\n", "res", ""),
    ],
)
async def test_the_way_of_a_group(
    tmp_path: Path, more: str, proxy_pool: str | None, through: str
) -> None:
    settings = written(tmp_path, "alice", more=more, pools=res(tmp_path))
    rules = {"proxy_pool": proxy_pool}
    settings = replaced(settings, **rules)
    told = Told()
    await tell_of_sessions(settings, told.as_frontier, can_log_in)
    assert told.puts[-1][0].through == through


async def test_a_worker_keeps_the_way_that_the_crawl_has_begun_with(tmp_path: Path) -> None:
    told = Told()
    began = replaced(written(tmp_path, "alice", pools=res(tmp_path)), proxy_pool="res")
    await tell_of_sessions(began, told.as_frontier, can_log_in)
    async with opened(written(tmp_path, "alice"), told):
        assert told.puts[-1][0].through == "res"


async def test_another_way_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    settings = written(tmp_path, "alice", pools=res(tmp_path))
    await tell_of_sessions(settings, told.as_frontier, can_log_in)
    await tell_of_sessions(replaced(settings, proxy_pool="res"), told.as_frontier, can_log_in)
    assert "session shop goes by pool res from now on, in all crawls, and no more directly" in (
        caplog.text
    )


def replaced(settings: Settings, **rules: Any) -> Settings:
    return replace(settings, rules=replace(settings.rules, **rules))


@pytest.mark.parametrize(
    ("more", "rules", "says"),
    [
        ("", {"session": "club"}, "session: no such session: club (there are: shop)"),
        ("", {"session": "shop#"}, "session: write shop, or shop#NAME"),
        ("", {"session": "shop#zoe"}, "[sessions.shop]: no account 'zoe' is in it"),
        (
            "fields = { user = '{user}', pin = '{pin}' }\nform = 'form'\nlogin_url = 'http://a.b/'",
            {},
            "[sessions.shop]: fields: the accounts have no column 'pin'",
        ),
        (
            "",
            {"session": "shop", "sessions": ()},
            "session: no such session: shop"
            " (write a table [sessions.shop] in shoal.toml, or name its --accounts)",
        ),
        ("pool = 'res'", {}, "[sessions.shop]: pool: no such pool: res (there are: none)"),
        ("button = 'x'", {"session": "shop"}, "[sessions.shop]: it cannot"),
    ],
)
async def test_what_no_crawl_begins_with(
    tmp_path: Path, more: str, rules: dict[str, Any], says: str
) -> None:
    settings = written(tmp_path, "alice", more="" if "button" in more else more)
    flaw = "it cannot" if "button" in more else None
    with pytest.raises(ConfigError) as raised:
        await tell_of_sessions(replaced(settings, **rules), Told().as_frontier, lambda table: flaw)
    assert str(raised.value) == says


async def test_other_groups_may_be_for_other_spiders(tmp_path: Path) -> None:
    told = Told()
    for session in (None, "none"):
        settings = replaced(written(tmp_path, "alice"), session=session)
        await tell_of_sessions(settings, told.as_frontier, lambda table: "it cannot")
    assert told.ids == ["@shop#alice"]


async def test_no_crawl_begins_with_accounts_that_cannot_be_read(tmp_path: Path) -> None:
    settings = written(tmp_path)
    with pytest.raises(
        ConfigError,
        match=rf"^\[sessions.shop\]: file:{tmp_path}/accounts.csv: no accounts are in it$",
    ):
        await tell_of_sessions(settings, Told().as_frontier, can_log_in)


def keyed(settings: Settings) -> Settings:
    return replace(settings, encrypt_key="env:KEY")


def environ(key: bytes) -> dict[str, str]:
    return {"KEY": base64.b64encode(key).decode()}


async def test_cookies_that_cannot_be_read_are_told_at_the_start(tmp_path: Path) -> None:
    told = Told()
    settings = written(tmp_path, "alice")
    told.jars = {"shop#alice": Vault(KEY).seal("shop#alice", JAR)}
    await tell_of_sessions(keyed(settings), told.as_frontier, can_log_in, environ(KEY))
    for now, variables, says in (
        (settings, {}, "they are encrypted, and there is no key here (encrypt_key)"),
        (keyed(settings), environ(bytes(32)), "they were encrypted with another key"),
    ):
        with pytest.raises(ConfigError) as raised:
            await tell_of_sessions(now, told.as_frontier, can_log_in, variables)
        head = "encrypt_key: the cookies of shop#alice cannot be read: "
        assert str(raised.value).startswith(head + says)
    told.jars = {"shop#alice": Vault().seal("shop#alice", JAR)}
    await tell_of_sessions(keyed(settings), told.as_frontier, can_log_in, environ(KEY))


async def test_no_worker_begins_with_another_key(tmp_path: Path) -> None:
    told = Told()
    told.jars = {"shop#alice": Vault(KEY).seal("shop#alice", JAR)}
    settings = keyed(written(tmp_path, "alice"))
    with pytest.raises(ConfigError, match=r"^encrypt_key: the cookies of shop#alice cannot be"):
        async with opened(settings, told, **environ(bytes(32))):
            pass
    assert told.puts == []


async def test_a_worker_that_cannot_read_cookies_logs_in_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    sealed = Vault(KEY).seal("shop#alice", JAR)
    async with opened(keyed(written(tmp_path, "alice")), told, **environ(KEY)) as own:
        assert own.unseal("shop#alice", sealed) == JAR
        assert own.unseal("shop#alice", own.seal("shop#alice", JAR)) == JAR
        assert own.unseal("shop#bob", sealed) is None
        assert own.unseal("shop#bob", sealed) is None
    said = "session shop#bob: its cookies cannot be read, so it logs in anew: they were encrypted"
    assert caplog.text.count(said) == 1
    assert CANARY not in caplog.text
