"""Decisions are functions of values: bounds, order, and no garbage that breaks them."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.core import policy
from shoal.core.policy import AUTO, NO_LIMIT, Pace, Rate
from shoal.errors import ConfigError

jitters = st.floats(0, 1, exclude_max=True)
failures = st.integers(1, 10_000)
moments = st.floats(0, 4e9)
waits = st.none() | st.floats(0, policy.RETRY_AFTER_LIMIT_S)


# Rates


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2/s", Rate(2, 1)),
        (" 30 / m ", Rate(30, 60)),
        ("0.5/s", Rate(0.5, 1)),
        ("100/h", Rate(100, 3600)),
        ("none", NO_LIMIT),
        (" None ", NO_LIMIT),
        ("auto", AUTO),
        (" Auto ", AUTO),
    ],
)
def test_rates(text: str, rate: Rate) -> None:
    assert policy.parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "2", "2/d", "0/s", "0.0/m", "-1/s", "1e3/s", "nan/s", "2/s/s", "/s"]
)
def test_what_is_no_rate_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="not a rate") as raised:
        policy.parse_rate(text)
    assert repr(text) in str(raised.value)


@given(text=st.text())
@example(text="9" * 400 + "/s")
@example(text="0." + "0" * 400 + "1/s")
def test_any_text_is_a_rate_or_a_config_error(text: str) -> None:
    try:
        rate = policy.parse_rate(text)
    except ConfigError:
        return
    assert rate.interval_s >= 0


@given(count=st.integers(1, 100_000), unit=st.sampled_from("smh"))
def test_in_no_window_does_a_host_see_more_than_its_rate(count: int, unit: str) -> None:
    """`count` requests at the interval, the first sent late and the last at once, fill a period."""
    rate = policy.parse_rate(f"{count}/{unit}")
    assert count * rate.interval_s - policy.SEND_SLACK_S >= rate.period_s - 1e-6


def test_no_limit_is_no_interval() -> None:
    assert NO_LIMIT.interval_s == AUTO.interval_s == 0
    assert (NO_LIMIT.auto, AUTO.auto) == (False, True)


# Time spans


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), (" 15 m ", 900), ("12h", 43_200), ("7d", 604_800), ("0.5d", 43_200)],
)
def test_time_spans(text: str, seconds: float) -> None:
    assert policy.parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0s", "0.0d", "-1d", "1w", "1e3s", "nan s", "7d 2h"]
)
def test_what_is_no_time_span_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="not a time span") as raised:
        policy.parse_duration(text)
    assert repr(text) in str(raised.value)


@given(text=st.text())
@example(text="9" * 400 + "d")
def test_any_text_is_a_time_span_or_a_config_error(text: str) -> None:
    try:
        seconds = policy.parse_duration(text)
    except ConfigError:
        return
    assert seconds > 0


# Retries


@given(count=failures, jitter=jitters)
def test_backoff_is_bounded(count: int, jitter: float) -> None:
    wait_s = policy.backoff_s(count, jitter)
    full_s = min(policy.BACKOFF_FIRST_S * 2.0 ** min(count - 1, 60), policy.BACKOFF_LIMIT_S)
    assert full_s / 2 <= wait_s <= full_s


@given(count=failures, jitter=jitters)
def test_backoff_grows_until_its_limit(count: int, jitter: float) -> None:
    assert policy.backoff_s(count, jitter) <= policy.backoff_s(count + 1, jitter)


@given(count=failures, first=jitters, second=jitters)
def test_jitter_spreads_in_its_own_order(count: int, first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert policy.backoff_s(count, low) <= policy.backoff_s(count, high)


@given(count=failures, jitter=jitters, asked_s=waits)
def test_a_server_can_ask_for_more_but_not_for_less(
    count: int, jitter: float, asked_s: float | None
) -> None:
    backoff_s = policy.backoff_s(count, jitter)
    assert policy.retry_wait_s(count, jitter, asked_s) == max(backoff_s, asked_s or 0)


@given(max_retries=st.integers(0, 50))
def test_a_task_gets_its_first_try_and_its_retries(max_retries: int) -> None:
    tries = 1
    while policy.may_retry(tries, max_retries):
        tries += 1
    assert tries == max_retries + 1


# Retry-After

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (None, None),
        ("", None),
        ("120", 120),
        (" 5 ", 5),
        ("0", 0),
        ("9" * 400, policy.RETRY_AFTER_LIMIT_S),
        ("Wed, 01 May 2024 12:00:30 GMT", 30),
        ("Wed, 01 May 2024 12:00:30 -0000", 30),
        ("Wed, 01 May 2024 12:00:30", 30),
        ("Wed, 01 May 2024 14:00:30 +0200", 30),
        ("Wed, 01 May 2024 11:00:00 GMT", 0),
        ("Wed, 01 May 9999 12:00:00 GMT", policy.RETRY_AFTER_LIMIT_S),
        ("Mon, 01 Jan 0001 00:00:00 -0000", 0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("Wed, 99 May 2024 12:00:30 GMT", None),
    ],
)
def test_retry_after(value: str | None, wait_s: float | None) -> None:
    assert policy.parse_retry_after(value, NOW) == wait_s


_PIECES = ["Wed", ",", " ", "01", "31", "May", "2024", "0000", "12:00:30", ":", "-", "+9999", "GMT"]


@given(value=st.text() | st.lists(st.sampled_from(_PIECES)).map("".join), now=moments)
@example(value="0", now=0.0)
@example(value="Mon, 01 Jan 0001 00:00:00 +2359", now=0.0)
@example(value="Fri, 31 Dec 9999 23:59:59 -2359", now=0.0)
@example(value="1 1 1 1 1 1", now=0.0)
def test_a_retry_after_is_never_an_error_and_never_too_long(value: str, now: float) -> None:
    wait_s = policy.parse_retry_after(value, now)
    assert wait_s is None or 0 <= wait_s <= policy.RETRY_AFTER_LIMIT_S


@given(wait_s=st.integers(0, 3600))
def test_retry_after_reads_the_dates_that_servers_write(wait_s: int) -> None:
    value = format_datetime(datetime.fromtimestamp(NOW + wait_s, UTC), usegmt=True)
    assert policy.parse_retry_after(value, NOW) == wait_s


# The pace of a host

paces = st.builds(
    Pace,
    st.floats(0, policy.PUSHBACK_LIMIT_S),
    moments,
    moments,
    st.integers(0, policy.BREAKER_AFTER + policy.BREAKER_PROBES + 5),
    moments,
)
latencies = st.floats(0, 1000)


@given(pace=paces, now=moments, leased_at=moments, asked_s=waits)
def test_a_pushback_never_shortens_a_wait(
    pace: Pace, now: float, leased_at: float, asked_s: float | None
) -> None:
    after = policy.after_pushback(pace, now, leased_at, asked_s)
    assert pace.penalty_s <= after.penalty_s <= policy.PUSHBACK_LIMIT_S
    assert after.next_at >= max(pace.next_at, now + (asked_s or 0))


def test_refusals_in_a_row_double_the_penalty_and_a_burst_counts_once() -> None:
    first = policy.after_pushback(Pace(), now=100, leased_at=99, retry_after_s=None)
    assert first == Pace(policy.PUSHBACK_FIRST_S, 100 + policy.PUSHBACK_FIRST_S, 100)
    same_burst = policy.after_pushback(first, now=100.5, leased_at=99.5, retry_after_s=None)
    assert same_burst.penalty_s == first.penalty_s
    second = policy.after_pushback(first, now=103, leased_at=102, retry_after_s=None)
    assert second.penalty_s == 2 * first.penalty_s


@given(pace=paces, leased_at=moments)
def test_a_penalty_melts_but_only_by_answers_to_later_requests(
    pace: Pace, leased_at: float
) -> None:
    after = policy.after_success(pace, leased_at)
    assert after.next_at == pace.next_at
    if leased_at < pace.pushed_at or not pace.penalty_s:
        assert after == pace
    else:
        assert after.penalty_s < pace.penalty_s


def test_a_penalty_is_gone_after_some_successes() -> None:
    pace, answers = Pace(policy.PUSHBACK_LIMIT_S), 0
    while pace.penalty_s:
        pace = policy.after_success(pace, leased_at=1)
        answers += 1
    assert answers < 20


# auto


@given(pace=paces, leased_at=moments, latency_s=latencies)
def test_auto_keeps_about_one_request_with_a_host(
    pace: Pace, leased_at: float, latency_s: float
) -> None:
    after = policy.after_success_auto(pace, leased_at, latency_s)
    assert after.next_at == pace.next_at
    if leased_at < pace.pushed_at:
        assert after == pace
    else:
        assert policy.AUTO_FLOOR_S <= after.penalty_s <= policy.PUSHBACK_LIMIT_S
        assert after.penalty_s >= min(latency_s, policy.PUSHBACK_LIMIT_S)
        own_s = pace.penalty_s or policy.AUTO_START_S
        assert after.penalty_s <= max(own_s, latency_s, policy.AUTO_FLOOR_S)


@given(latency_s=st.floats(policy.AUTO_FLOOR_S, policy.PUSHBACK_LIMIT_S), pace=paces)
def test_auto_settles_at_the_latency(latency_s: float, pace: Pace) -> None:
    for _ in range(20):
        pace = policy.after_success_auto(pace, leased_at=4e9, latency_s=latency_s)
    assert pace.penalty_s == pytest.approx(latency_s, abs=0.01)


@given(average_s=latencies, latency_s=latencies)
def test_an_average_lies_between_what_was_and_what_is(average_s: float, latency_s: float) -> None:
    smoothed_s = policy.smoothed_s(average_s, latency_s)
    if average_s:
        low_s, high_s = sorted((average_s, latency_s))
        assert low_s - 1e-9 <= smoothed_s <= high_s + 1e-9
    else:
        assert smoothed_s == latency_s


# The circuit breaker


@given(pace=paces, now=moments, leased_at=moments)
def test_a_fault_never_shortens_a_wait_and_counts_at_most_once(
    pace: Pace, now: float, leased_at: float
) -> None:
    after = policy.after_fault(pace, now, leased_at)
    assert after.next_at >= pace.next_at
    assert after.failures - pace.failures in (0, 1)
    assert after.penalty_s == pace.penalty_s
    if after.failures > pace.failures and after.is_broken:
        assert after.next_at >= now + policy.PROBE_FIRST_S
        assert after.broken_at == now


def test_a_host_that_only_fails_is_probed_for_about_ten_minutes() -> None:
    pace, now, probes = Pace(), 1000.0, 0
    while pace.failures < policy.BREAKER_AFTER:
        assert not pace.is_broken
        pace = policy.after_fault(pace, now, leased_at=now)
    while pace.is_broken:
        assert pace.next_at - now <= policy.PROBE_LIMIT_S
        now = pace.next_at
        pace = policy.after_fault(pace, now, leased_at=now)
        probes += 1
    assert probes == policy.BREAKER_PROBES
    assert 8 * 60 < now - 1000.0 < 12 * 60
    assert policy.after_fault(pace, now, leased_at=now).next_at == pace.next_at, "no longer held"


def test_what_left_before_the_last_counted_failure_says_nothing_new() -> None:
    pace = Pace(failures=policy.BREAKER_AFTER - 1)
    opened = policy.after_fault(pace, now=100, leased_at=90)
    assert opened.is_broken
    assert policy.after_fault(opened, now=101, leased_at=99) == opened
    assert policy.after_fault(opened, now=105, leased_at=103).failures == opened.failures + 1


def test_eta() -> None:
    assert policy.eta_s(100, 4.0) == 25
    assert policy.eta_s(0, 4.0) == 0
    assert policy.eta_s(100, 0.0) is None


def test_a_page_that_fails_again_says_nothing_new_of_a_healthy_host() -> None:
    pace = policy.Pace(failures=policy.BREAKER_AFTER - 1)

    assert policy.after_fault(pace, 100, 90, is_retry=True) == pace
    opened = policy.after_fault(pace, 100, 90)
    assert policy.after_fault(opened, 105, 103, is_retry=True).failures == opened.failures + 1


@pytest.mark.parametrize("most", [policy.MAX_RETRIES, policy.MAX_TRIES, 256, 10**9])
def test_no_more_tries_than_a_queue_can_count(most: int) -> None:
    """Else the count would stand still, and the task would be tried for ever."""
    assert policy.may_retry(policy.MAX_RETRIES, most)
    assert not policy.may_retry(policy.MAX_TRIES, most)


@pytest.mark.parametrize("most", [policy.MAX_LOSSES, 256, 10**9])
def test_no_more_losses_than_a_queue_can_count(most: int) -> None:
    assert not policy.is_poison(policy.MAX_LOSSES - 1, most)
    assert policy.is_poison(policy.MAX_LOSSES, most)
