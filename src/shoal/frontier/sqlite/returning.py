"""Takes exits back when leases end, and applies what the tries say about exits and lanes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.core import exit_policy as policy
from shoal.core.exits import Blame, Exit, Passage, PoolRules
from shoal.core.identities import is_group
from shoal.core.policy import MAX_BLOCKS, after_fault, after_pushback
from shoal.frontier.sqlite.account_returning import has_met_an_end, return_account
from shoal.frontier.sqlite.hosts import HostSchedule
from shoal.frontier.sqlite.lanes import LaneSchedule
from shoal.frontier.sqlite.step import Step, as_json
from shoal.frontier.values import Outcome

_read_tried = msgspec.json.Decoder(list[str]).decode


class LentRow(msgspec.Struct):
    """What was lent to a task: a row of the table `passages`."""

    task_id: int
    exit: str
    session: int
    pool: str
    leased_at: float
    blocks: int
    tried: str
    account: str
    expired: int


class Returning:
    """What was lent to those tasks of a step that end now."""

    def __init__(self, current: Step, task_ids: Iterable[int]) -> None:
        self._current = current
        self._exits = current.exits
        self._ended: list[int] = []
        rows = current.execute("passages", as_json(task_ids)).fetchall()
        self._passed = {row[0]: LentRow(*row) for row in rows}
        lent = [name for each in self._passed.values() for name in (each.exit, each.account)]
        self._exits.read(filter(None, lent))

    def read_pairs(self, keys: Iterable[tuple[int, LaneSchedule]]) -> None:
        """Read the pairs of these tasks and lanes at once."""
        found = ((self._passed.get(task_id), lane) for task_id, lane in keys)
        self._exits.read_pairs(
            (lane.host, passed.exit) for passed, lane in found if passed and passed.exit
        )

    def settle(
        self, task_id: int, lane: LaneSchedule, host: HostSchedule, outcome: Outcome | None
    ) -> None:
        """Free the exit of a lease that has ended, with an outcome or without one."""
        if (passed := self._passed.get(task_id)) is None:
            return
        passage = outcome.passage if outcome else None
        exit_ = self._exits.exit(passed.exit) if passed.exit else None
        if exit_ is not None:
            ExitReturn(self._current, exit_, lane, host, passed).apply(outcome)
        if passed.account:
            return_account(self._exits, passed.account, outcome)
            passed.expired += has_met_an_end(outcome)
        if lane.state.starved_at == 0.0:  # The lane may have waited for this lease to end.
            lane.next_at = min(lane.next_at, max(host.next_at, self._current.now))
        if passage is not None and passage.block:
            passed.blocks = min(passed.blocks + 1, MAX_BLOCKS)
            passed.tried = _with(passed.tried, passed.exit)

    def forget(self, task_id: int, *, has_ended: bool) -> None:
        """Forget what was lent to a task.

        If it will be tried again, its blocks and ended sessions stay known.
        """
        passed = self._passed.get(task_id)
        if has_ended or passed is None or not (passed.blocks or passed.expired):
            self._ended.append(task_id)
        else:
            kept = passed.blocks, passed.tried, passed.expired
            self._current.execute("keep_blocks", task_id, *kept)

    def write(self) -> None:
        """Delete all rows that are no longer needed, at once."""
        self._current.execute("end_passages", as_json(self._ended))


class ExitReturn:
    """Applies one try to its exit and its lane."""

    def __init__(
        self, current: Step, exit_: Exit, lane: LaneSchedule, host: HostSchedule, passed: LentRow
    ) -> None:
        self._current, self._exits = current, current.exits
        self._exit, self._lane, self._host = exit_, lane, host
        self._leased_at = passed.leased_at
        self._now = self._exits.now
        self._pair = self._exits.pair(lane.host, exit_)
        self._is_same_session = policy.is_of_session(exit_, passed.session)
        self._retries = False

    def apply(self, outcome: Outcome | None) -> None:
        """Take the exit back, and apply what the outcome says about it."""
        before = self._pair
        self._exits.give_back(self._exit, before, self._leased_at)
        if outcome is not None and outcome.passage is not None:
            self._retries = outcome.lease.task.retry_count > 0
            if outcome.sent:
                self._count(outcome)
            self._apply_passage(outcome.passage, sent=outcome.sent)
        self._exits.put(self._exit)
        if self._pair is not None or before is not None:
            self._exits.put_pair(self._lane.host, self._exit.id, self._pair)

    def _count(self, outcome: Outcome) -> None:
        self._exit.requests += 1
        self._exit.wire_bytes += outcome.wire_bytes
        spent = self._exits.spent[self._exit.pool]
        policy.spend(spent, self._exits.rules[self._exit.pool], outcome.wire_bytes, self._now)

    def _apply_passage(self, passage: Passage, *, sent: bool) -> None:
        match passage.blame:
            case Blame.EXIT | Blame.FORGED:
                forged = passage.blame is Blame.FORGED
                policy.after_fault(self._exit, self._now, self._leased_at, forged=forged)
            case Blame.PAIR:
                self._unreached()
            case Blame.NOBODY if passage.block:
                self._blocked(passage)
            case Blame.NOBODY if sent:
                self._good()

    def _good(self) -> None:
        if self._is_same_session:
            policy.after_good(self._exit, self._pair, self._now, self._leased_at)
        self._is_site_wide(is_block=False)

    def _blocked(self, passage: Passage) -> None:
        lane = self._lane.state
        if self._is_site_wide(is_block=True):
            self._blame_site(passage)
            return
        if self._is_same_session and self._now >= lane.site_until:
            self._pair = policy.after_block(
                self._exit,
                self._pair,
                self._rules,
                self._now,
                self._leased_at,
                passage.retry_after_s,
                passage.dice,
            )

    def _is_site_wide(self, *, is_block: bool) -> bool:
        """Count a response for the lane's tier; True if the site is now to blame for its blocks. A
        response to an exit of another tier is a probe, or too late."""
        pool, names, state = self._exit.pool, self._tiers, self._lane.state
        if pool != names[min(state.tier, len(names) - 1)]:
            if policy.is_probe(state, pool, names, self._leased_at):
                policy.after_probe(state, self._now, is_good=not is_block)
            return False
        listed = self._exits.listed.get(self._exit.pool, 0)
        lane, exit_id = self._lane.state, self._exit.id
        return policy.count_answer(lane, exit_id, self._now, is_block=is_block, exits=listed)

    def _blame_site(self, passage: Passage) -> None:
        """Escalate to the next pool, as the site blocks this one, or leave the site alone."""
        lane, names = self._lane.state, self._tiers
        tier = min(lane.tier, len(names) - 1)
        if tier + 1 < len(names) and self._exits.may_spend(names[tier + 1]):
            lane.tier = tier
            policy.go_up(lane, self._now)
            return
        lane.site_until = self._now + policy.SITE_S
        host, now = self._host, self._current.now
        wait_s = passage.retry_after_s or None
        host.pace = after_pushback(host.pace, now, self._leased_by_crawl, wait_s, meant=True)

    def _unreached(self) -> None:
        if not self._is_same_session:
            return
        host, lane = self._host, self._lane
        self._pair, is_host = policy.after_unreached(
            self._exit, self._pair, lane.state, lane.host, self._now, self._leased_at
        )
        if is_host:
            now, leased_at = self._current.now, self._leased_by_crawl
            host.pace = after_fault(host.pace, now, leased_at, is_retry=self._retries)

    @property
    def _tiers(self) -> list[str]:
        if is_group(self._lane.pool):
            return [self._exit.pool]  # Accounts have no further tiers.
        return policy.tiers(self._lane.pool, self._exits.rules)

    @property
    def _rules(self) -> PoolRules:
        return self._exits.rules[self._exit.pool]

    @property
    def _leased_by_crawl(self) -> float:
        return self._current.by_crawl(self._leased_at)


def _with(tried: str, exit_id: str) -> str:
    names = _read_tried(tried)
    if not exit_id or exit_id in names:
        return tried
    return msgspec.json.encode([*names, exit_id]).decode()
