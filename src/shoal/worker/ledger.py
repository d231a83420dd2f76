"""A worker's ledger: what its slots do, and why the idle ones are idle. Pure."""

from __future__ import annotations

from shoal.core.ledger import Cause, SlotTime

_IDLE = (Cause.POLITE, Cause.STARVED, Cause.STORES, Cause.FRONTIER)


class Ledger:
    """Adds up slot time from the moment its worker began.

    The time between two notes is counted by what the first of them says. So there is a note
    whenever something changes, and none while pages only follow each other in the same slots.
    """

    def __init__(self, slots: int, now: float) -> None:
        self.slots = slots
        self._at = now
        self._in_flight = 0
        self._idle_as = Cause.STARVED
        self._visits_s = 0.0
        self._idle_s = dict.fromkeys(_IDLE, 0.0)

    def note(self, now: float, in_flight: int, idle_as: Cause) -> None:
        """From now on `in_flight` slots have visits, and the others wait for `idle_as`."""
        passed_s = now - self._at
        self._at = now
        self._visits_s += passed_s * self._in_flight
        self._idle_s[self._idle_as] += passed_s * (self.slots - self._in_flight)
        self._in_flight, self._idle_as = in_flight, idle_as

    def told(self, now: float, parsing_s: float) -> SlotTime:
        """Return where slot time went until now, with `parsing_s` of it spent in parsing. Pages
        that are still in their slots count as not parsed yet."""
        self.note(now, self._in_flight, self._idle_as)
        parse_s = min(parsing_s, self._visits_s)
        return SlotTime(self._visits_s - parse_s, parse_s, **self._idle_s)
