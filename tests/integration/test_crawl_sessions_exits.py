"""Accounts that leave by exits: each by its own, and nothing from our own address."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.banning_site import OWN_ADDRESS
from support.exit_crawls import bound, proxies, source_of
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.session_crawls import (
    ACCOUNTS,
    USERS,
    SessionFolder,
    assert_all_found,
    assert_honest,
)
from support.session_site import SessionSite
from support.sites import serving
from support.until import until_now


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def sources_of(site: SessionSite, account: str) -> list[str]:
    """Where the requests of an account came from, each once, in their order."""
    return list(dict.fromkeys(seen.source for seen in site.door.seen(account=account)))


def test_each_account_has_one_address(folder: SessionFolder) -> None:
    """The whole login too, and nothing leaves in another way."""
    with (
        proxies(folder.path, 4) as servers,
        serving(SessionSite(ACCOUNTS, 60, takes_s=0.02)) as site,
    ):
        folder.put_pool("res", [server.url for server in servers])
        folder.put_group(site, pool="res")
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "4")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert sorted(site.door.logins) == sorted(USERS)
        assert {len(sources_of(site, user)) for user in USERS} == {1}
        assert {seen.source for seen in site.door.log} <= {server.source for server in servers}


def test_by_the_pool_of_the_crawl(folder: SessionFolder) -> None:
    """A group that names no pool goes by that of the crawl."""
    exits = bound(3)
    with serving(SessionSite(ACCOUNTS, 30)) as site:
        folder.put_pool("dc", exits)
        folder.put_group(site)
        folder.put_shop(site, proxy_pool="dc")
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert {seen.source for seen in site.door.log} <= {source_of(each) for each in exits}


def test_a_proxy_dies_and_its_account_moves(folder: SessionFolder) -> None:
    """It gets another address, and logs in from there."""
    with (
        proxies(folder.path, 4) as servers,
        serving(SessionSite(ACCOUNTS, 120, takes_s=0.03)) as site,
    ):
        folder.put_pool("res", [server.url for server in servers])
        folder.put_group(site, pool="res")
        folder.put_shop(site, max_retries=20)
        with folder.running("crawl", "shop.py", "--workers", "2") as crawl:
            until_now("all accounts", lambda: set(site.door.logins) == set(USERS))
            until_now("a product", lambda: len(site.door.seen("/product", "alice")) > 3)
            (old,) = sources_of(site, "alice")
            next(server for server in servers if server.source == old).kill()
            ended = crawl.wait()
        assert ended.code == 0, ended
        door = site.door
        assert (door.overlaps, door.violations, door.faults) == ([], [], [])
        assert_all_found(folder, site)
        assert old not in sources_of(site, "alice")[1:]
        assert len(sources_of(site, "alice")) == 2
        assert door.logins.count("alice") == 2
        assert OWN_ADDRESS not in {seen.source for seen in door.log}


def test_more_accounts_than_exits(folder: SessionFolder) -> None:
    """They share exits; an account still has one."""
    accounts = {f"user{number}": "x" for number in range(6)}
    exits = bound(2)
    with serving(SessionSite(accounts, 60, takes_s=0.02)) as site:
        folder.put_pool("res", exits, concurrency=8)
        folder.put_group(site, pool="res")
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        used = set(site.door.logins)
        assert {len(sources_of(site, user)) for user in used} == {1}
        assert {seen.source for seen in site.door.log} <= {source_of(each) for each in exits}


def test_an_account_keeps_its_user_agent(folder: SessionFolder) -> None:
    """Its own column, the group's, or the crawl's: what it logged in as is what it stays."""
    with serving(SessionSite({"alice": "x", "bob": "x"}, 30)) as site:
        folder.write("shop.csv", "user,password,user_agent\nalice,x,Alice/1\nbob,x,\n")
        folder.put_group(site, user_agent="Group/1")
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert {seen.agent for seen in site.door.seen(account="alice")} == {"Alice/1"}
        assert {seen.agent for seen in site.door.seen(account="bob")} == {"Group/1"}
