"""Exceptions that a spider raises to decide what happens to a task: `Retry` and `Drop`."""

from __future__ import annotations

from math import isfinite

from shoal.core.policy import MAX_DURATION_S, parse_duration
from shoal.errors import ShoalError


class Retry(ShoalError):
    """Raise it in a handler if the page is of no use now, to try its task again later.

    This counts as a failed try. After `max_retries` of them, the task is dead, with this reason.
    """

    def __init__(self, reason: str = "", *, after: str | float | None = None) -> None:
        """`after` is the shortest time to wait, `30s` or a number of seconds. Without it, or if it
        is longer, the usual backoff applies. Raises ConfigError or ValueError if it is not a time.
        """
        super().__init__(reason)
        self.after_s = None if after is None else _seconds(after)


class Drop(ShoalError):
    """Raise it in a handler if the page has nothing of interest.

    The task is dropped, with this reason, and nothing of its page is kept.
    """


def _seconds(after: str | float) -> float:
    if isinstance(after, str):
        return parse_duration(after)
    if type(after) not in (int, float) or not (isfinite(after) and 0 <= after <= MAX_DURATION_S):
        raise ValueError(f"not a time to wait: {after!r:.80} (write '30s', or seconds)")
    return float(after)
