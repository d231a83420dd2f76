"""Decisions about identities: every rule by itself."""

from __future__ import annotations

from math import inf

import pytest

from shoal.core import identity_policy as policy
from shoal.core.exits import Exit, Pair, PoolRules
from shoal.core.identities import (
    Account,
    AccountState,
    IdentityReport,
    LeasedIdentity,
    LoginChange,
    account_of,
    group_of,
    is_group,
    pool_of_session,
    session_of_pool,
)

NOW = 1_700_000_000.0
RULES = PoolRules(name="@shop", concurrency=2)
IN = IdentityReport(LoginChange.IN, user_agent="Mozilla", login_url="http://a.example/login")
OUT = IdentityReport(LoginChange.OUT)
FAILED = IdentityReport(LoginChange.FAILED, reason="captcha")


def account(**fields: object) -> Exit:
    return Exit(id="@shop#alice", pool="@shop", **fields)  # type: ignore[arg-type]


def way(**fields: object) -> Exit:
    return Exit(id="res-1", pool="res", **fields)  # type: ignore[arg-type]


class TestNames:
    @pytest.mark.parametrize("session", ["shop", "shop#alice", "shop#a@b.example"])
    def test_of_sessions_among_pools(self, session: str) -> None:
        pool = pool_of_session(session)
        assert is_group(pool)
        assert session_of_pool(pool) == session
        assert group_of(pool) == "@shop"
        assert account_of(pool) == (pool if "#" in session else "")

    def test_of_pools_are_their_own(self) -> None:
        for pool in ("dc", "dc#1"):
            assert not is_group(pool)
            assert (group_of(pool), account_of(pool)) == (pool, "")


class TestSecrets:
    def test_no_cookie_is_shown(self) -> None:
        jar = b"canary-4711"
        values = (
            LeasedIdentity("shop#alice", jar=jar),
            IdentityReport(jar=jar),
            Account(name="shop#alice", exit=account(), state=AccountState(), jar=jar),
        )
        assert "canary" not in f"{values} {values!r}"


class TestWhoMayUseIt:
    def test_anybody_while_nothing_is_in_flight(self) -> None:
        for state in (AccountState(), AccountState(is_in=True)):
            assert policy.may_use(state, account(), "w")
            assert policy.ready_at(state, account(), RULES) == 0.0

    def test_then_only_who_uses_it(self) -> None:
        state = AccountState(is_in=True, worker="w")
        assert policy.may_use(state, account(leased=1), "w")
        assert not policy.may_use(state, account(leased=1), "another")
        assert policy.ready_at(state, account(leased=1), RULES) == 0.0
        assert policy.ready_at(state, account(leased=2), RULES) == inf

    def test_and_nobody_while_it_is_to_log_in(self) -> None:
        state = AccountState(worker="w")
        assert not policy.may_use(state, account(leased=1), "w")
        assert policy.ready_at(state, account(leased=1), RULES) == inf

    def test_it_is_free_when_the_last_lease_has_ended(self) -> None:
        state = AccountState()
        policy.lend(state, "w")
        policy.unlend(state, account(leased=1))
        assert state.worker == "w"
        policy.unlend(state, account())
        assert state.worker == ""

    def test_those_that_are_logged_in_go_first(self) -> None:
        out, in_ = AccountState(), AccountState(is_in=True)
        used, unused = account(used_at=NOW), account(used_at=0.0)
        ranks = [policy.rank_at(*each) for each in ((in_, unused), (in_, used), (out, unused))]
        assert ranks == sorted(ranks)
        assert policy.rank_at(in_, account(used_at=2 * NOW)) < policy.rank_at(out, unused)

    def test_it_rests_when_its_worker_is_gone(self) -> None:
        exit_ = account()
        policy.after_loss(exit_, NOW)
        assert exit_.out_until == NOW + policy.LOST_REST_S
        exit_.out_until = NOW + 1000.0
        policy.after_loss(exit_, NOW)
        assert exit_.out_until == NOW + 1000.0, "never shorter than it was"


