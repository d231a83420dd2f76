"""Decides what a try by an exit says about the exit, and what happens to its task. Pure."""

from __future__ import annotations

import logging

from shoal.core.blocks import Block
from shoal.core.exit_policy import blocked_wait_s
from shoal.core.exits import Blame, Lent, Passage
from shoal.core.failures import FailureKind
from shoal.errors import ExitFault, FetchError
from shoal.frontier.values import Lease, Outcome, Verdict

GOOD = Passage()

log = logging.getLogger("shoal")


def reason_of(status: int, block: Block) -> str:
    """Return the reason of a blocked try, with evidence where the status does not show the
    block."""
    shown = f" ({block.evidence})" if block.evidence and 200 <= status < 300 else ""
    return f"HTTP {status}, {block.kind}{shown}"


def blocked_by_site(
    lease: Lease, lent: Lent, reason: str, passage: Passage, max_blocks: int
) -> Outcome:
    """Return the outcome of a try by an exit that was blocked. This is no failure of the host:
    others may be served. The task is tried by other exits, until it has been blocked `max_blocks`
    times."""
    kind = FailureKind.BLOCKED
    outcome = Outcome(lease=lease, verdict=Verdict.RETRY, kind=kind, reason=reason, passage=passage)
    if lent.blocks + 1 >= max_blocks:
        outcome.verdict = Verdict.DEAD
        outcome.reason = _given_up(lent, passage.block)
    else:
        outcome.retry_in_s = blocked_wait_s(passage.dice)
    return outcome


def _given_up(lent: Lent, kind: str) -> str:
    blocks = lent.blocks + 1
    # Once an exit was tried twice, all of them have been tried: this one too.
    exits = lent.tried + 1 if lent.tried >= lent.blocks else lent.tried
    times = f"{blocks} times" if blocks > 1 else "once"
    by = f"{exits} exits" if exits > 1 else "1 exit"
    return f"blocked {times} by {by}, last: {kind}"


def passage_of(error: FetchError) -> Passage:
    """Return what a missing answer is blamed on. Where it is not known whether the exit or the
    host is at fault, the pair is blamed: other tries will show which."""
    if isinstance(error, ExitFault):
        return Passage(Blame(error.blame))
    return Passage(Blame.PAIR) if error.retryable else GOOD


def is_of_exit(passage: Passage) -> bool:
    """Whether a try could not be made at all because its exit is not usable."""
    return passage.blame in (Blame.EXIT, Blame.FORGED)


def note_passage(outcome: Outcome) -> None:
    """Note that a try by an exit was answered: good for the exit, unless the outcome says
    otherwise."""
    if outcome.passage is None and outcome.sent:
        outcome.passage = GOOD


class Warnings:
    """Warns once about each exit."""

    MOST = 1_000
    """The most exits that are warned about: a list may be long, and all of it bad."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def forged(self, exit_id: str, error: FetchError) -> None:
        """Warn that an exit has shown a certificate that is not the host's."""
        if exit_id not in self._warned and len(self._warned) < self.MOST:
            self._warned.add(exit_id)
            log.warning("exit %s is not used for a while: %s", exit_id, error)
