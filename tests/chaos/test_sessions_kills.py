"""kill -9 of workers with accounts: no session is used twice at once or lost, and no login is
wasted."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.worker.account_holds import HOLD_S
from support.processes import Running, is_alive, seeded_random
from support.rarely import first_then_rare
from support.redis_chaos import DURABLE
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

pytestmark = pytest.mark.rare

PRODUCTS, WORKERS, KILLS = 150, 4, 4
LONG_S = 100_000.0


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionFolder]:
    if request.param == "sqlite":
        yield SessionFolder(tmp_path)
        return
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield SessionFolder(tmp_path, server.url)


def write(folder: SessionFolder, site: SessionSite) -> None:
    folder.put_group(site)
    folder.put_shop(site, lease_s=LONG_S, max_losses=99)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until_now("its end", lambda: not is_alive(pid))


def kill_some(crawl: Running, site: SessionSite, chance: random.Random) -> None:
    """Kill random workers at random moments before the last quarter of the crawl."""
    first = len(site.door.seen("/product")) + 1
    for moment in sorted(chance.sample(range(first, PRODUCTS * 3 // 4), KILLS)):
        until_now(f"product {moment}", lambda m=moment: len(site.door.seen("/product")) >= m)  # type: ignore[misc]
        until_now("all workers", lambda: len(crawl.workers()) == WORKERS)
        kill(chance.choice(crawl.workers()))


def test_workers_are_killed_in_the_middle_of_sessions(folder: SessionFolder) -> None:
    """The next worker goes on with the session, without a login."""
    chance = seeded_random("kills in the middle of sessions of accounts")
    with serving(SessionSite(ACCOUNTS, PRODUCTS, takes_s=0.05)) as site:
        write(folder, site)
        with folder.running("crawl", "shop.py", "--workers", str(WORKERS)) as crawl:
            until_now("all accounts", lambda: all(site.door.seen("/product", u) for u in USERS))
            kill_some(crawl, site, chance)
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert_honest(site)
        assert sorted(site.door.logins) == sorted(USERS)
        assert_all_found(folder, site)
        stats = folder.stats("shop")
        assert len(site.door.seen("/product")) <= PRODUCTS + stats.lost
        assert all(account.exit.leased == 0 for account in folder.accounts().values())


@pytest.mark.rare
def test_while_sessions_end_all_the_time(folder: SessionFolder) -> None:
    """Only logins that a kill has interrupted are repeated."""
    chance = seeded_random("kills while sessions end")
    with serving(SessionSite(ACCOUNTS, PRODUCTS, takes_s=0.03, ends_after=12)) as site:
        write(folder, site)
        with folder.running("crawl", "shop.py", "--workers", str(WORKERS)) as crawl:
            until_now("a product", lambda: site.door.seen("/product"))
            kill_some(crawl, site, chance)
            ended = crawl.wait()
        assert ended.code == 0, ended
        door = site.door
        assert (door.overlaps, door.violations, door.faults) == ([], [], [])
        assert len(door.needless) <= folder.stats("shop").lost
        assert_all_found(folder, site)


def test_a_worker_is_killed_in_the_middle_of_a_login(folder: SessionFolder) -> None:
    """The site completes the login, but its session is lost: another worker logs in."""
    with serving(SessionSite(ACCOUNTS, 60, takes_s=0.02)) as site:
        write(folder, site)
        site.door.held = "bob"
        with folder.running("crawl", "shop.py", "--workers", str(WORKERS)) as crawl:
            until_now("bob's login", lambda: site.door.is_holding)
            until_now("no other login", lambda: _no_other_login(folder, site))
            worker = folder.accounts()["bob"].state.worker
            pids = {pulse.worker: pulse.pid for pulse in folder.workers("shop")}
            kill(pids[worker])
            site.door.held = ""
            ended = crawl.wait()
        assert ended.code == 0, ended
        door = site.door
        assert (door.overlaps, door.violations, door.faults) == ([], [], [])
        assert set(door.needless) <= {"bob"}
        assert Counter(door.logins) <= Counter({"alice": 1, "bob": 2, "carol": 1})
        assert_all_found(folder, site)


def test_a_check_is_killed_in_the_middle_of_a_login(folder: SessionFolder) -> None:
    """It held the account, and the hold ends soon after its death."""
    with serving(SessionSite(ACCOUNTS, 3)) as site:
        write(folder, site)
        assert folder.shoal("crawl", "shop.py").code == 0
        site.door.held = "bob"
        with folder.running("sessions", "check", "shop", "shop#bob") as check:
            until_now("bob's login", lambda: site.door.is_holding)
            assert folder.shoal("sessions", "logout", "shop", "shop#bob").code == 3, "it is in use"
            check.kill_all()
        left_s = folder.accounts()["bob"].exit.next_at - time.time()
        site.door.held = ""
    assert 0.0 < left_s <= HOLD_S < 120.0


@pytest.mark.rare
def test_all_processes_are_killed_and_the_crawl_goes_on(folder: SessionFolder) -> None:
    """The next run uses the sessions of the one before."""
    with serving(SessionSite(ACCOUNTS, PRODUCTS, takes_s=0.03)) as site:
        write(folder, site)
        with folder.running("crawl", "shop.py", "--workers", "2") as crawl:
            until_now("all accounts", lambda: all(site.door.seen("/product", u) for u in USERS))
            crawl.kill_all()
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert sorted(site.door.logins) == sorted(USERS)
        assert_all_found(folder, site)


def _no_other_login(folder: SessionFolder, site: SessionSite) -> bool:
    """Whether nobody but bob can be logging in: all others have, or the only task is bob's."""
    others = [each for name, each in folder.accounts().items() if name != "bob"]
    return not site.door.seen("/catalog") or all(each.state.is_in for each in others)
