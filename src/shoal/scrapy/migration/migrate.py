"""Migration: moves what scrapy-redis left in Redis into a frontier: its queue and what it has seen.

The queue goes first, then the dupefilter: a request that is known as seen could no longer be
queued. Everything is removed from its place only when the frontier has it, so a migration that was
stopped at any point is finished by starting it again. The project's code is not needed, and none is
run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec
from scrapy.utils.request import RequestFingerprinter

from shoal.errors import ConfigError, StorageBusy, UnknownCrawl, unreachable
from shoal.frontier.patient import patient
from shoal.frontier.port import WorkIntake
from shoal.frontier.values import CANCELLED, CrawlState, Entry
from shoal.scrapy.fingerprinters import OldScrapyRedisFingerprinter, ScrapyRedisFingerprinter
from shoal.scrapy.migration.oldqueue import OldKeys, OldQueue
from shoal.scrapy.migration.pickled import NotARequest, Stored, entry_of, request_of, values_of
from shoal.scrapy.wire.fingerprint import Fingerprinter, short_fingerprint
from shoal.scrapy.wire.loaded import class_name

BATCH = 500
SAMPLE = 50
REASONS_KEPT = 20

UNKNOWN = "unknown"
"""Marks a dupefilter whose fingerprints the project made in its own way."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[str, int], object]]]
"""Makes a progress bar for a number of things; it is given a stage and how many are done."""

_KINDS: tuple[Fingerprinter, ...] = (
    ScrapyRedisFingerprinter(),
    OldScrapyRedisFingerprinter(),
    RequestFingerprinter(),
)


class Migrated(msgspec.Struct):
    """How much a migration has moved, and what it could not read."""

    requests: int = 0
    """Requests queued in the frontier."""
    duplicates: int = 0
    """Requests that the frontier had already."""
    fingerprints: int = 0
    """Fingerprints of requests that were seen."""
    unreadable: int = 0
    """Entries that were left where they are."""
    reasons: dict[str, int] = {}
    """Reasons for those, with how many each."""
    fingerprinter: str = ""
    """What the project must set as REQUEST_FINGERPRINTER_CLASS; empty if nothing was seen."""


class Migration:
    """Moves the keys of one spider into one crawl."""

    def __init__(
        self, keys: OldKeys, frontier: WorkIntake, crawl: str, *, keep: bool, progress: Progress
    ) -> None:
        """`keep` copies: everything also stays where it is."""
        self._keys = keys
        self._frontier = frontier
        self._crawl = crawl
        self._keep = keep
        self._progress = progress
        self._fingerprinter: Fingerprinter = RequestFingerprinter()
        self.done = Migrated()

    async def run(self) -> Migrated:
        """Move everything. Raises ConfigError if something is not as it should be; nothing was
        moved then."""
        queue = await self._keys.queue()
        await self._check_frontier()
        await self._find_kind(queue)
        await self._move_requests(queue)
        await self._move_fingerprints()
        if not self._keep and await queue.length() > self.done.unreadable:
            # A worker of scrapy-redis is still running. What it has queued meanwhile it has also
            # put into the dupefilter, so it may be known as seen by now.
            self.done.unreadable, self.done.reasons = 0, {}
            await self._move_requests(queue, unique=True)
        return self.done

    async def _check_frontier(self) -> None:
        try:
            state = (await self._frontier.stats(self._crawl)).state
        except UnknownCrawl:
            return
        except StorageBusy as error:
            raise unreachable(error) from None
        if state is CrawlState.CANCELLED:
            raise ConfigError(CANCELLED.format(self._crawl))

    async def _find_kind(self, queue: OldQueue) -> None:
        """Find out how the fingerprints in the dupefilter were made, from queued requests that it
        has."""
        if not await self._keys.fingerprints():
            return
        hits: Counter[Fingerprinter] = Counter()
        requests = [request_of(values) for values in await self._sample(queue)]
        for kind in _KINDS if requests else ():
            found = await self._keys.known([kind.fingerprint(request) for request in requests])
            hits[kind] = sum(found)
        best = max(_KINDS, key=lambda kind: hits[kind])
        if requests and not hits[best]:
            self.done.fingerprinter = UNKNOWN
            return
        self._fingerprinter = best
        self.done.fingerprinter = class_name(type(best))

    async def _sample(self, queue: OldQueue) -> list[dict[str, object]]:
        sample = []
        for stored in await queue.read(0, BATCH):
            try:
                values = values_of(stored)
                request_of(values)
            except NotARequest:
                continue
            if not values["dont_filter"]:
                sample.append(values)
        return sample[:SAMPLE]

    async def _move_requests(self, queue: OldQueue, *, unique: bool = False) -> None:
        skip = 0
        with self._progress("requests", await queue.length()) as watch:
            while batch := await queue.read(skip, BATCH):
                readable, entries = self._read(batch, unique=unique)
                await self._add(entries)
                if readable and not self._keep:
                    await queue.remove(readable)
                skip += len(batch) - (0 if self._keep else len(readable))
                watch("moved", self.done.requests + self.done.duplicates)

    def _read(self, batch: list[Stored], *, unique: bool) -> tuple[list[Stored], list[Entry]]:
        readable, entries = [], []
        for stored in batch:
            try:
                entries.append(entry_of(stored, self._fingerprinter, unique=unique))
            except NotARequest as error:
                self._report(str(error))
            else:
                readable.append(stored)
        return readable, entries

    def _report(self, reason: str) -> None:
        # Untrusted text that goes to a terminal.
        reason = "".join(char if char.isprintable() else "?" for char in reason[:300])
        reasons = self.done.reasons
        self.done.unreadable += 1
        if reason in reasons or len(reasons) < REASONS_KEPT:
            reasons[reason] = reasons.get(reason, 0) + 1

    async def _add(self, entries: list[Entry]) -> None:
        if not entries:
            return
        added = await patient(self._frontier).add(self._crawl, entries)
        self.done.requests += added.added
        self.done.duplicates += added.duplicates

    async def _move_fingerprints(self) -> None:
        with self._progress("fingerprints", await self._keys.fingerprints()) as watch:
            async for members in self._keys.scan():
                known = [short_fingerprint(raw) for raw in map(_as_bytes, members) if raw]
                await self._remember(known)
                if not self._keep:
                    await self._keys.remove_fingerprints(members)
                self.done.fingerprints += len(known)
                watch("moved", self.done.fingerprints)

    async def _remember(self, fingerprints: list[bytes]) -> None:
        await patient(self._frontier).remember(self._crawl, fingerprints)


def _as_bytes(member: bytes) -> bytes:
    """Return a fingerprint as it was before it was written in hex."""
    try:
        return bytes.fromhex(member.decode())
    except ValueError:
        return member
