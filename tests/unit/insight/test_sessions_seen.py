"""What is told of accounts: by `status`, `sessions` and `explain`, and never a cookie's value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shoal.config import Rules
from shoal.core.cookies import Cookie, Jar
from shoal.core.exits import Exit, LaneState, PoolRules, PoolState
from shoal.core.identities import Account, AccountState
from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.exit_lines import exit_lines
from shoal.insight.json import snapshot_json
from shoal.insight.session_lines import session_lines
from shoal.insight.sessions import (
    SessionGroup,
    account_json,
    account_state,
    chosen,
    cookies_json,
    exit_of_try,
    groups_of_crawl,
    session_groups,
    wait_of,
)
from shoal.insight.status import Snapshot, without_exit

CANARY = "canary-4711"
NOW = 1_700_000_000.0


def account(
    name: str, *, leased: int = 0, out_s: float = 0.0, held_s: float = 0.0, **state: Any
) -> Account:
    exit_ = Exit(id=f"@shop#{name}", pool="@shop", leased=leased)
    exit_.out_until = NOW + out_s if out_s else 0.0
    exit_.next_at = NOW + held_s
    return Account(
        name=f"shop#{name}", exit=exit_, state=AccountState(**state), jar=CANARY.encode()
    )


def failed(name: str, *, banned: bool = False) -> Account:
    rest_s = 3e8 if banned else 240.0
    return account(name, out_s=rest_s, failures=1, is_banned=banned, why="wrong password")


ALICE = account("alice", is_in=True)
USED = account("carol", is_in=True, leased=1, worker="w1")
OUT = account("dave")


class Asked:
    """A frontier that knows these accounts."""

    def __init__(self, *accounts: Account, sessions: Sequence[str] = ("shop",)) -> None:
        self._accounts = list(accounts)
        self._sessions = tuple(sessions)

    async def stats(self, crawl: str) -> Stats:
        rules = Rules(sessions=self._sessions)
        return Stats(crawl=crawl, state=CrawlState.RUNNING, rules=rules, created_at=0.0)

    async def pools(self) -> list[PoolState]:
        names = ["res", *(["@shop"] if self._accounts else [])]
        return [PoolState(rules=PoolRules(name=name)) for name in names]

    async def accounts(self, group: str, *, jars: bool = False) -> list[Account]:
        return self._accounts if group == "shop" else []

    @property
    def as_frontier(self) -> QueriesAndNotes:
        return cast(QueriesAndNotes, self)


def group(*accounts: Account) -> SessionGroup:
    return SessionGroup(name="shop", rules=PoolRules(name="@shop"), accounts=list(accounts))


def seen(*accounts: Account, lanes: Sequence[LaneState] = ()) -> Snapshot:
    stats = Stats(crawl="big", state=CrawlState.RUNNING, rules=Rules(), created_at=0.0)
    return Snapshot(
        stats=stats,
        workers=[],
        busiest=[],
        slowest=[],
        failing=[],
        sessions=[group(*accounts)] if accounts else [],
        lanes=list(lanes),
    )


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (ALICE, "logged in"),
        (OUT, "logged out"),
        (USED, "in use"),
        (failed("bob"), "resting"),
        (failed("eve", banned=True), "banned"),
        (account("x", leased=1, is_banned=True), "in use"),
        (account("x", held_s=9.0, is_banned=True), "in use"),
    ],
)
def test_states(told: Account, state: str) -> None:
    assert account_state(told, NOW) == state


def test_a_line_for_each_group() -> None:
    assert session_lines(seen(ALICE, account("zoe", is_in=True), failed("bob")), NOW) == [
        "session shop: 3 accounts, 2 logged in, 1 resting (bob: wrong password, 4m 00s left)"
    ]
    assert session_lines(seen(USED, OUT, account("x", out_s=4.0)), NOW) == [
        "session shop: 3 accounts, 1 in use, 1 logged out, 1 resting (x: 4.0s left)"
    ]
    assert session_lines(seen(), NOW) == []


def test_if_all_are_banned_somebody_must_look() -> None:
    banned = [failed(name, banned=True) for name in "abcde"]
    line, warning = session_lines(seen(*banned), NOW)
    assert line == (
        "session shop: 5 accounts, 5 banned (a: wrong password; b: wrong password;"
        " c: wrong password; 2 more)"
    )
    assert warning == (
        "session shop: all accounts are banned; see why, and log them in again:"
        " shoal sessions check big shop"
    )
    assert len(session_lines(seen(*banned, ALICE), NOW)) == 1


def test_what_waits_for_accounts_waits_for_no_exit() -> None:
    lanes = [
        LaneState(host="a.example", pool="@shop", waiting=7, starved_s=9.0),
        LaneState(host="a.example", pool="@shop#bob", waiting=2, starved_s=9.0),
        LaneState(host="b.example", pool="@shop", waiting=2),
        LaneState(host="a.example", pool="res", waiting=1, starved_s=9.0),
    ]
    told = seen(USED, lanes=lanes)
    assert session_lines(told, NOW)[1:] == ["9 tasks wait for an account of session shop"]
    assert without_exit(told) == 1
    assert exit_lines(told, NOW) == [
        "1 task waits for an exit",
        "a.example: no exit of res could be used for 9.0s",
    ]


def test_as_json_and_without_cookies() -> None:
    (told,) = snapshot_json(seen(ALICE, USED, failed("bob")), NOW)["sessions"]
    assert told["session"] == "shop"
    assert told["states"] == {"in use": 1, "logged in": 1, "resting": 1}
    assert not told["all_banned"]
    bob = told["accounts"][2]
    assert (bob["identity"], bob["resting_s"], bob["why"]) == ("shop#bob", 240.0, "wrong password")
    assert CANARY not in repr(told)
    assert account_json(USED, NOW)["worker"] == "w1"


def test_cookies_are_told_without_their_values() -> None:
    cookie = Cookie(name="sid", value=CANARY, domain="shop.example", secure=True, expires=9.0)
    (told,) = cookies_json(Jar((cookie,)))
    assert told == {
        "name": "sid",
        "domain": "shop.example",
        "path": "/",
        "expires": 9.0,
        "host_only": False,
        "secure": True,
        "http_only": False,
    }


@pytest.mark.parametrize(
    ("session", "accounts", "says"),
    [
        ("shop", [USED, failed("bob")], "an account of session shop: 1 in use, 1 resting"),
        ("shop", [USED, USED, failed("x", banned=True)], "an account of session shop: 2 in use, 1"),
        ("shop#bob", [ALICE, failed("bob")], "account shop#bob: 1 resting"),
        ("shop#zoe", [ALICE], "account shop#zoe: there is none"),
        ("shop", [], "an account of session shop: there is none"),
    ],
)
async def test_what_a_task_waits_for(session: str, accounts: list[Account], says: str) -> None:
    task = Task(url="https://shop.example/", session=session)
    told = await wait_of(Asked(*accounts).as_frontier, task, NOW)
    assert told.startswith(f"waits for {says}")


@pytest.mark.parametrize("session", [None, "none", "shop", "shop#alice"])
async def test_or_it_waits_for_its_host(session: str | None) -> None:
    task = Task(url="https://shop.example/", session=session)
    assert await wait_of(Asked(ALICE, USED).as_frontier, task, NOW) == ""


async def test_groups_are_those_that_the_fleet_was_told_of() -> None:
    frontier = Asked(ALICE).as_frontier
    (found,) = await session_groups(frontier, ["club", "shop"])
    assert (found.name, found.accounts) == ("shop", [ALICE])
    assert await session_groups(frontier, []) == []


async def test_a_crawl_without_accounts() -> None:
    with pytest.raises(ConfigError, match=r"^crawl 'big': it has no sessions$"):
        await groups_of_crawl(Asked(sessions=[]).as_frontier, "big")
    with pytest.raises(ConfigError, match=r"^crawl 'big': no worker has brought any accounts yet$"):
        await groups_of_crawl(Asked().as_frontier, "big")


def test_accounts_are_named_alone_or_by_their_group() -> None:
    groups = [group(ALICE, USED)]
    assert chosen(groups, []) == chosen(groups, ["shop"]) == [ALICE, USED]
    assert chosen(groups, ["shop#carol", "shop"]) == [USED, ALICE]
    for wanted in ("shop#zoe", "alice", "club"):
        with pytest.raises(ConfigError, match=rf"^no such account: {wanted} \(sessions: shop\)$"):
            chosen(groups, [wanted])


def test_the_exit_of_a_try() -> None:
    assert exit_of_try("dc-12345") == "dc-12345"
    assert exit_of_try("shop#alice dc-12345") == "dc-12345"
    assert exit_of_try("shop#alice") == ""
    assert exit_of_try("") == ""
