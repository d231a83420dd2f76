"""Decisions about exits: every rule by itself, and what holds whatever comes."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import exit_policy as policy
from shoal.core.exits import Exit, Lane, Pair, PoolRules, Spent

NOW = 1_700_000_000.0
RULES = PoolRules(name="dc")
HOST = "a.example"


def an_exit(**fields: object) -> Exit:
    return Exit(id="dc-1", pool="dc", **fields)  # type: ignore[arg-type]


class TestScore:
    def test_what_is_not_known_is_good(self) -> None:
        assert policy.score_at(None, an_exit(), NOW) == 1.0

    def test_halves_with_time(self) -> None:
        assert policy.faded(8.0, NOW, NOW + policy.HALF_LIFE_S) == pytest.approx(4.0)
        assert policy.faded(8.0, NOW, NOW - 1.0) == 8.0, "a clock may be a little behind"

    def test_what_it_does_elsewhere_stands_for_what_is_not_known_here(self) -> None:
        exit_ = an_exit(bad=2.0, scored_at=NOW)
        assert policy.score_at(None, exit_, NOW) == pytest.approx(0.5)
        assert policy.score_at(Pair(scored_at=NOW), exit_, NOW) == pytest.approx(0.5)
        good = Pair(good=6.0, scored_at=NOW)
        assert policy.score_at(good, exit_, NOW) == pytest.approx((6 + 2 * 0.5) / 8)

    @given(*[st.floats(0, 1e6)] * 3)
    def test_is_a_share(self, good: float, bad: float, age: float) -> None:
        pair = Pair(good=good, bad=bad, scored_at=NOW)
        assert 0.0 <= policy.score_at(pair, an_exit(), NOW + age) <= 1.0


class TestWhenAnExitMayBeUsed:
    def test_after_its_own_pace_and_when_it_is_not_out(self) -> None:
        assert policy.exit_ready_at(an_exit(next_at=5.0, out_until=3.0), RULES) == 5.0
        assert policy.exit_ready_at(an_exit(next_at=5.0, out_until=7.0), RULES) == 7.0

    def test_never_while_it_is_full_or_not_listed(self) -> None:
        assert policy.exit_ready_at(an_exit(leased=8), RULES) == inf
        assert policy.exit_ready_at(an_exit(is_listed=False), RULES) == inf

    def test_one_at_a_time_after_it_was_out(self) -> None:
        exit_ = an_exit(faults=policy.FAULTS_OUT)
        assert policy.exit_limit(exit_, RULES) == 1
        exit_.leased = 1
        assert policy.exit_ready_at(exit_, RULES) == inf

    def test_at_a_host(self) -> None:
        assert policy.pair_ready_at(None) == 0.0
        assert policy.pair_ready_at(Pair(next_at=5.0, cool_until=7.0)) == 7.0
        assert policy.pair_ready_at(Pair(level=1, is_tried=True)) == inf
        assert policy.pair_ready_at(Pair(level=0, is_tried=True, next_at=2.0)) == 2.0

    def test_what_was_said_of_another_session_is_nothing(self) -> None:
        pair = Pair(session=1, cool_until=inf)
        assert policy.valid_pair(pair, an_exit(session=1)) is pair
        assert policy.valid_pair(pair, an_exit(session=2)) is None
        assert not policy.is_of_session(an_exit(session=2), 1)


class TestLending:
    def test_moves_its_clock_and_counts_it(self) -> None:
        rules = PoolRules(name="dc", interval_s=2.0)
        exit_ = an_exit()
        assert policy.lend(exit_, None, rules, NOW) is None, "there is nothing to say of the host"
        assert (exit_.leased, exit_.next_at) == (1, NOW + 2.0)
        assert exit_.used_at == pytest.approx(NOW, abs=0.001)
        policy.unlend(exit_, None, NOW)
        assert exit_.leased == 0

    def test_a_pair_has_its_own_pace(self) -> None:
        rules = PoolRules(name="dc", pair_interval_s=3.0)
        pair = policy.lend(an_exit(session=4), None, rules, NOW)
        assert pair is not None
        assert (pair.session, pair.next_at, pair.is_tried) == (4, NOW + 3.0, False)

    def test_sticks_from_the_first_visit_on_for_a_time(self) -> None:
        rules = PoolRules(name="dc", sticky_s=60.0)
        exit_ = an_exit()
        pair = policy.lend(exit_, None, rules, NOW)
        pair = policy.lend(exit_, pair, rules, NOW + 59.0)
        assert pair is not None
        assert pair.since == NOW
        assert policy.is_sticking(pair, rules, NOW + 59.9)
        assert not policy.is_sticking(pair, rules, NOW + 60.0)
        pair = policy.lend(exit_, pair, rules, NOW + 61.0)
        assert pair is not None
        assert pair.since == NOW + 61.0

    def test_on_probation_one_is_in_flight(self) -> None:
        exit_, pair = an_exit(), Pair(level=2, blocked_at=NOW - 1000.0)
        policy.lend(exit_, pair, RULES, NOW)
        assert policy.pair_ready_at(pair) == inf
        policy.unlend(exit_, pair, NOW - 2000.0)
        assert pair.is_tried, "that one left before the block"
        policy.unlend(exit_, pair, NOW)
        assert not pair.is_tried


def blocked(
    exit_: Exit, pair: Pair | None, now: float = NOW, *, dice: float = 0.0, after_s: float = 0.0
) -> Pair:
    kept = policy.after_block(exit_, pair, RULES, now, now - 1.0, after_s, dice)
    assert kept is not None
    return kept


class TestBlocks:
    def test_cool_twice_as_long_each_time_up_to_a_limit(self) -> None:
        exit_, pair, now = an_exit(), None, NOW
        waits = []
        for _ in range(12):
            pair = blocked(exit_, pair, now, dice=1.0)
            waits.append(pair.cool_until - now)
            now = pair.cool_until + 2.0
        assert waits == pytest.approx([300.0, 600.0, 1200.0, 2400.0, 4800.0] + [7200.0] * 7)
        assert pair is not None
        assert pair.level == policy.MAX_LEVEL

    def test_are_spread_over_the_upper_half_or_as_long_as_the_host_says(self) -> None:
        assert blocked(an_exit(), None, dice=0.0).cool_until == NOW + 150.0
        assert blocked(an_exit(), None, after_s=1000.0).cool_until == NOW + 1000.0

    def test_of_what_left_before_the_last_one_say_nothing_new(self) -> None:
        exit_ = an_exit()
        pair = blocked(exit_, None)
        before = (pair.level, pair.cool_until, exit_.bad)
        policy.after_block(exit_, pair, RULES, NOW + 1.0, NOW - 0.5, 0.0, 0.9)
        assert (pair.level, pair.cool_until, exit_.bad) == before

    def test_a_good_answer_halves_the_level(self) -> None:
        exit_, pair = an_exit(), Pair(level=5, blocked_at=NOW)
        policy.after_good(exit_, pair, NOW + 10.0, NOW - 1.0)
        assert pair.level == 5, "that one left before the block"
        policy.after_good(exit_, pair, NOW + 10.0, NOW + 5.0)
        assert pair.level == 2

    def test_show_that_the_exit_works(self) -> None:
        exit_ = an_exit(faults=2)
        blocked(exit_, None)
        assert exit_.faults == 0

    def test_of_a_gateway_make_it_another_session(self) -> None:
        exit_ = an_exit()
        rules = PoolRules(name="dc", is_gateway=True)
        assert policy.after_block(exit_, None, rules, NOW, NOW - 1.0, 0.0, 0.0) is None
        assert exit_.session == 1


class TestFaults:
    def test_three_in_a_row_put_it_out_longer_each_time(self) -> None:
        exit_, now = an_exit(), NOW
        waits = []
        for _ in range(11):
            policy.after_fault(exit_, now, now)
            waits.append(max(exit_.out_until - now, 0.0))
            now = max(exit_.out_until, now) + 1.0
        assert waits == [0, 0, 10, 20, 40, 80, 160, 320, 600, 600, 600]

    def test_of_what_left_before_it_was_out_say_nothing_new(self) -> None:
        exit_ = an_exit(faults=3, out_at=NOW, out_until=NOW + 10.0)
        policy.after_fault(exit_, NOW + 1.0, NOW - 1.0)
        assert (exit_.faults, exit_.out_until) == (3, NOW + 10.0)

    def test_an_answer_ends_the_row(self) -> None:
        exit_ = an_exit(faults=5, out_at=NOW, out_until=NOW + 40.0)
        policy.after_good(exit_, None, NOW + 1.0, NOW - 1.0)
        assert exit_.faults == 5, "that one left before it was out"
        policy.after_good(exit_, None, NOW + 50.0, NOW + 41.0)
        assert (exit_.faults, exit_.out_until) == (0, 0.0)

    def test_who_forges_is_out_at_once_and_for_long(self) -> None:
        exit_ = an_exit()
        policy.after_fault(exit_, NOW, NOW, forged=True)
        assert exit_.out_until == NOW + policy.OUT_LIMIT_S


class TestUnreached:
    def test_the_pair_cools_for_a_moment(self) -> None:
        pair, is_host = policy.after_unreached(an_exit(), None, Lane(), HOST, NOW, NOW - 1.0)
        assert (pair.cool_until, is_host) == (NOW + 10.0, False)

    def test_if_three_exits_agree_it_is_the_host(self) -> None:
        lane = Lane()
        said = [
            policy.after_unreached(Exit(id=f"dc-{n}", pool="dc"), None, lane, HOST, NOW + n, NOW)[1]
            for n in range(3)
        ]
        assert said == [False, False, True]

    def test_if_three_hosts_agree_it_is_the_exit(self) -> None:
        exit_ = an_exit()
        for n in range(3):
            policy.after_unreached(exit_, None, Lane(), f"{n}.example", NOW + n, NOW + n)
        assert exit_.out_until > NOW

    def test_not_if_that_took_longer(self) -> None:
        lane, exit_ = Lane(), an_exit()
        for n in range(9):
            now = NOW + n * policy.AGREE_S
            other = Exit(id=f"dc-{n}", pool="dc")
            assert not policy.after_unreached(other, None, lane, HOST, now, now)[1]
            policy.after_unreached(exit_, None, Lane(), f"{n}.example", now, now)
        assert exit_.out_until == 0.0


def count(lane: Lane, blocks: str, *, exits: int = 9, now: float = NOW) -> list[bool]:
    """Count answers: x is a block, each by the next exit; i one by the first."""
    return [
        policy.count_answer(
            lane, "dc-0" if at == "i" else f"dc-{n}", now, is_block=at in "xi", exits=exits
        )
        for n, at in enumerate(blocks)
    ]


class TestSiteWide:
    def test_half_of_ten_by_three_exits(self) -> None:
        assert count(Lane(), ".....xxxxx") == [False] * 9 + [True]

    @pytest.mark.parametrize("answers", ["......xxxx", "xxxxxxxxx", "iiiiiiiiii", "iiiiiiiiix"])
    def test_less_is_not(self, answers: str) -> None:
        assert not any(count(Lane(), answers))

    def test_all_exits_are_enough_where_there_are_fewer(self) -> None:
        assert count(Lane(), "iiiiiiiiii", exits=1)[-1]
        assert count(Lane(), "iiiiiiiiix", exits=2)[-1]

    def test_within_a_minute(self) -> None:
        lane = Lane()
        assert not any(count(lane, "xxxxxxxxx"))
        assert not any(count(lane, "xxxxxxxxx", now=NOW + policy.WINDOW_S))

    def test_then_the_count_begins_anew(self) -> None:
        lane = Lane()
        assert count(lane, "x" * 20) == ([False] * 9 + [True]) * 2

    @given(st.text("x.i", max_size=60), st.integers(0, 5))
    def test_never_by_less_than_half(self, answers: str, exits: int) -> None:
        lane, since = Lane(), 0
        for number, said in enumerate(count(lane, answers, exits=exits), 1):
            if said:
                window = answers[since:number]
                assert len(window) >= policy.WINDOW_ANSWERS
                assert 2 * (len(window) - window.count(".")) >= len(window)
                since = number
        assert len(lane.blocked_exits) <= policy.BLOCKED_EXITS


def pools(**up: str) -> dict[str, PoolRules]:
    return {name: PoolRules(name=name, escalate_to=to) for name, to in up.items()}


class TestTiers:
    def test_one_above_the_other(self) -> None:
        assert policy.tiers("a", pools(a="b", b="c", c="")) == ["a", "b", "c"]

    def test_never_in_a_circle_nor_to_what_is_not_known(self) -> None:
        assert policy.tiers("a", pools(a="b", b="a")) == ["a", "b"]
        assert policy.tiers("a", pools(a="a")) == ["a"]
        assert policy.tiers("a", pools(a="b")) == ["a"]
        assert policy.tiers("a", {}) == ["a"]

    def test_are_few(self) -> None:
        many = pools(**{f"p{n}": f"p{n + 1}" for n in range(20)})
        assert len(policy.tiers("p0", many)) == policy.MAX_TIER + 1

    def test_up_and_down_again(self) -> None:
        lane = Lane()
        policy.go_up(lane, NOW)
        assert (lane.tier, lane.probe_at) == (1, NOW + policy.PROBE_EVERY_S)
        for _ in range(policy.GOOD_PROBES - 1):
            policy.after_probe(lane, NOW, is_good=True)
        policy.after_probe(lane, NOW, is_good=False)
        for number in range(policy.GOOD_PROBES):
            assert lane.tier == 1, number
            policy.after_probe(lane, NOW, is_good=True)
        assert (lane.tier, lane.good_probes) == (0, 0)

    @given(st.lists(st.booleans(), max_size=80), st.integers(0, policy.MAX_TIER))
    def test_are_never_below_none(self, probes: list[bool], tier: int) -> None:
        lane = Lane(tier=tier)
        for is_good in probes:
            policy.after_probe(lane, NOW, is_good=is_good)
            assert 0 <= lane.tier <= tier


class TestBudget:
    RULES = PoolRules(name="res", per_gb=8.0, per_request=0.01, budget=1.0, most_bytes=10**7)

    def test_without_one_nothing_is_too_much(self) -> None:
        assert policy.may_spend(Spent(spent=1e9, leased=10**6), RULES, NOW)

    def test_is_anew_in_the_next_period(self) -> None:
        spent = Spent()
        policy.spend(spent, self.RULES, 10**9, NOW)
        assert not policy.may_spend(spent, self.RULES, NOW)
        later = NOW + self.RULES.budget_period_s
        assert policy.may_spend(spent, self.RULES, later)
        policy.spend(spent, self.RULES, 0, later)
        assert [spent.spent, spent.total] == pytest.approx([0.01, 8.02])

    def test_what_is_late_counts_in_the_period_that_is(self) -> None:
        spent = Spent(period=policy.period_of(self.RULES, NOW), spent=0.5)
        policy.spend(spent, self.RULES, 0, NOW - self.RULES.budget_period_s)
        assert spent.spent == pytest.approx(0.51)

    @given(st.lists(st.one_of(st.none(), st.integers(0, 10**7)), max_size=300))
    def test_is_never_overspent(self, steps: list[int | None]) -> None:
        """Whatever is in flight at a time, and however much each takes of what it may."""
        spent = Spent()
        for wire_bytes in steps:
            if wire_bytes is None:
                spent.leased += policy.may_spend(spent, self.RULES, NOW)
            elif spent.leased:
                spent.leased -= 1
                policy.spend(spent, self.RULES, wire_bytes, NOW)
            assert spent.spent <= self.RULES.budget + 1e-9


class TestForgetting:
    def test_a_pair_is_kept_while_it_says_something(self) -> None:
        rules = PoolRules(name="dc", sticky_s=600.0)
        kept = policy.PAIR_KEPT_S
        assert policy.pair_void_at(Pair(), rules, NOW) == NOW + kept
        assert policy.pair_void_at(Pair(cool_until=NOW + 7.0), rules, NOW) == NOW + 7.0 + kept
        assert policy.pair_void_at(Pair(since=NOW - 5.0), rules, NOW) == NOW + 595.0 + kept
        assert policy.pair_void_at(Pair(since=NOW - 5.0), None, NOW) == NOW + kept


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ((3600.0, 12, 10, 2, True), "1h: 12 exits, 10 out, 2 cooling here"),
        ((5400.0, 1, 1, 0, True), "90m: 1 exit, 1 out"),
        ((45.0, 0, 0, 0, True), "45s: it has no exits"),
        ((86_400.0, 5, 0, 0, False), "1d: budget spent"),
        ((60.0, 3, 1, 0, True), "1m: 3 exits, 1 out, 2 tried before"),
    ],
)
def test_why_a_task_starved(how: tuple[float, int, int, int, bool], said: str) -> None:
    for_s, listed, out, cooling, may_spend = how
    reason = policy.starved_reason(
        "dc", for_s, listed=listed, out=out, cooling=cooling, may_spend=may_spend
    )
    assert reason == f"no exit of pool dc could be used for {said}"


class TestWhateverComes:
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["lend", "good", "block", "fault", "forged", "unreached", "lost"]),
                st.floats(0.0, 400.0),
                st.floats(0.0, 1.0, exclude_max=True),
            ),
            max_size=80,
        ),
        st.integers(1, 3),
    )
    def test_an_exit_never_leaks_and_always_comes_back(
        self, steps: list[tuple[str, float, float]], concurrency: int
    ) -> None:
        rules = PoolRules(name="dc", concurrency=concurrency, pair_interval_s=1.0, interval_s=0.5)
        exit_, lane, now = an_exit(), Lane(), NOW
        pair: Pair | None = None
        lent: list[float] = []
        for what, passed_s, dice in steps:
            now += passed_s
            ready_at = max(policy.exit_ready_at(exit_, rules), policy.pair_ready_at(pair))
            if what == "lend":
                if ready_at <= now:
                    pair = policy.lend(exit_, pair, rules, now)
                    lent.append(now)
            elif lent:
                leased_at = lent.pop(int(dice * len(lent)))
                policy.unlend(exit_, pair, leased_at)
                if what == "good":
                    policy.after_good(exit_, pair, now, leased_at)
                elif what == "block":
                    pair = policy.after_block(exit_, pair, rules, now, leased_at, 0.0, dice)
                elif what == "unreached":
                    pair, _ = policy.after_unreached(exit_, pair, lane, HOST, now, leased_at)
                elif what in ("fault", "forged"):
                    policy.after_fault(exit_, now, leased_at, forged=what == "forged")
            assert exit_.leased == len(lent) <= concurrency
        for leased_at in lent:
            policy.unlend(exit_, pair, leased_at)
        ready_at = max(policy.exit_ready_at(exit_, rules), policy.pair_ready_at(pair))
        assert ready_at <= now + policy.COOL_LIMIT_S, "with nothing in flight, time frees it"
