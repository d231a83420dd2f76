"""Decisions about rates, retries and throttling. Functions of values; no I/O, no clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec
from msgspec.structs import replace

from shoal.errors import ConfigError

SEND_SLACK_S = 0.1
"""How late a request may leave after its lease was granted. Turns are spaced so that even then
no window of the rate's period sees one request too many."""

RETRY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
GONE_STATUSES = frozenset({404, 410})
TOO_MANY = 429
PUSHBACK_STATUSES = frozenset({TOO_MANY, 503})
BLOCKED_STATUSES = frozenset({403, TOO_MANY, 503})
"""Statuses by which hosts refuse to serve the crawler."""
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10

MAX_TRIES = 255
"""The most tries of a task, whatever rules and senders say: a queue has one byte to count them."""
MAX_RETRIES = MAX_TRIES - 1
MAX_LOSSES = 255
"""Up to how many workers that died with a task are counted: queues have one byte for them."""
MAX_BLOCKS = 100
"""Up to how many blocks of a task are counted. The exits that met them are stored with the task."""
SUSPECT_AFTER = 2
"""A task with which this many workers died is a suspect: leased alone, to a worker without
others."""

BACKOFF_FIRST_S = 1.0
BACKOFF_LIMIT_S = 300.0
RETRY_AFTER_LIMIT_S = 3600.0

REFUSALS_IN_A_ROW = 3
"""How many tries in a row must fail before a 503 is taken as an answer of the whole host. A single
one tells about its page: that page is tried again later, and the others go on."""

PUSHBACK_FIRST_S = 1.0
PUSHBACK_LIMIT_S = 300.0
RECOVERY_FACTOR = 0.5
PENALTY_FLOOR_S = 0.05

AUTO_START_S = 1.0
AUTO_FLOOR_S = 0.1
"""`auto` sends at most ten requests a second, however quickly a host responds."""

LATENCY_WEIGHT = 0.2

BREAKER_AFTER = 10
"""Failures in a row after which a host is only probed, with one request at a time."""
BREAKER_PROBES = 14
"""Probes that may fail before the host is treated like any other again (about ten minutes). Its
tasks then die with their reason, and the crawl can finish."""
PROBE_FIRST_S = 2.0
PROBE_LIMIT_S = 60.0

_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*/\s*([smh])\s*$")
MAX_DURATION_S = 100 * 366 * 86_400.0
_AGE = re.compile("([0-9]{1,5})([my])")
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([smhd])\s*$")
_PERIOD_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class Rate(msgspec.Struct, frozen=True):
    """A number of requests in a number of seconds, to one host, from the whole fleet."""

    count: float
    period_s: float
    auto: bool = False
    """Whether the rate follows each host's own latency."""

    @property
    def interval_s(self) -> float:
        """The time between two permissions to send a request."""
        return (self.period_s + SEND_SLACK_S) / self.count if self.count else 0.0


NO_LIMIT = Rate(0, 1.0)
AUTO = Rate(0, 1.0, auto=True)


def parse_rate(text: str) -> Rate:
    """Read `2/s`, `30/m`, `0.5/s`, `100/h`, `auto` or `none`."""
    word = text.strip().lower()
    if word in ("none", "auto"):
        return AUTO if word == "auto" else NO_LIMIT
    match = _RATE.match(text)
    if not match or float(match[1]) == 0:
        number = text if text.isdecimal() and text.strip("0") else "2"
        raise ConfigError(f"not a rate: {text!r} (write {number}/s, 30/m, 100/h, auto or none)")
    return Rate(float(match[1]), _PERIOD_S[match[2]])


def parse_duration(text: str) -> float:
    """Seconds in `90s`, `15m`, `12h` or `7d`."""
    match = _DURATION.match(text)
    if not match or float(match[1]) == 0:
        raise ConfigError(f"not a time span: {text!r} (write 90s, 15m, 12h or 7d)")
    seconds = float(match[1]) * _PERIOD_S[match[2]]
    if seconds > MAX_DURATION_S:
        raise ConfigError(f"a time span of more than 100 years: {text!r}")
    return seconds


def months_before(now: datetime, age: str) -> datetime:
    """The start of the month this many months (`6m`) or years (`1y`) ago. Raises ConfigError."""
    match = _AGE.fullmatch(age)
    if not match or int(match[1]) == 0:
        raise ConfigError(f"not an age: {age!r} (write 6m for six months, 1y for a year)")
    months = now.year * 12 + now.month - 1 - int(match[1]) * {"m": 1, "y": 12}[match[2]]
    if months < 12:
        raise ConfigError(f"not an age: {age!r} (nothing is that old)")
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def backoff_s(failures: int, jitter: float) -> float:
    """How long to wait after the given number of failures: 1, 2, 4, ... seconds.

    `jitter` is a random number in [0, 1): a fleet's retries must not come back in step. It spreads
    the wait over the upper half, so that a wait is never shorter than half of the full time.
    """
    full = min(BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 30), BACKOFF_LIMIT_S)
    return full * (0.5 + 0.5 * jitter)


def retry_wait_s(failures: int, jitter: float, retry_after_s: float | None) -> float:
    """The backoff, or what the server asked for if that is longer."""
    return max(backoff_s(failures, jitter), retry_after_s or 0.0)


