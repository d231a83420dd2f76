"""Merges items (`shoal merge`): items of any host or crawl that share a natural key become one.

The natural key consists of the values of some fields. Text is compared without surrounding white
space, and the number 5 equals the text "5". The field `_sources` of each merged item lists the
items it was made of, and which of its fields came from which.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from shoal.core.files import StoredFile
from shoal.core.records import StoredItem
from shoal.drivers.sqlfiles import load_queries
from shoal.errors import ConfigError, StorageFailed, UnknownCrawl
from shoal.results.fields import PROGRESS_EVERY, Fields, Progress, fields_of, iso, text_of
from shoal.results.port import Batch, Results, Wanted

SOURCES = "_sources"
BATCH_ITEMS = 500
BATCH_BYTES = 4 * 1024 * 1024

_EMPTY = (b"null", b'""', b"[]", b"{}")
_QUERIES = load_queries("shoal.results", "merge.sql")


class Rule(StrEnum):
    """The rule by which a merged item takes values from its sources."""

    NEWEST = "newest"
    """All values come from the newest scrape."""
    FIRST_NON_EMPTY = "first-non-empty"
    """Each field takes the first value that is not empty: in the order of the crawls, and within a
    crawl the newest first."""


class Merged(msgspec.Struct):
    """How many items a merge has stored, and from how many sources."""

    items: int = 0
    """Stored items, each made of one or more sources."""
    sources: int = 0
    left_out: int = 0
    """Items without a value in one of the fields of the natural key."""


class Source(NamedTuple):
    """One item to be merged: a row of merge.sql."""

    kind: str
    natural: str
    rank: int
    crawl: str
    key: str
    url: str
    fingerprint: bytes
    scraped_at: float
    data: bytes


class MergePlan(msgspec.Struct, frozen=True):
    """Which items to merge, by which fields, and under which name to store them."""

    crawls: Sequence[str]
    into: str
    """The name under which the merged items are stored, used like that of a crawl."""
    by: Sequence[str]
    """The fields of the natural key."""
    kind: str | None = None
    """Only items of this kind."""
    rule: Rule = Rule.NEWEST
    fresh: bool = False
    """Delete the items merged under this name before. Otherwise items that no longer have a source
    stay."""


async def merge(
    results: Results, plan: MergePlan, progress: Progress = lambda stage, count: None
) -> Merged:
    """Merge the items of crawls and store them under another crawl's name.

    Merging again brings the merged items up to date. Raises ConfigError if the name belongs to a
    crawl that was run, or if there is nothing to merge; UnknownCrawl if a crawl does not exist.
    """
    await _check(results, plan.crawls, plan.into)
    done = Merged()
    with _temporary_database() as database:
        await _collect(results, plan, database, done, progress)
        _require_some(done, plan)
        if plan.fresh:
            await results.forget(plan.into)
        for batch in _batches(_merged(database, plan.rule)):
            await results.save(plan.into, Batch(items=batch))
            done.items += len(batch)
            progress("written", done.items)
    for crawl in plan.crawls:
        await _copy_files(results, crawl, plan.into)
    return done


async def _copy_files(results: Results, crawl: str, into: str) -> None:
    """Copy the records of the files that merged items may refer to."""
    batch: list[StoredFile] = []
    async for file in results.files(crawl):
        batch.append(file)
        if len(batch) >= BATCH_ITEMS:
            await results.save(into, Batch(files=batch))
            batch = []
    if batch:
        await results.save(into, Batch(files=batch))


async def _collect(
    results: Results,
    plan: MergePlan,
    database: sqlite3.Connection,
    done: Merged,
    progress: Progress,
) -> None:
    """Read all items to be merged into the temporary database, which sorts them."""
    for rank, crawl in enumerate(dict.fromkeys(plan.crawls)):
        async for item in results.items(crawl, Wanted(kind=plan.kind)):
            natural = natural_key(fields_of(item.data), plan.by)
            if natural is None:
                done.left_out += 1
            else:
                done.sources += 1
                database.execute(_QUERIES["add"], _source(item, natural, rank, crawl))
            if (read := done.sources + done.left_out) % PROGRESS_EVERY == 0:
                progress("read", read)


def _source(item: StoredItem, natural: str, rank: int, crawl: str) -> Source:
    return Source(
        kind=item.kind,
        natural=natural,
        rank=rank,
        crawl=crawl,
        key=item.key,
        url=item.url,
        fingerprint=item.fingerprint,
        scraped_at=item.scraped_at,
        data=item.data,
    )


def natural_key(fields: Fields, by: Sequence[str]) -> str | None:
    """The natural key of an item with these fields, in the form of item keys. None if a part is
    empty."""
    values = [_comparable(fields.get(name)) for name in by]
    if not all(values):
        return None
    return values[0] if len(values) == 1 else msgspec.json.encode(values).decode()


def fold(sources: Iterable[Source], rule: Rule) -> StoredItem:
    """Make one item of all sources with one natural key. The best source must come first."""
    every = iter(sources)
    folded = _Fold(next(every), rule)
    for source in every:
        folded.add(source)
    return folded.item()


class _Fold:
    """Builds one item from all sources with one natural key."""

    def __init__(self, best: Source, rule: Rule) -> None:
        self._best = best
        self._rule = rule
        self._newest_at = best.scraped_at
        self._values: Fields = {}
        self._origins: dict[str, int] = {}
        self._notes: list[dict[str, Any]] = []
        self.add(best)

    def add(self, source: Source) -> None:
        """Add one more source, and take the values from it that the rule asks for."""
        fields = fields_of(source.data)
        note = _note(source, fields.pop(SOURCES, None))
        self._newest_at = max(self._newest_at, source.scraped_at)
        if not self._notes or self._rule is Rule.FIRST_NON_EMPTY:
            better = {name: v for name, v in fields.items() if _fills(v, self._values.get(name))}
            self._values |= better
            self._origins |= dict.fromkeys(better, len(self._notes))
        self._notes.append(note)

    def item(self) -> StoredItem:
        """The merged item."""
        for name, number in self._origins.items():
            self._notes[number]["fields"].append(name)
        return StoredItem(
            kind=self._best.kind,
            key=self._best.natural,
            data=msgspec.json.encode({**self._values, SOURCES: self._notes}),
            url=self._best.url,
            fingerprint=self._best.fingerprint,
            scraped_at=self._newest_at,
        )


def _note(source: Source, earlier: msgspec.Raw | None) -> dict[str, Any]:
    """An entry of `_sources`. If the source was itself merged, its own sources are included."""
    note: dict[str, Any] = {
        "crawl": source.crawl,
        "kind": source.kind,
        "key": source.key,
        "url": source.url,
        "scraped_at": iso(source.scraped_at),
        "fields": [],
    }
    return note if earlier is None else note | {SOURCES: earlier}


def _fills(value: msgspec.Raw, present: msgspec.Raw | None) -> bool:
    return present is None or (bytes(present) in _EMPTY and bytes(value) not in _EMPTY)


def _comparable(value: msgspec.Raw | None) -> str:
    """A value as part of a natural key. Empty if the value is missing or empty."""
    json = b"null" if value is None else bytes(value)
    if json in _EMPTY:
        return ""
    # A whole number that was scraped as a float is still the same number.
    return text_of(json).strip() if json.startswith(b'"') else json.decode().removesuffix(".0")


async def _check(results: Results, crawls: Sequence[str], into: str) -> None:
    """Check that the merge overwrites nothing that was scraped, and that all crawls exist.

    Raises ConfigError and UnknownCrawl.
    """
    if into in crawls:
        raise ConfigError(
            f"'{into}' is one of the crawls to merge: choose another name to merge into"
        )
    if await _was_run(results, into):
        raise ConfigError(f"'{into}' is a crawl that was run: choose another name to merge into")
    for crawl in crawls:
        if not await results.count(crawl) and await results.note_of(crawl) is None:
            raise UnknownCrawl(crawl)


async def _was_run(results: Results, crawl: str) -> bool:
    if await results.note_of(crawl) is not None:
        return True
    async for item in results.items(crawl):
        is_merged = SOURCES in fields_of(item.data)
        return not is_merged or bool(await results.pages_of(crawl, item.fingerprint))
    return False


def _require_some(done: Merged, plan: MergePlan) -> None:
    if done.sources:
        return
    if done.left_out:
        fields = " and ".join(plan.by)
        raise ConfigError(f"none of {done.left_out:,} items has a value in {fields}")
    of_kind = f" of kind {plan.kind!r}" if plan.kind else ""
    raise ConfigError(f"nothing to merge: no items{of_kind}")


@contextmanager
def _temporary_database() -> Iterator[sqlite3.Connection]:
    """A private database in an unnamed file. It never waits for a lock, so it needs no thread."""
    try:
        with closing(sqlite3.connect("", isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA temp_store = FILE")
            connection.execute("BEGIN")
            connection.execute(_QUERIES["create"])
            yield connection
    except sqlite3.Error as error:  # Only of this database: the results store has its own errors.
        raise StorageFailed(f"the temporary file to merge in: {error}") from error


def _merged(database: sqlite3.Connection, rule: Rule) -> Iterator[StoredItem]:
    rows = map(Source._make, database.execute(_QUERIES[rule.replace("-", "_")]))
    for _, sources in groupby(rows, key=lambda source: (source.kind, source.natural)):
        yield fold(sources, rule)


def _batches(items: Iterable[StoredItem]) -> Iterator[list[StoredItem]]:
    batch: list[StoredItem] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(item.data)
        if len(batch) >= BATCH_ITEMS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
