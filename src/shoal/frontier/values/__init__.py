"""The values that a frontier takes and returns.

states.py has the states of tasks and crawls, work.py what goes out to workers, outcomes.py what
comes back. records.py and figures.py have what is shown to anyone who looks at a crawl.
"""

from __future__ import annotations

from shoal.frontier.values.figures import WORKER_SILENT_S, Pulse, Stats
from shoal.frontier.values.outcomes import Added, Outcome, Pushback, Repaired
from shoal.frontier.values.records import (
    ALL_DEAD,
    Chain,
    DeadFilter,
    DeadPlace,
    Host,
    HostOrder,
    Leased,
    Record,
)
from shoal.frontier.values.states import CANCELLED, ENDING, Control, CrawlState, TaskState, Verdict
from shoal.frontier.values.work import Ask, Entry, Grant, Holding, Lease

__all__ = [
    "ALL_DEAD",
    "CANCELLED",
    "ENDING",
    "WORKER_SILENT_S",
    "Added",
    "Ask",
    "Chain",
    "Control",
    "CrawlState",
    "DeadFilter",
    "DeadPlace",
    "Entry",
    "Grant",
    "Holding",
    "Host",
    "HostOrder",
    "Lease",
    "Leased",
    "Outcome",
    "Pulse",
    "Pushback",
    "Record",
    "Repaired",
    "Stats",
    "TaskState",
    "Verdict",
]
