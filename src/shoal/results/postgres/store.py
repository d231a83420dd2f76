"""The results store in PostgreSQL: one database for a whole fleet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import msgspec

from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.urls import fingerprint_of, number_of
from shoal.errors import StorageBusy, unreachable
from shoal.results.port import (
    EVERYTHING,
    STREAM_BYTES,
    STREAM_ROWS,
    Batch,
    KnownPage,
    NearPage,
    PageLog,
    Place,
    Pruned,
    Results,
    RunNote,
    Wanted,
)
from shoal.results.postgres import pruning, saving, schema
from shoal.results.postgres.link import ANSWER_S, LONG_S, Connection, PostgresLink
from shoal.results.postgres.rows import (
    FieldOrder,
    fields_of,
    file_of,
    item_of,
    known_pages_of,
    moment,
    page_of,
    rejected_of,
    storable_json,
    storable_text,
)
from shoal.results.postgres.schema import QUERIES

PRUNE_S = 6 * LONG_S
"""How long pruning may take, as it waits for all readers of each month's table."""

_LEAST = -(2**63)
"""A number below that of practically every fingerprint, to start a stream with."""

LOOK_AGAIN = timedelta(days=1)
"""How often a process checks that the tables of the next months exist."""


class PostgresResults(Results):
    """Results in PostgreSQL. A batch is one statement, committed when `save` returns."""

    def __init__(self, address: str) -> None:
        self._link = PostgresLink(address, self._is_up_to_date, self._bring_up_to_date)
        self._look_at = datetime.now(UTC)
        self._noted_kinds: set[tuple[str, str]] = set()

    async def check(self) -> None:
        try:
            await self._link.run(self._is_up_to_date)
        except StorageBusy as error:
            raise unreachable(error) from None

    async def save(self, crawl: str, batch: Batch) -> None:
        if datetime.now(UTC) >= self._look_at:
            await self._link.run(self._look_at_months, LONG_S)
        await self._note_kinds(crawl, batch.items)
        within_s = ANSWER_S * saving.statements_of(batch)
        await self._link.run(partial(saving.save, storable_text(crawl), batch), within_s)

    async def _note_kinds(self, crawl: str, items: Sequence[StoredItem]) -> None:
        new = {i.kind: i for i in reversed(items) if (crawl, i.kind) not in self._noted_kinds}
        if new:
            kinds = [storable_text(kind) for kind in new]
            fields = [storable_json(fields_of(item.data)) for item in new.values()]
            await self._rows("note_kinds", crawl, kinds, fields)
            self._noted_kinds.update((crawl, kind) for kind in new)

    async def _field_order(self, crawl: str) -> FieldOrder:
        rows = await self._rows("kinds", crawl)
        return {row["kind"]: msgspec.json.decode(row["fields"]) for row in rows}

    async def items_after(
        self, crawl: str, place: int, limit: int, wanted: Wanted = EVERYTHING
    ) -> list[tuple[int, StoredItem]]:
        since = None if wanted.since is None else moment(wanted.since)
        kind = None if wanted.kind is None else storable_text(wanted.kind)
        which = kind, since, wanted.changed, wanted.gone
        rows = await self._rows("items_after", crawl, place, *which, limit, STREAM_BYTES)
        order = await self._field_order(crawl) if rows else {}
        return [(row["id"], item_of(row, order)) for row in rows]

    async def items_behind(
        self, crawl: str, place: Place, limit: int, kind: str | None, at: float | None
    ) -> list[StoredItem]:
        which = None if kind is None else storable_text(kind), None if at is None else moment(at)
        behind = map(storable_text, place)
        rows = await self._rows("items_behind", crawl, *behind, *which, limit, STREAM_BYTES)
        order = await self._field_order(crawl) if rows else {}
        return [item_of(row, order) for row in rows]

    async def history(self, crawl: str, kind: str, key: str) -> list[StoredItem]:
        names = storable_text(kind), storable_text(key)
        order = await self._field_order(crawl)
        return [item_of(row, order) for row in await self._rows("history", crawl, *names)]

    async def count(self, crawl: str) -> dict[str, int]:
        return {
            row["kind"]: row["count"]
            for row in await self._rows("count_items", crawl, within_s=LONG_S)
        }

    async def pages_of(self, crawl: str, fingerprint: bytes) -> list[PageLog]:
        return [page_of(row) for row in await self._rows("pages_of", crawl, number_of(fingerprint))]

    async def tasks_at(self, crawl: str, urls: Sequence[str], limit: int) -> list[bytes]:
        spellings = [storable_text(url) for url in urls]
        rows = await self._rows("tasks_at", crawl, spellings, limit, within_s=LONG_S)
        return [fingerprint_of(row["fingerprint"]) for row in rows]

    async def items_of(self, crawl: str, fingerprint: bytes) -> list[StoredItem]:
        order = await self._field_order(crawl)
        rows = await self._rows("items_of", crawl, number_of(fingerprint))
        return [item_of(row, order) for row in rows]

    async def known_pages(
        self, crawl: str, fingerprints: Sequence[bytes]
    ) -> dict[bytes, KnownPage]:
        numbers = [number_of(fingerprint) for fingerprint in fingerprints]
        return known_pages_of(await self._rows("known_pages", crawl, numbers))

    async def mark_gone(self, crawl: str, previous: str, at: float) -> int:
        earlier = storable_text(previous)
        await self._rows("mark_gone", crawl, earlier, moment(at), within_s=LONG_S)
        await self._rows("copy_files", crawl, earlier, within_s=LONG_S)
        ((gone,),) = await self._rows("count_gone", crawl, earlier, within_s=LONG_S)
        return int(gone)

    async def rejected_of(self, crawl: str, fingerprint: bytes) -> list[RejectedItem]:
        rows = await self._rows("rejected_of", crawl, number_of(fingerprint))
        return [rejected_of(row) for row in rows]

    async def rejected(self, crawl: str) -> AsyncIterator[RejectedItem]:
        after = 0
        while rows := await self._rows("rejected_after", crawl, after, STREAM_ROWS):
            for row in rows:
                yield rejected_of(row)
            after = rows[-1]["id"]

    async def files_of(self, crawl: str, fingerprints: Sequence[bytes]) -> dict[bytes, StoredFile]:
        rows = await self._rows("files_of", crawl, [number_of(each) for each in fingerprints])
        return {file.fingerprint: file for file in map(file_of, rows)}

    async def files(self, crawl: str) -> AsyncIterator[StoredFile]:
        after = _LEAST
        while rows := await self._rows("files_after", crawl, after, STREAM_ROWS):
            for row in rows:
                yield file_of(row)
            after = rows[-1]["fingerprint"]

    async def signatures(self, crawl: str) -> AsyncIterator[tuple[bytes, int]]:
        after: list[Any] = [_LEAST, moment(0), -1, ""]
        while rows := await self._rows("signatures_after", crawl, *after, STREAM_ROWS):
            for row in rows:
                yield fingerprint_of(row["fingerprint"]), row["simhash"]
            after = list(rows[-1])[:-1]

    async def mark_near(self, crawl: str, pages: Sequence[NearPage]) -> None:
        columns = (
            [number_of(page.fingerprint) for page in pages],
            [number_of(page.like) for page in pages],
            [page.distance for page in pages],
        )
        await self._rows("mark_near", crawl, *columns)

    async def near_of(self, crawl: str, fingerprint: bytes) -> NearPage | None:
        for like, distance in await self._rows("near_of", crawl, number_of(fingerprint)):
            return NearPage(fingerprint, fingerprint_of(like), distance)
        return None

    async def note_of(self, crawl: str) -> RunNote | None:
        for row in await self._rows("note_of", crawl):
            return RunNote(*row)
        return None

    async def note_run(self, crawl: str, note: RunNote) -> None:
        targets = [storable_text(target) for target in note.targets]
        previous = storable_text(note.previous)
        where = note.archive, previous, note.file_store
        await self._rows("note_run", crawl, note.frontier, targets, *where)

    async def prune(self, before: float, *, detach: bool = False, dry_run: bool = False) -> Pruned:
        if not dry_run:
            await self._link.run(self._look_at_months, LONG_S)
        how = partial(pruning.prune, moment(before), detach=detach, dry_run=dry_run)
        return await self._link.run(how, PRUNE_S)

    async def forget(self, crawl: str) -> None:
        await self._rows("forget", crawl, within_s=LONG_S)

    async def close(self) -> None:
        await self._link.close()

    async def _rows(
        self, query: str, crawl: str, *values: Any, within_s: float = ANSWER_S
    ) -> list[asyncpg.Record]:
        ask: Callable[[Connection], Awaitable[list[asyncpg.Record]]]
        ask = lambda link: link.fetch(QUERIES[query], storable_text(crawl), *values)  # noqa: E731
        return await self._link.run(ask, within_s)

    async def _is_up_to_date(self, connection: Connection) -> bool:
        return await schema.is_up_to_date(connection, self._link.shown)

    async def _bring_up_to_date(self, connection: Connection) -> None:
        await schema.bring_up_to_date(connection, self._link.shown)

    async def _look_at_months(self, connection: Connection) -> None:
        now = datetime.now(UTC)
        await schema.make_months(connection, self._link.shown, now)
        self._look_at = now + LOOK_AGAIN
