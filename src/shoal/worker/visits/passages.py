"""What a try by an exit says of the exit, and what becomes of its task. Decisions only."""

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
    """What is said of a try that was blocked. Where the status does not show it, with evidence."""
    shown = f" ({block.evidence})" if block.evidence and 200 <= status < 300 else ""
    return f"HTTP {status}, {block.kind}{shown}"


def blocked_by_site(
    lease: Lease, lent: Lent, reason: str, passage: Passage, max_blocks: int
) -> Outcome:
    """A try by an exit was blocked. It is no failure of the host: others may be served. The task is
    tried by other exits, for so many blocks and no more."""
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
    # Where an exit was tried more than once before, all have been: this one was, too.
    exits = lent.tried + 1 if lent.tried >= lent.blocks else lent.tried
    times = f"{blocks} times" if blocks > 1 else "once"
    by = f"{exits} exits" if exits > 1 else "1 exit"
    return f"blocked {times} by {by}, last: {kind}"


def passage_of(error: FetchError) -> Passage:
    """Whom the lack of an answer is blamed on. Where it is not known whether the exit or the host
    is to blame, it is the pair: others will show which of them it is."""
    if isinstance(error, ExitFault):
        return Passage(Blame(error.blame))
    return Passage(Blame.PAIR) if error.retryable else GOOD


def is_of_exit(passage: Passage) -> bool:
    """Whether a try could not be made at all, as its exit is not fit for use."""
    return passage.blame in (Blame.EXIT, Blame.FORGED)


def note_passage(outcome: Outcome) -> None:
    """A try by an exit was answered: that is good, if nothing else was said of it."""
    if outcome.passage is None and outcome.sent:
        outcome.passage = GOOD


class Warnings:
    """Warns once of each exit."""

    MOST = 1_000
    """Of so many at most: a list may be long, and all of it bad."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def forged(self, exit_id: str, error: FetchError) -> None:
        """An exit has shown a certificate that is not the host's."""
        if exit_id not in self._warned and len(self._warned) < self.MOST:
            self._warned.add(exit_id)
            log.warning("exit %s is not used for a while: %s", exit_id, error)
