"""The part of `make bench` about one site and several workers.

One or two processes share as many requests in flight as a host gets by default.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks import crawls, procstat
from benchmarks.contest import BARE, EMBEDDED, FLEET, TWO, Arena, Contestants, on_postgres
from benchmarks.crawls import Run, Runs, Setup
from benchmarks.tables import figures, ratio
from shoal.config import Rules

ROOM = Rules().concurrency_per_host
SHARED = f", {ROOM} per host"
OWN_BARE = f"{BARE} on our client"
PARSING = ", much parsing"
"""Parts of names, as in contest.py. SHARED comes last, or only PARSING after it."""

HEADS = ("", "pages/s", "CPU s per 1,000 pages", "RSS MB", "times one process", "cores busy")


def contestants(arena: Arena) -> Contestants:
    """The contestants: one and two processes, with pages that are cheap or expensive to parse."""
    one, two = Setup(per_host=ROOM), Setup(per_host=ROOM, workers=2)
    slow = Setup(per_host=ROOM, spider="Thorough")
    two_slow = Setup(per_host=ROOM, spider="Thorough", workers=2)
    few = [arena.small]
    return {
        f"{BARE}{SHARED}": lambda: crawls.bare(arena.large, ROOM),
        f"{OWN_BARE}{SHARED}": lambda: crawls.bare(arena.large, ROOM, own_client=True),
        f"{FLEET}{SHARED}": lambda: on_postgres(arena, arena.large, one),
        f"{FLEET}{TWO}{SHARED}": lambda: on_postgres(arena, arena.large, two),
        f"{EMBEDDED}{SHARED}": lambda: crawls.shoal(arena.large, one),
        f"{EMBEDDED}{TWO}{SHARED}": lambda: crawls.shoal(arena.large, two),
        f"{FLEET}{SHARED}{PARSING}": lambda: on_postgres(arena, few, slow),
        f"{FLEET}{TWO}{SHARED}{PARSING}": lambda: on_postgres(arena, few, two_slow),
        f"{EMBEDDED}{SHARED}{PARSING}": lambda: crawls.shoal(few, slow),
        f"{EMBEDDED}{TWO}{SHARED}{PARSING}": lambda: crawls.shoal(few, two_slow),
    }


def is_shared(name: str) -> bool:
    """Whether a contestant belongs to this part."""
    return SHARED in name


def rows(runs: Runs) -> list[list[str]]:
    """A row for each contestant, under HEADS: medians, and ratios to one process in the same
    round."""
    return [
        [name, *figures(own), _times_one(name, runs), _busy(own)]
        for name, own in runs.items()
        if is_shared(name)
    ]


def _times_one(name: str, runs: Runs) -> str:
    return ratio(runs[name], runs[name.replace(TWO, "")]) if TWO in name else ""


def _busy(own: Sequence[Run]) -> str:
    measured = [run.busy_cores for run in own if run.busy_cores is not None]
    return f"{statistics.median(measured):.2f}" if measured else ""


def room_for(one: Sequence[Run]) -> str:
    """A line that says how many times as fast this machine could be with all its cores in use."""
    busy = statistics.median(run.busy_cores or 0.0 for run in one)
    cores = procstat.cores()
    return (
        f"one process and its servers keep {busy:.2f} of {cores} cores busy:"
        f" there is room for {cores / busy:.2f} times one"
    )


def headlines(runs: Runs) -> list[str]:
    """A line for each aim, with the ratio that was measured."""
    if f"{FLEET}{SHARED}" not in runs:
        return []
    own = runs[f"{FLEET}{SHARED}"]
    bare, own_bare = runs[f"{BARE}{SHARED}"], runs[f"{OWN_BARE}{SHARED}"]
    cpu_ms = statistics.median(run.cpu_us_per_page for run in own) / 1e3
    lines = [
        f"{FLEET}{SHARED}: {ratio(own, runs[FLEET])} of itself without a limit (aim: 0.95)",
        f"{FLEET}{SHARED}: {ratio(own, bare)} of the {BARE}, as many in flight",
        f"{FLEET}{SHARED}: {ratio(own, own_bare)} of the {OWN_BARE}, as many in flight (aim: 0.8)",
        f"{FLEET}{SHARED}: {cpu_ms:.2f} ms of CPU per page (aim: 0.45)",
    ]
    for store in (FLEET, EMBEDDED):
        for kind in (SHARED, f"{SHARED}{PARSING}"):
            one, two = runs[f"{store}{kind}"], runs[f"{store}{TWO}{kind}"]
            lines.append(f"{store}{TWO}{kind}: {ratio(two, one)} times one (aim: 1.6)")
            lines.append(f"  {room_for(one)}")
    return lines