class TestLogins:
    def test_a_login(self) -> None:
        state = AccountState(failures=3, why="captcha", is_banned=True)
        exit_ = account(out_until=NOW + 99.0)
        policy.after_report(state, exit_, IN, NOW)
        assert state == AccountState(
            is_in=True,
            logins=1,
            login_at=NOW,
            user_agent="Mozilla",
            login_url="http://a.example/login",
        )
        assert exit_.out_until == 0.0

    def test_its_end_is_counted_once(self) -> None:
        state = AccountState(is_in=True, logins=1, user_agent="Mozilla")
        for _ in range(3):
            policy.after_report(state, account(), OUT, NOW)
        assert (state.is_in, state.expired, state.user_agent) == (False, 1, "Mozilla")

    def test_failures_rest_longer_each_time_and_end_in_a_ban(self) -> None:
        state, exit_ = AccountState(is_in=True), account()
        for number, rest_s in enumerate((*policy.RESTS_S, policy.BANNED_S), 1):
            policy.after_report(state, exit_, FAILED, NOW)
            assert exit_.out_until == NOW + rest_s
            assert (state.is_in, state.failures, state.why) == (False, number, "captcha")
        assert state.is_banned

    def test_nothing_new(self) -> None:
        state, exit_ = AccountState(is_in=True, failures=1), account(out_until=5.0)
        policy.after_report(state, exit_, IdentityReport(), NOW)
        assert (state, exit_.out_until) == (AccountState(is_in=True, failures=1), 5.0)

    @pytest.mark.parametrize("rest_s", [0.0, 60.0])
    def test_a_request_that_was_given_up(self, rest_s: float) -> None:
        state, exit_ = AccountState(is_in=True), account(out_until=NOW + rest_s)
        policy.after_report(state, exit_, IdentityReport(LoginChange.CUT), NOW)
        assert state == AccountState(is_in=True)
        assert exit_.out_until == NOW + max(rest_s, policy.LOST_REST_S)

    def test_who_logs_it_out_by_hand_lifts_a_ban(self) -> None:
        state = AccountState(failures=4, is_banned=True, why="captcha", expired=2)
        exit_ = account(out_until=NOW + policy.BANNED_S)
        policy.forget_login(state, exit_)
        assert (state, exit_.out_until) == (AccountState(expired=2), 0.0)


class TestHolds:
    def test_last_as_long_as_was_said(self) -> None:
        exit_ = account()
        assert not policy.is_held(exit_, NOW)
        policy.hold(exit_, NOW + 60.0)
        assert policy.is_held(exit_, NOW + 59.0)
        assert not policy.is_held(exit_, NOW + 60.0)
        assert policy.ready_at(AccountState(), exit_, RULES) == NOW + 60.0

    @pytest.mark.parametrize("report", [IN, OUT, FAILED, IdentityReport()])
    def test_end_with_a_word(self, report: IdentityReport) -> None:
        state = AccountState(is_in=True, failures=1)
        exit_ = account(out_until=NOW + 99.0, next_at=NOW + 60.0)
        policy.let_go(state, exit_, report, NOW)
        assert not policy.is_held(exit_, NOW)
        assert state.is_in == (report in (IN, IdentityReport()))
        assert state.failures == {LoginChange.FAILED: 2, LoginChange.NONE: 1}.get(report.change, 0)


class TestBinding:
    def test_an_account_keeps_its_exit(self) -> None:
        state = AccountState(is_in=True)
        policy.bind(state, way(session=3))
        assert (state.through, state.through_session, state.is_in) == ("res-1", 3, False)
        state.is_in = True
        policy.bind(state, way(session=3))
        assert state.is_in, "it is the same address"
        assert policy.is_bound(state, way(session=3), None, NOW)
        assert policy.is_bound(state, way(session=3), Pair(cool_until=NOW), NOW)
        assert policy.is_bound(state, way(session=3, leased=9, next_at=NOW + 5), None, NOW)

    @pytest.mark.parametrize(
        ("through", "pair"),
        [
            (None, None),
            (way(session=4), None),
            (way(session=3, is_listed=False), None),
            (way(session=3, out_until=NOW + 1.0), None),
            (way(session=3), Pair(cool_until=NOW + 1.0)),
        ],
        ids=["gone", "another session", "not listed", "out", "cooling"],
    )
    def test_until_it_cannot(self, through: Exit | None, pair: Pair | None) -> None:
        state = AccountState(through="res-1", through_session=3)
        assert not policy.is_bound(state, through, pair, NOW)

    def test_one_that_has_none(self) -> None:
        assert not policy.is_bound(AccountState(), way(), None, NOW)


class TestReasons:
    @pytest.mark.parametrize(
        ("listed", "resting", "banned", "expected"),
        [
            (0, 0, 0, "can be used: it has none"),
            (1, 0, 1, "can be used: 1 account, 1 banned"),
            (2, 2, 0, "could be used for 1m: 2 accounts, 2 resting"),
            (3, 1, 2, "could be used for 1m: 3 accounts, 1 resting, 2 banned"),
        ],
    )
    def test_tell_how_the_accounts_are_doing(
        self, listed: int, resting: int, banned: int, expected: str
    ) -> None:
        counts = {"listed": listed, "resting": resting, "banned": banned}
        found = policy.starved_reason("shop", 60.0, **counts)
        assert found == f"no account of session shop {expected}"
