"""Exits: what is lent becomes a route, and lists are read again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from shoal import config
from shoal.config import Settings
from shoal.core.exits import ExitEntry, Lent, PoolRules
from shoal.errors import ConfigError
from shoal.exits.routes import Exits, check_default_pool
from shoal.frontier.port import HasExits
from support.until import until

CANARY = "canary-4711"


class Told:
    """What a frontier was told. (The real ones are asked in the contract suite.)"""

    def __init__(self) -> None:
        self.puts: list[tuple[PoolRules, list[ExitEntry]]] = []

    async def put_pool(self, rules: PoolRules, exits: Sequence[ExitEntry]) -> None:
        self.puts.append((rules, list(exits)))

    @property
    def as_frontier(self) -> HasExits:
        return cast(HasExits, self)


@asynccontextmanager
async def opened(folder: Path, text: str, **options: Any) -> AsyncIterator[Exits]:
    exits = await Exits.open(settings(folder, text), **options)
    try:
        yield exits
    finally:
        await exits.close()


def settings(folder: Path, text: str) -> Settings:
    (folder / "shoal.toml").write_text(text, "utf-8")
    return config.load(folder=folder)


def listed(folder: Path, *lines: str) -> str:
    (folder / "list.txt").write_text("\n".join(lines))
    return f"[proxies.dc]\nfrom = 'file:{folder}/list.txt'\nrefresh = '0.01s'\n"


async def test_what_is_lent_becomes_a_route(tmp_path: Path) -> None:
    text = listed(tmp_path, "socks5://me:pw@h.example:80", "bind://192.0.2.1")
    async with opened(tmp_path, text + "tunnel = 'always'\n") as exits:
        assert exits.pools == ("dc",)
        proxy, own = exits.pool("dc").entries
        route = exits.route(Lent(proxy.id, pool="dc"), "dc")
        assert route is not None
        assert route.proxy is not None
        assert (route.name, route.proxy.user, route.tunnels_all) == (proxy.id, "me", True)
        assert not route.allows_direct
        bound = exits.route(Lent(own.id, pool="dc"), "dc")
        assert bound is not None
        assert str(bound.proxy) == "bind://192.0.2.1"


async def test_what_is_not_known_here_has_no_route(tmp_path: Path) -> None:
    async with opened(tmp_path, listed(tmp_path, "h.example:80")) as exits:
        assert exits.route(Lent("dc-0000000000", pool="dc"), "dc") is None
        assert exits.route(Lent("res-0000000000", pool="res"), "dc") is None
        assert exits.route(Lent("", pool="res"), "res") is None


async def test_no_request_leaves_directly_unless_the_pool_allows_it_here(tmp_path: Path) -> None:
    text = listed(tmp_path, "h.example:80")
    async with opened(tmp_path, text) as exits:
        assert exits.route(Lent("", pool="dc"), "dc") is None
    async with opened(tmp_path, text + "allow_direct = true\n") as exits:
        route = exits.route(Lent("", pool="dc"), "dc")
        assert route is not None
        assert route.proxy is None
        assert route.allows_direct


async def test_the_fleet_is_told_of_what_changed_and_of_no_secret(tmp_path: Path) -> None:
    told = Told()
    async with opened(tmp_path, listed(tmp_path, f"h.example:80:{CANARY}:{CANARY}")) as exits:
        await exits.put(told.as_frontier)
        await exits.put(told.as_frontier)
        ((rules, entries),) = told.puts
        assert rules.name == "dc"
        assert CANARY not in repr(told.puts)
        assert [entry.id for entry in entries] == [entry.id for entry in exits.pool("dc").entries]


async def test_a_list_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    caplog.set_level(logging.INFO, "shoal")
    async with opened(tmp_path, listed(tmp_path, "a.example:80")) as exits:
        await exits.put(told.as_frontier)
        (old,) = exits.pool("dc").entries
        fresh = asyncio.create_task(exits.keep_fresh(told.as_frontier))
        try:
            listed(tmp_path, "b.example:80", "c.example:80")
            await until("the new list", lambda: len(told.puts) == 2)
            assert exits.route(Lent(old.id, pool="dc"), "dc") is None
            (tmp_path / "list.txt").unlink()
            await until("a complaint", lambda: "stays as it was" in caplog.text)
            assert len(exits.pool("dc").entries) == 2
        finally:
            fresh.cancel()
            with suppress(asyncio.CancelledError):
                await fresh
        assert len(told.puts) == 2
        assert "pool dc: 2 exits, 2 new, 1 gone" in caplog.text
        assert caplog.text.count("stays as it was") == 1, "said once"


async def test_bad_lines_are_told_once_and_without_secrets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = listed(tmp_path, "a.example:80", f"b.example:{CANARY}", f"c.example:{CANARY}")
    async with opened(tmp_path, text) as exits:
        assert len(exits.pool("dc").entries) == 1
    assert "pool dc: 2 lines are no proxies (line 2: not a proxy" in caplog.text
    assert CANARY not in caplog.text


async def test_who_begins_is_told_of_what_a_worker_lives_with(tmp_path: Path) -> None:
    text = f"[proxies.dc]\nfrom = 'file:{tmp_path}/none'\n"
    told = Told()
    async with opened(tmp_path, text) as exits:
        assert exits.pools == ()
        await exits.put(told.as_frontier)
        assert not told.puts, "what nobody could read does not empty the pool of others"
    with pytest.raises(ConfigError, match=r"^\[proxies.dc\]: file:.*none: No such file"):
        await Exits.open(settings(tmp_path, text), strict=True)
    with pytest.raises(ConfigError, match=r"^\[proxies.dc\]: no proxies are in its list$"):
        await Exits.open(settings(tmp_path, listed(tmp_path, "# none")), strict=True)


def test_the_pool_of_a_crawl_must_be_one(tmp_path: Path) -> None:
    text = listed(tmp_path, "a.example:80")
    (tmp_path / "shoal.toml").write_text(text)
    for chosen in ("dc", "direct", None):
        check_default_pool(config.load(folder=tmp_path, options={"proxy_pool": chosen}))
    with pytest.raises(ConfigError, match=r"^proxy_pool: no such pool: res \(there are: dc\)$"):
        check_default_pool(config.load(folder=tmp_path, options={"proxy_pool": "res"}))


async def test_a_page_in_place_of_a_list_empties_no_pool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Providers answer with a page that says why there is no list today."""
    text = listed(tmp_path, "a.example:80")
    told = Told()
    async with opened(tmp_path, text) as exits:
        (kept,) = exits.pool("dc").entries
        listed(tmp_path, "<html>", f"<h1>Sorry {CANARY}</h1>")
        await exits.read_again(told.as_frontier)
        assert exits.pool("dc").entries == [kept]
    assert "none of its lines is a proxy (line 1: not a proxy" in caplog.text
    assert "it stays as it was" in caplog.text
    assert CANARY not in caplog.text