def may_retry(failures: int, max_retries: int) -> bool:
    """Whether a task with this many failed tries gets another one."""
    return failures <= min(max_retries, MAX_RETRIES)


def is_poison(losses: int, max_losses: int) -> bool:
    """Whether so many workers died with a task that no other may try it."""
    return losses >= min(max_losses, MAX_LOSSES)


def parse_retry_after(value: str | None, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, by number or date. None if it has neither."""
    if not value:
        return None
    try:
        wait_s = float(value) if value.strip().isdigit() else _seconds_until(value, now)
    except (ValueError, OverflowError):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_LIMIT_S)


def _seconds_until(http_date: str, now: float) -> float:
    moment = parsedate_to_datetime(http_date)
    # A date without a zone is GMT in HTTP; to Python it would be local time.
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now


class Pace(msgspec.Struct, frozen=True):
    """How a host is treated: the extra delay it has earned, and until when it is left alone."""

    penalty_s: float = 0.0
    """A pause between two requests. The longest of this, the rate's and Crawl-delay applies. Under
    `auto` it is the pause derived from the host's responses, and 0 until it has responded."""
    next_at: float = 0.0
    """The earliest moment of the next request."""
    pushed_at: float = 0.0
    """When the penalty was last raised."""
    failures: int = 0
    """Requests in a row that did not get the response of a healthy host."""
    broken_at: float = 0.0
    """When a failure was last counted while the host was being probed."""

    @property
    def is_broken(self) -> bool:
        """Whether the host is only probed, with single requests."""
        return BREAKER_AFTER <= self.failures < BREAKER_AFTER + BREAKER_PROBES


def is_meant(status: int, retry_after_s: float | None) -> bool:
    """Whether a refusal by itself speaks for the whole host.

    A 429 is about the crawler, and Retry-After names a time. A bare 503 is also what a broken page
    may return.
    """
    return status == TOO_MANY or retry_after_s is not None


def after_pushback(
    pace: Pace,
    now: float,
    leased_at: float,
    retry_after_s: float | None,
    *,
    meant: bool = True,
) -> Pace:
    """The pace after a 429 or 503: all workers wait, twice as long as the last time.

    Call it after `after_fault`: a refusal that is not `meant` counts only if the host has failed
    often enough in a row. Responses to requests leased before the penalty was raised say nothing
    new: a burst of sixteen 429s is one refusal, not sixteen.
    """
    if not meant and pace.failures < REFUSALS_IN_A_ROW:
        return pace
    penalty_s, pushed_at = pace.penalty_s, pace.pushed_at
    if leased_at >= pushed_at:
        penalty_s = min(max(penalty_s * 2, PUSHBACK_FIRST_S), PUSHBACK_LIMIT_S)
        pushed_at = now
    next_at = max(pace.next_at, now + max(penalty_s, retry_after_s or 0.0))
    return replace(pace, penalty_s=penalty_s, next_at=next_at, pushed_at=pushed_at)


def after_success(pace: Pace, leased_at: float) -> Pace:
    """The pace after a success: the penalty shrinks, if the request was leased after the last
    refusal."""
    if not pace.penalty_s or leased_at < pace.pushed_at:
        return pace
    penalty_s = pace.penalty_s * RECOVERY_FACTOR
    return replace(pace, penalty_s=penalty_s if penalty_s >= PENALTY_FLOOR_S else 0.0)


def after_success_auto(pace: Pace, leased_at: float, latency_s: float) -> Pace:
    """The pace after a successful request under `auto`.

    The pause moves half-way to the response time, which keeps about one request of the whole fleet
    in flight there. If the host became slower, the pause follows at once; if it became quicker,
    step by step.
    """
    if leased_at < pace.pushed_at:
        return pace
    own_s = pace.penalty_s or AUTO_START_S
    stepped_s = max(latency_s, (own_s + latency_s) / 2)
    return replace(pace, penalty_s=min(max(stepped_s, AUTO_FLOOR_S), PUSHBACK_LIMIT_S))


def after_fault(pace: Pace, now: float, leased_at: float, *, is_retry: bool = False) -> Pace:
    """The pace after a request without a response, or not with that of a healthy host (5xx, 429).

    Above a threshold the host is only probed: one request at a time, each after a longer wait than
    the last, until one succeeds. A request leased before the last counted failure says nothing new.
    Nor does a page that fails again on a retry: a healthy host may have many pages that always
    fail, and they come last.
    """
    if is_retry and not pace.is_broken:
        return pace
    if pace.failures >= BREAKER_AFTER and leased_at < pace.broken_at:
        return pace
    pace = replace(pace, failures=pace.failures + 1)
    if not pace.is_broken:
        return pace
    wait_s = min(PROBE_FIRST_S * 2.0 ** (pace.failures - BREAKER_AFTER), PROBE_LIMIT_S)
    return replace(pace, broken_at=now, next_at=max(pace.next_at, now + wait_s))


def smoothed_s(average_s: float, latency_s: float) -> float:
    """A host's average latency, in which recent responses weigh most."""
    return average_s + LATENCY_WEIGHT * (latency_s - average_s) if average_s else latency_s


def eta_s(remaining: int, per_second: float) -> float | None:
    """Seconds until the remaining tasks are done at the recent rate. None if that rate is 0."""
    return remaining / per_second if per_second > 0 else None
