"""The states of tasks and crawls, and the actions and verdicts that change them."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """The state of a task. SQLite files store the number of the member: keep the order."""

    WAITING = "waiting"
    DELAYED = "delayed"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    DROPPED = "dropped"


class CrawlState(StrEnum):
    """The state of a crawl."""

    NEW = "new"
    """It has seeds, but was never started."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"

    @property
    def over(self) -> bool:
        """Whether it has ended: no more tasks are handed out, unless new seeds come."""
        return self in (CrawlState.CANCELLED, CrawlState.FINISHED)

    @property
    def live(self) -> bool:
        """Whether it was started and is not over."""
        return self in (CrawlState.RUNNING, CrawlState.PAUSED)


class Control(StrEnum):
    """An action on a whole crawl."""

    SEAL = "seal"
    """All seeds are in: from now on the crawl finishes when nothing is left."""
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    """All tasks that have not ended are dropped."""


CANCELLED = "crawl '{}' was cancelled; --fresh starts it over"
"""The error for callers that bring work to a cancelled crawl."""


class Verdict(StrEnum):
    """How one try at a task ended."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    DROPPED = "dropped"
    RETURNED = "returned"


ENDING = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.DROPPED})
"""The verdicts after which a task is not tried again, unless somebody retries it."""
