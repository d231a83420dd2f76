"""Publishes the events in workers' reports, in a format, with a publisher: see
worker/publishing.py."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from shoal.core.records import SHOWN_CHARACTERS, RejectedItem, StoredItem
from shoal.frontier.facts import POISON
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import Stats, Verdict
from shoal.publish.events import of_death, of_end, of_item
from shoal.publish.formats import Format
from shoal.publish.port import Message, Publisher
from shoal.runtime.patience import NowAndThen
from shoal.worker.publishing import Send
from shoal.worker.report import Report

TOLD = "published"
"""The topic of the notes that say which crawls' ends were published."""
NOTES_KEPT = 1_000
AT_ONCE = 500
WARN_EVERY_S = 60.0

_POISON = POISON.partition(" ")[0]

log = logging.getLogger("shoal")


class Publications:
    """Publishes the events of one crawl."""

    def __init__(
        self, crawl: str, publisher: Publisher, form: Format, frontier: QueriesAndNotes
    ) -> None:
        self.close = publisher.close
        self._crawl = crawl
        self._publisher = publisher
        self._format = form
        self._frontier = frontier
        self._warning = NowAndThen(WARN_EVERY_S)

    def prepare(self, reports: Sequence[Report]) -> Send:
        """Returns a call that publishes the events in these reports. An item that cannot be
        published is still stored, and is also recorded as rejected."""
        messages = list[Message]()
        for report in reports:
            messages += self._items(report)
            if report.outcome.verdict is Verdict.DEAD:
                messages.append(self._death(report))
        return partial(self._publish, messages)

    def _items(self, report: Report) -> Iterator[Message]:
        for item in report.items:
            try:
                message = self._format.message(of_item(self._crawl, item))
                reason = self._publisher.too_large(message)
            except msgspec.MsgspecError as error:  # A `Raw` field of an item is not JSON.
                reason = f"cannot be published: {error}"
            if reason:
                self._put_aside(report, item, reason)
            else:
                yield message

    async def finished(self, stats: Stats) -> None:
        """Publish the end of the crawl, unless another process has. Before that, publish the tasks
        that are dead because they killed their workers: no worker could publish these."""
        notes, end = self._frontier.notes, of_end(stats)
        if await notes.read(TOLD, self._crawl) == end.id.encode():
            return
        if stats.dead and stats.lost:
            await self._tell_of_poison()
        await self._publisher.publish([self._format.message(end)])
        await notes.write(TOLD, self._crawl, end.id.encode())
        known = [name for name in await notes.all(TOLD) if name != self._crawl]
        for name in known[NOTES_KEPT - 1 :]:
            await notes.write(TOLD, name, None)

    async def _publish(self, messages: list[Message]) -> None:
        if messages:
            await self._publisher.publish(messages)

    def _death(self, report: Report) -> Message:
        outcome, page = report.outcome, report.page
        lease = outcome.lease
        at = lease.now() if page is None else page.started_at + page.duration_s
        reason, detail = outcome.reason, outcome.detail
        told = of_death(self._crawl, lease.task, lease.fingerprint, reason, detail, at)
        return self._format.message(told)

    def _put_aside(self, report: Report, item: StoredItem, reason: str) -> None:
        if self._warning.is_due():
            log.warning("an item of %s: %s", item.url, reason)
        report.outcome.rejected += 1
        report.rejected = [*report.rejected, _rejected(item, reason)]

    async def _tell_of_poison(self) -> None:
        after = None
        while dead := await self._frontier.dead(self._crawl, AT_ONCE, after):
            after = dead[-1].place
            told = [
                of_death(
                    self._crawl,
                    one.task,
                    one.fingerprint,
                    one.reason,
                    one.detail,
                    one.place.died_at,
                )
                for one in dead
                if one.reason.startswith(_POISON)
            ]
            await self._publish([self._format.message(event) for event in told])


def _rejected(item: StoredItem, reason: str) -> RejectedItem:
    fields = msgspec.structs.asdict(item)
    text = item.data[: 4 * SHOWN_CHARACTERS].decode("utf-8", "replace")[:SHOWN_CHARACTERS]
    shared = {name: fields[name] for name in ("kind", "url", "fingerprint", "scraped_at")}
    return RejectedItem(**shared, data=text, reason=reason)
