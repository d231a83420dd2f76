"""Accounts for a worker's work and its slots: each second of each slot has one cause."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Cause(StrEnum):
    """What a slot is doing or waiting for."""

    FETCH = "fetch"
    """A request is in flight: the time goes to the network and the host."""
    PARSE = "parse"
    """A page is being read."""
    POLITE = "polite"
    """Tasks wait but may not be sent yet: rates, full hosts, chains, accounts, exits."""
    STARVED = "starved"
    """No task is waiting."""
    STORES = "stores"
    """The results or the archive are slow, and nothing more is leased until they have caught up."""
    FRONTIER = "frontier"
    """Leases are being fetched from the frontier."""


class SlotTime(msgspec.Struct, frozen=True):
    """Seconds of slot time by cause. Ten slots spend ten seconds each second."""

    fetch: float = 0.0
    parse: float = 0.0
    polite: float = 0.0
    starved: float = 0.0
    stores: float = 0.0
    frontier: float = 0.0

    def __add__(self, other: SlotTime) -> SlotTime:
        return SlotTime(*(self.of(cause) + other.of(cause) for cause in Cause))

    def __sub__(self, other: SlotTime) -> SlotTime:
        return SlotTime(*(self.of(cause) - other.of(cause) for cause in Cause))

    def of(self, cause: Cause) -> float:
        """The seconds spent on one cause."""
        seconds: float = getattr(self, cause)
        return seconds

    @property
    def total(self) -> float:
        """The seconds of all causes together."""
        return sum(map(self.of, Cause))

    def share(self, *causes: Cause) -> float:
        """The share of the time that some causes have. 0 if no time was counted yet."""
        return sum(map(self.of, causes)) / self.total if self.total > 0 else 0.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker did in a span of time."""

    seconds: float = 0.0
    pages: int = 0
    ended: int = 0
    """Tasks that ended, in whatever way, pages included."""
    slots: SlotTime = SlotTime()
    fetches: int = 0
    fetch_s: float = 0.0
    """Time of these fetches, each from the name lookup to the end of the body."""
    saves: int = 0
    save_s: float = 0.0
    """Time of these saves, the archive included."""
    finish_s: float = 0.0
    """Time that the frontier took to finish tries and hand out the next tasks."""
    wire_bytes: int = 0
    main_s: float = 0.0
    """CPU time of the worker's main thread, which reads all pages."""
    queued_s: float = 0.0
    """Time during which the main thread was ready to run, but other threads had the cores."""
    machine_s: float = 0.0
    """CPU time of all processes on the machine, or in the container."""
    stolen_s: float = 0.0
    """CPU time that the hypervisor gave to other virtual machines."""

    def __sub__(self, earlier: Work) -> Work:
        pairs = ((name, getattr(self, name), getattr(earlier, name)) for name in _WORK)
        return Work(**{name: now - before for name, now, before in pairs})


_WORK = tuple(field.name for field in msgspec.structs.fields(Work))
