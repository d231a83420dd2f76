"""Calculates when a schedule is due: cron expressions in time zones. Pure: time is passed in."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from shoal.errors import ConfigError


class Calendar:
    """The due times of a cron expression in a time zone.

    Clock changes are handled as in Debian's cron. A due time in the skipped hour comes at its end;
    one in the repeated hour comes once, unless the schedule is hourly or more frequent.
    """

    def __init__(self, cron: str, timezone: str) -> None:
        self._cron = cron
        self._zone = _zone(timezone)
        try:
            CronSim(cron, datetime.now(self._zone))
        except CronSimError as error:
            raise ConfigError(f"cron: {cron!r}: {str(error).lower()}") from None

    def next_after(self, moment: float) -> float | None:
        """The first due time after a moment. None if there is none in the next fifty years."""
        return self._step(moment, backwards=False)

    def last_until(self, moment: float) -> float | None:
        """The last due time at or before a moment."""
        # CronSim looks for times strictly before the start, and due times are whole seconds.
        return self._step(moment + 1, backwards=True)

    def _step(self, moment: float, *, backwards: bool) -> float | None:
        start = datetime.fromtimestamp(int(moment), UTC).astimezone(self._zone)
        due = next(CronSim(self._cron, start, reverse=backwards), None)
        return due.timestamp() if due is not None else None

    def local(self, moment: float) -> datetime:
        """A moment in local time of the time zone."""
        return datetime.fromtimestamp(moment, UTC).astimezone(self._zone)


calendar_of = lru_cache(maxsize=1000)(Calendar)
"""The calendar for an expression and a zone, cached because coordinators need it twice a second."""


def run_name(schedule: str, calendar: Calendar, moment: float) -> str:
    """The name of the run of a due time. If a local time comes twice, the second one gets its UTC
    offset."""
    local = calendar.local(moment).replace(microsecond=0)
    precision = "seconds" if local.second else "minutes"
    shown = local.replace(tzinfo=None, fold=0).isoformat(timespec=precision)
    return f"{schedule}@{shown}{local.strftime('%z') if local.fold else ''}"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f"timezone: {name!r} is not known here (write Europe/Berlin; pip install tzdata if"
            " this machine knows none)"
        ) from None
