"""Reads and shows moments as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.core.policy import parse_duration
from shoal.errors import ConfigError

LAST = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
"""The last moment that a datetime can hold."""


def parse_since(text: str, now: float) -> float:
    """Read a past moment: a time span before now, or a date or time by ISO 8601, in UTC if it names
    no zone. Raises ConfigError."""
    return _moment("since", text, now, -1)


def parse_deadline(text: str, now: float) -> float:
    """Read a future moment: a time span from now, or a date or time by ISO 8601, in UTC if it names
    no zone. Raises ConfigError, also if it lies in the past."""
    moment = _moment("deadline", text, now, 1)
    if moment <= now:
        raise ConfigError(f"deadline {text!r}: lies in the past")
    return moment


def _moment(what: str, text: str, now: float, sign: int) -> float:
    try:
        return now + sign * parse_duration(text)
    except ConfigError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{what} {text!r}: neither a time span (15m, 12h, 7d) nor a date (2030-01-31,"
            " 2030-01-31T12:00, 2030-01-31T12:00+02:00)"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def shown_moment(seconds: float) -> str:
    """A moment for people, in UTC. Forecasts may lie beyond the last year of a datetime."""
    if seconds > LAST:
        return "after 9999"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def day(seconds: float, now: float) -> str:
    """A day for people, in UTC: 16 Nov, with the year if it is not the present one."""
    moment = datetime.fromtimestamp(seconds, UTC)
    this_year = datetime.fromtimestamp(now, UTC).year
    return f"{moment.day} {moment:%b}" + ("" if moment.year == this_year else f" {moment.year}")
