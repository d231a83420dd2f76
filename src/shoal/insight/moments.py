"""Moments as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.core.policy import parse_duration
from shoal.errors import ConfigError

LAST = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()
"""No later moment can be written."""


def parse_since(text: str, now: float) -> float:
    """A moment: so long before now, or a date or time by ISO 8601, UTC if it names no zone."""
    return _moment("since", text, now, -1)


def parse_deadline(text: str, now: float) -> float:
    """A moment: so long from now, or a date or time by ISO 8601, UTC if it names no zone."""
    moment = _moment("deadline", text, now, 1)
    if moment <= now:
        raise ConfigError(f"deadline {text!r}: is over")
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
    """A moment for people, UTC. There are crawls that would take longer than there are years."""
    if seconds > LAST:
        return "after 9999"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def day(seconds: float, now: float) -> str:
    """A day for people, UTC: 16 Nov, and its year if that is not this one."""
    moment = datetime.fromtimestamp(seconds, UTC)
    this_year = datetime.fromtimestamp(now, UTC).year
    return f"{moment.day} {moment:%b}" + ("" if moment.year == this_year else f" {moment.year}")
