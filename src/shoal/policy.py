"""Decisions: rates, retries, throttling. Functions of values; no I/O, no clock."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from shoal.errors import ConfigError

SEND_SLACK_S = 0.1
"""How late a request may leave after its lease was granted. Slots are spaced so that even then
no window of the rate's period sees one request too many."""

RETRY_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
GONE_STATUSES = frozenset({404, 410})
PUSHBACK_STATUSES = frozenset({429, 503})
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10

BACKOFF_FIRST_S = 1.0
BACKOFF_LIMIT_S = 300.0
RETRY_AFTER_LIMIT_S = 3600.0

PUSHBACK_FIRST_S = 1.0
PUSHBACK_LIMIT_S = 300.0
RECOVERY_FACTOR = 0.5
PENALTY_FLOOR_S = 0.05

_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*/\s*([smh])\s*$")
_PERIOD_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Rate(msgspec.Struct, frozen=True):
    """So many requests in so many seconds, to one host, from the whole fleet."""

    count: float
    period_s: float

    @property
    def interval_s(self) -> float:
        """The time between two permissions to send."""
        return (self.period_s + SEND_SLACK_S) / self.count if self.count else 0.0


NO_LIMIT = Rate(0, 1.0)


def parse_rate(text: str) -> Rate:
    """Read `2/s`, `30/m`, `0.5/s`, `100/h` or `none`."""
    if text.strip().lower() == "none":
        return NO_LIMIT
    match = _RATE.match(text)
    if not match or float(match[1]) == 0:
        raise ConfigError(f"not a rate: {text!r} (write 2/s, 30/m, 100/h or none)")
    return Rate(float(match[1]), _PERIOD_S[match[2]])


def backoff_s(failures: int, jitter: float) -> float:
    """How long to wait after the given number of failures: 1, 2, 4, ... seconds.

    `jitter` is a random number in [0, 1): a fleet's retries must not come back in step. It spreads
    the wait over the upper half, so that a wait is never shorter than half of what it should be.
    """
    full = min(BACKOFF_FIRST_S * 2.0 ** min(failures - 1, 30), BACKOFF_LIMIT_S)
    return full * (0.5 + 0.5 * jitter)


def retry_wait_s(failures: int, jitter: float, retry_after_s: float | None) -> float:
    """The backoff, or what the server asked for if that is longer."""
    return max(backoff_s(failures, jitter), retry_after_s or 0.0)


def may_retry(failures: int, max_retries: int) -> bool:
    """Whether a task that has failed so often gets another try."""
    return failures <= max_retries


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds asked for by a Retry-After header: a number or a date. None if absent or garbage."""
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
    """How a host is being treated: the extra delay it earned, and until when it is left alone."""

    penalty_s: float = 0.0
    """A pause between two requests; the longest of this, the rate's and Crawl-delay counts."""
    next_at: float = 0.0
    """The earliest moment of the next request."""
    pushed_at: float = 0.0
    """When the penalty was last raised."""


def after_pushback(pace: Pace, now: float, leased_at: float, retry_after_s: float | None) -> Pace:
    """The host said 429 or 503: everybody waits, twice as long as the last time.

    Answers to requests that left before the penalty was raised say nothing new: a burst of sixteen
    429s is one refusal, not sixteen.
    """
    penalty_s, pushed_at = pace.penalty_s, pace.pushed_at
    if leased_at >= pushed_at:
        penalty_s = min(max(penalty_s * 2, PUSHBACK_FIRST_S), PUSHBACK_LIMIT_S)
        pushed_at = now
    return Pace(penalty_s, max(pace.next_at, now + max(penalty_s, retry_after_s or 0.0)), pushed_at)


def after_success(pace: Pace, leased_at: float) -> Pace:
    """The host answered a request that left after the last refusal: its penalty melts."""
    if not pace.penalty_s or leased_at < pace.pushed_at:
        return pace
    penalty_s = pace.penalty_s * RECOVERY_FACTOR
    return Pace(penalty_s if penalty_s >= PENALTY_FLOOR_S else 0.0, pace.next_at, pace.pushed_at)


def eta_s(remaining: int, per_second: float) -> float | None:
    """Seconds until the rest is done at the recent rate. None while nothing moves."""
    return remaining / per_second if per_second > 0 else None
