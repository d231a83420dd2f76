"""Moves messages from a source into a crawl's frontier. This is what `shoal feed` runs.

    take ─▶ admit ─▶ frontier.add ─▶ done
              └─ no task, or not admitted ─▶ put aside, with the reason

A message is acknowledged only when the frontier has its tasks. If a feeder is killed, its
unacknowledged messages go to others. Those tasks that it had added already are duplicates then.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from shoal.config import Rules
from shoal.core.task import Task, without_unknown
from shoal.errors import BadUrl, ConfigError, StorageBusy, UnknownCrawl
from shoal.feeds.formats import BadMessage, DeadTask, tasks_of
from shoal.feeds.port import Message, Rejected, Source, printable
from shoal.frontier.admission import Admission
from shoal.frontier.port import WorkIntake
from shoal.frontier.values import CANCELLED, Added, CrawlState, Entry
from shoal.runtime.patience import NowAndThen, Stopped, patiently_until, wait_for_event

BATCH = 500
WAIT_S = 1.0
"""How long `take` waits for a message. Stopping may take that long."""
PAUSED_S = 0.5
"""How often the state of a paused crawl is checked."""
PAUSED = "the crawl is paused"
WARN_EVERY_S = 10.0
MORE_THAN_TOLD = "the dead task had more than this message says: use shoal dead retry"

T = TypeVar("T")

log = logging.getLogger("shoal")


class Fed(msgspec.Struct):
    """The counts of a feeder so far."""

    messages: int = 0
    added: int = 0
    known: int = 0
    retried: int = 0
    """Dead tasks that were given a fresh start: their messages say `"retry": true`."""
    rejected: int = 0
    waiting: int = 0
    """How many messages were in the source at the last look."""

    @property
    def told(self) -> str:
        """The counts in words."""
        brought = Added(self.added, self.known, self.retried)
        return f"{brought.told}, {self.rejected:,} rejected"


class Feeder:
    """Feeds one crawl from one source, until told to stop or there are no more messages."""

    def __init__(
        self,
        source: Source,
        frontier: WorkIntake,
        crawl: str,
        *,
        until_empty: bool = False,
        watch: Callable[[Fed], object] = lambda fed: None,
    ) -> None:
        self.fed = Fed()
        self.last_at: float | None = None
        """When the last message came. None: there was none yet."""
        self.held_up = ""
        """Why no messages are moved at present. Empty: nothing prevents it."""
        self._source = source
        self._frontier = frontier
        self._crawl = crawl
        self._until_empty = until_empty
        self._watch = watch
        self._stopping = asyncio.Event()
        self._warning = NowAndThen(WARN_EVERY_S)

    def drain(self) -> None:
        """Stop gently: `run` returns after the current batch."""
        self._stopping.set()

    async def run(self) -> None:
        """Feed until `drain` is called, or with `until_empty` until the source is empty. Raises
        StorageFailed or ConfigError; the messages of the current batch then stay in the source."""
        try:
            while not self._stopping.is_set():
                rules = await self._rules()
                if rules is None:
                    self.held_up = PAUSED
                    await wait_for_event(self._stopping, PAUSED_S)
                elif not await self._move_some(rules) and self._until_empty:
                    break
        except Stopped as reason:
            log.warning("stopped while waiting; what is not added stays there: %s", reason)

    async def _rules(self) -> Rules | None:
        """The crawl's rules, or None while it is paused. Raises ConfigError if it is cancelled."""
        try:
            stats = await self._patiently("frontier", partial(self._frontier.stats, self._crawl))
        except UnknownCrawl:
            return Rules()
        if stats.state is CrawlState.CANCELLED:
            raise ConfigError(CANCELLED.format(self._crawl))
        return None if stats.state is CrawlState.PAUSED else stats.rules

    async def _move_some(self, rules: Rules) -> bool:
        """Move a batch. Returns whether there were any messages, or more of them wait."""
        messages = await self._of_source(partial(self._source.take, BATCH, WAIT_S))
        if messages:
            self.last_at = time.time()
            await self._move(messages, rules)
        self.fed.waiting = await self._of_source(self._source.waiting)
        self._watch(self.fed)
        return bool(messages or self.fed.waiting)

    async def _move(self, messages: Sequence[Message], rules: Rules) -> None:
        admission = Admission(rules)
        entries, moved, rejected = list[Entry](), list[Message](), list[Rejected]()
        for message in messages:
            try:
                entries += _entries(message, admission)
                moved.append(message)
            except BadUrl as error:
                rejected.append(Rejected(message, str(error)))
        if rejected:
            await self._reject(rejected)
        for start in range(0, len(entries), BATCH):
            some = entries[start : start + BATCH]
            add = partial(self._frontier.add, self._crawl, some)
            added = await self._patiently("frontier", add)
            self.fed.added += added.added
            self.fed.known += added.duplicates
            self.fed.retried += added.retried
        await self._of_source(partial(self._source.done, moved))
        self.fed.messages += len(moved)

    async def _reject(self, rejected: Sequence[Rejected]) -> None:
        await self._of_source(partial(self._source.reject, rejected))
        self.fed.rejected += len(rejected)
        if self._warning.is_due():
            log.warning("a message was put aside: %s", printable(rejected[0].reason))

    async def _of_source(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self._patiently(f"feed {self._source.shown}", call)

    async def _patiently(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        async def tried() -> T:
            try:
                answer = await call()
            except StorageBusy as error:
                self.held_up = str(error)
                raise
            self.held_up = ""
            return answer

        return await patiently_until(self._stopping, what, tried)


def _entries(message: Message, admission: Admission) -> list[Entry]:
    """The entries of all tasks of a message. Raises BadUrl if any of them is not admitted."""
    entries = list[Entry]()
    for number, task in enumerate(tasks_of(message.wire)):
        if task.dont_filter and not task.task_id and message.id:
            # Otherwise it would get a new random id each time the message is delivered.
            task.task_id = uuid.uuid5(uuid.NAMESPACE_URL, f"{message.id} {number}").hex
        entries.append(_entry(task, admission))
    return entries


def _entry(task: Task, admission: Admission) -> Entry:
    entry = admission.admit(without_unknown(task))
    if isinstance(task, DeadTask) and task.fingerprint != entry.fingerprint.hex():
        raise BadMessage(MORE_THAN_TOLD)
    return entry
