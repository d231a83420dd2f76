"""Accounts that cannot log in: they rest, are banned in the end, and hold up nobody else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.core.identity_policy import RESTS_S
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
from support.until import until_now

pytestmark = pytest.mark.rare

LONG_S = 100_000.0
WRONG = {**ACCOUNTS, "carol": "not her password"}


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


@pytest.mark.parametrize("by_form", [True, False], ids=["form", "method"])
def test_one_of_three_passwords_is_wrong(folder: SessionFolder, by_form: bool) -> None:
    """The others do all the work, and who runs the crawl is told."""
    with serving(SessionSite(ACCOUNTS, 30, takes_s=0.02)) as site:
        folder.put_accounts(WRONG)
        if by_form:
            folder.put_group(site)
        else:
            folder.put_plain_group()
        folder.put_shop(site, "" if by_form else LOGIN)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert site.door.refused == ["carol"]
        assert sorted(site.door.logins) == ["alice", "bob"]
    assert re.search("WARNING.* shop#carol could not log in: ", ended.err), ended.err
    told = folder.shoal("status", "shop").out
    assert "session shop: 3 accounts, 2 logged in, 1 resting (carol: " in told, told
    carol = folder.accounts()["carol"].state
    assert (carol.failures, carol.is_in, carol.is_banned) == (1, False, False)
    assert carol.why


def test_all_passwords_are_wrong(folder: SessionFolder) -> None:
    """What waits dies after the group's timeout, and says why."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts(dict.fromkeys(ACCOUNTS, "wrong"))
        folder.put_group(site, timeout="2s")
        folder.put_shop(site)
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 3, ended
        assert sorted(site.door.refused) == sorted(ACCOUNTS)
        assert site.door.seen("/catalog") == []
    told = folder.shoal("dead", "list", "shop").out
    assert "no account of session shop could be used for 2s: 3 accounts, 3 resting" in told, told


def test_after_four_failures_an_account_is_banned(folder: SessionFolder) -> None:
    """Each rest is longer than the one before; what waits for nobody else dies at once."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts({"carol": "wrong"})
        folder.put_group(site)
        folder.put_shop(site, lease_s=LONG_S)
        with folder.running("crawl", "shop.py") as crawl:
            for number, rest_s in enumerate(RESTS_S, 1):
                until_now(f"failure {number}", lambda n=number: _failures(folder) == n)  # type: ignore[misc]
                assert len(site.door.refused) == number
                folder.pass_time(rest_s)
            ended = crawl.wait()
        assert ended.code == 3, ended
        assert site.door.refused == ["carol"] * 4
    state = folder.accounts()["carol"].state
    assert (state.failures, state.is_banned) == (4, True)
    told = folder.shoal("dead", "list", "shop").out
    assert "no account of session shop can be used: 1 account, 1 banned" in told, told


def test_who_is_banned_begins_anew_when_somebody_says_so(folder: SessionFolder) -> None:
    """The password was changed in the file, and `shoal sessions logout` lifts the ban."""
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts({"carol": "wrong"})
        folder.put_group(site, timeout="2s")
        folder.put_shop(site)
        assert folder.shoal("crawl", "shop.py").code == 3
        folder.put_accounts({"carol": ACCOUNTS["carol"]})
        assert folder.shoal("sessions", "logout", "shop", "shop#carol").code == 0
        assert folder.shoal("dead", "retry", "shop").code == 0
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)


def test_a_host_that_is_down_is_no_failure_of_the_account(folder: SessionFolder) -> None:
    with serving(SessionSite(ACCOUNTS)) as site:
        folder.put_accounts(ACCOUNTS)
        folder.put_group(site, login_url="http://127.0.0.1:9/login")
        folder.put_shop(site, max_retries=1)
        ended = folder.shoal("crawl", "shop.py")
        assert ended.code == 3, ended
        assert site.door.log == []
    assert [account.state.failures for account in folder.accounts().values()] == [0, 0, 0]


def test_accounts_come_and_go_while_a_crawl_runs(folder: SessionFolder) -> None:
    """The file is read again: who is new is used, who is gone is not."""
    with serving(SessionSite(ACCOUNTS, 150, takes_s=0.05)) as site:
        folder.put_accounts({"alice": ACCOUNTS["alice"]})
        folder.put_group(site, refresh="1s")
        folder.put_shop(site)
        with folder.running("crawl", "shop.py", "--workers", "2") as crawl:
            until_now("alice", lambda: len(site.door.seen("/product", "alice")) > 3)
            folder.put_accounts({"bob": ACCOUNTS["bob"]})
            until_now("bob", lambda: len(site.door.seen("/product", "bob")) > 3)
            until_now("alice's end", lambda: set(folder.accounts()) == {"bob"})
            before = len(site.door.seen("/product", "alice"))
            ended = crawl.wait()
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
        assert len(site.door.seen("/product", "alice")) <= before + 1
        assert site.door.logins == ["alice", "bob"]


def _failures(folder: SessionFolder) -> int:
    carol = folder.accounts().get("carol")
    return carol.state.failures if carol else 0
