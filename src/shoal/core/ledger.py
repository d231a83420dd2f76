"""What a worker did in some time, and where the time of its slots went: every second of every slot
has one cause."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Cause(StrEnum):
    """What a slot does, or what it waits for."""

    FETCH = "fetch"
    """A request is under way: the network, and the host."""
    PARSE = "parse"
    """A page is being read."""
    POLITE = "polite"
    """Tasks wait, but may not be sent yet: rates, room at hosts, chains, accounts, exits."""
    STARVED = "starved"
    """No task waits."""
    STORES = "stores"
    """Results or the archive take their time, and no more is leased until they are done."""
    FRONTIER = "frontier"
    """Leases are on their way."""


class SlotTime(msgspec.Struct, frozen=True):
    """Seconds of slots, by cause. Ten slots have ten in each second."""

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
        """The seconds of one cause."""
        seconds: float = getattr(self, cause)
        return seconds

    @property
    def total(self) -> float:
        """All of them."""
        return sum(map(self.of, Cause))

    def share(self, *causes: Cause) -> float:
        """The share that some causes have. 0 if there was no time yet."""
        return sum(map(self.of, causes)) / self.total if self.total > 0 else 0.0


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker did in some time."""

    seconds: float = 0.0
    pages: int = 0
    ended: int = 0
    """Tasks that have ended, one way or another: pages among them."""
    slots: SlotTime = SlotTime()
    fetches: int = 0
    fetch_s: float = 0.0
    """What these took, each from the lookup of its host's name to the end of its body."""
    saves: int = 0
    save_s: float = 0.0
    """What these took, the archive included."""
    finish_s: float = 0.0
    """What the frontier took to end tries and hand out the next ones."""
    wire_bytes: int = 0
    main_s: float = 0.0
    """CPU time of its main thread, in which all pages are read."""
    queued_s: float = 0.0
    """Time in which its main thread could have run, and others had the cores."""
    machine_s: float = 0.0
    """CPU time of all processes of its machine, or its container."""
    stolen_s: float = 0.0
    """CPU time that the host of a virtual machine gave to others."""

    def __sub__(self, earlier: Work) -> Work:
        pairs = ((name, getattr(self, name), getattr(earlier, name)) for name in _WORK)
        return Work(**{name: now - before for name, now, before in pairs})


_WORK = tuple(field.name for field in msgspec.structs.fields(Work))
