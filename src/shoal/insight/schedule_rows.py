"""Shows schedules and their runs as rows of text."""

from __future__ import annotations

from shoal.coordinator.plan import Planned
from shoal.coordinator.runs import Run
from shoal.insight.figures import duration

PLAN_COLUMNS = ("schedule", "next", "now", "last")
RUN_COLUMNS = ("run", "state", "took", "total", "done", "failed", "items", "same", "gone")


def plan_row(at: Planned) -> tuple[str, ...]:
    """The cells of `PLAN_COLUMNS`."""
    now = "paused" if at.is_paused else ""
    if at.running:
        now = ", ".join(at.running) + (f" ({at.late})" if at.late else "")
    last = f"{at.last.crawl}: {outcome(at.last)}" if at.last else ""
    return at.name, at.next_local or "never", now, last


def run_row(run: Run) -> tuple[str, ...]:
    """The cells of `RUN_COLUMNS`."""
    took = run.ended_at - run.started_at if run.ended_at and run.started_at else None
    numbers = (run.total, run.done, run.failed, run.items, run.unchanged, run.gone)
    return (
        run.crawl,
        outcome(run),
        duration(took) if took is not None else "",
        *(f"{n:,}" if run.started_at else "" for n in numbers),
    )


def outcome(run: Run) -> str:
    """How a run ended, and why."""
    late = ", late" if run.is_late else ""
    return f"{run.state}{late}: {run.reason}" if run.reason else f"{run.state}{late}"
