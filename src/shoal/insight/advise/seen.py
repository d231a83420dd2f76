"""Sums up the last minute of all workers in the figures that the model needs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.ledger import Cause, SlotTime, Work
from shoal.frontier.values import Pulse


class FleetSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet did in the last minute. A page here is a task that has ended, with all tries."""

    workers: int
    machines: int
    cores: float
    """The cores of all machines."""
    slots: float
    """The slots of a worker, on average."""
    per_s: float
    """Pages per second."""
    slot_time: SlotTime
    hold_s: float
    """How long a page kept a slot."""
    latency_s: float
    """How long a request took."""
    main_s: float
    """CPU time of the main thread per page."""
    main_use: float
    """The share of the time in which a main thread was busy, or waited for a core."""
    save_use: float
    """The share of the time in which a worker was saving a batch."""
    finish_use: float
    """The share of the time in which a worker waited for the frontier to finish a batch."""
    commit_s: float
    """How long a batch took to save and finish."""
    machine_use: float
    """The share of all cores that was in use, by any program."""
    stolen_use: float
    """The share of all cores that hypervisors gave to other virtual machines."""
    memory_bytes: int
    """The memory of all machines. 0: not known."""
    worker_bytes: float
    """The memory of a worker, on average."""
    page_bytes: float
    """The bytes of a page on the wire."""

    @property
    def lag_s(self) -> float:
        """About how long an answer that had arrived waited for the main thread: the mean wait in a
        queue before a server with this utilisation (M/M/1)."""
        busy = min(self.main_use, 0.999)
        return busy / (1 - busy) * self.main_s

    @property
    def slots_used(self) -> float:
        """The share of its slots that a worker can use: the others wait for leases."""
        working = self.slot_time.fetch + self.slot_time.parse
        return working / (working + self.slot_time.frontier) if working else 1.0

    @property
    def is_kept_from_cores(self) -> bool:
        """Whether main threads wait for a core longer than they use one: other programs, or too
        many workers, share the cores with them."""
        return self.main_s * self.per_s / self.workers < self.main_use / 2

    @property
    def is_cpu_short(self) -> bool:
        """Whether main threads are too busy to do more."""
        return self.main_use >= 0.85

    def share(self, cause: Cause) -> float:
        """The share of the slots' time that was spent on a cause."""
        return self.slot_time.share(cause)


def fleet_seen(pulses: Sequence[Pulse]) -> FleetSeen | None:
    """Sum up the last minute of all workers. None if no task has ended, or none has figures."""
    recent = [(pulse, pulse.lately) for pulse in pulses if _has_figures(pulse)]
    known: list[tuple[Pulse, Work]] = [(pulse, work) for pulse, work in recent if work is not None]
    ended = sum(work.ended for _, work in known)
    if not ended:
        return None
    seconds = sum(work.seconds for _, work in known)
    slots = sum((work.slots for _, work in known), SlotTime())
    fetches = sum(work.fetches for _, work in known)
    saves = sum(work.saves for _, work in known)
    save_s, finish_s, main_s = (
        sum(getattr(work, name) for _, work in known) for name in ("save_s", "finish_s", "main_s")
    )
    machines = {pulse.host: (pulse, work) for pulse, work in known}.values()
    cores = sum(pulse.cores for pulse, _ in machines)
    busy, stolen = (
        sum(getattr(work, name) / work.seconds for _, work in machines)
        for name in ("machine_s", "stolen_s")
    )
    return FleetSeen(
        workers=len(known),
        machines=len(machines),
        cores=cores,
        slots=sum(pulse.slots for pulse, _ in known) / len(known),
        per_s=sum(work.ended / work.seconds for _, work in known),
        slot_time=slots,
        hold_s=(slots.fetch + slots.parse) / ended,
        latency_s=sum(work.fetch_s for _, work in known) / fetches if fetches else 0.0,
        main_s=main_s / ended,
        main_use=min((main_s + sum(work.queued_s for _, work in known)) / seconds, 1.0),
        save_use=min(save_s / seconds, 1.0),
        finish_use=min(finish_s / seconds, 1.0),
        commit_s=(save_s + finish_s) / saves if saves else 0.0,
        machine_use=min(busy / cores, 1.0) if cores else 0.0,
        stolen_use=min(stolen / cores, 1.0) if cores else 0.0,
        memory_bytes=sum(pulse.memory_bytes for pulse, _ in machines),
        worker_bytes=sum(pulse.rss_bytes for pulse, _ in known) / len(known),
        page_bytes=sum(work.wire_bytes for _, work in known) / ended,
    )


def _has_figures(pulse: Pulse) -> bool:
    """Whether a worker reports figures that can be used. One that has just started does not, nor
    does one of an earlier version."""
    return pulse.lately is not None and pulse.lately.seconds >= 1.0 and pulse.slots > 0
