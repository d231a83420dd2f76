"""The states of tasks and crawls, and what leads from one to another."""

from __future__ import annotations

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task is in its life. SQLite files keep its number: the order stays."""

    WAITING = "waiting"
    DELAYED = "delayed"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    DROPPED = "dropped"


class CrawlState(StrEnum):
    """Where a crawl is in its life."""

    NEW = "new"
    """Has seeds, but nobody has started it."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FINISHED = "finished"

    @property
    def over(self) -> bool:
        """Nothing will be handed out any more, unless new seeds come."""
        return self in (CrawlState.CANCELLED, CrawlState.FINISHED)

    @property
    def live(self) -> bool:
        """It was started, and is not over."""
        return self in (CrawlState.RUNNING, CrawlState.PAUSED)


class Control(StrEnum):
    """What can be done to a whole crawl."""

    SEAL = "seal"
    """All seeds are in: from now on the crawl is finished when nothing is left."""
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    """Everything not yet ended is dropped."""


CANCELLED = "crawl '{}' was cancelled; --fresh starts it over"
"""What those are told who bring work to a cancelled crawl."""


class Verdict(StrEnum):
    """How one try at a task ended."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    DROPPED = "dropped"
    RETURNED = "returned"


ENDING = frozenset({Verdict.DONE, Verdict.DEAD, Verdict.DROPPED})
"""Those after which a task is never tried again, unless somebody asks for it."""
