"""What all result stores share: common parts of their SQL, text that no database can store as it
is, and the removal of duplicate records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from shoal.core.files import StoredFile
from shoal.core.records import RejectedItem, StoredItem
from shoal.drivers.sqlfiles import load_queries
from shoal.results.port import Batch, PageLog

S = TypeVar("S", bound=msgspec.Struct)

PAGE_FIELDS = PageLog.__struct_fields__
"""The columns of the page log, in every store and statement: the fields of `PageLog`."""

FILE_FIELDS = StoredFile.__struct_fields__
"""The columns of files, in every store and statement: the fields of `StoredFile`."""

_SHARED_SQL = {
    "{page_fields}": ", ".join(PAGE_FIELDS),
    "{file_fields}": ", ".join(FILE_FIELDS),
    "{file_changes}": ", ".join(f"{name} = excluded.{name}" for name in FILE_FIELDS[1:]),
    # A visit that has read its page, or has learnt that it is unchanged.
    "{has_read}": "verdict = 'done' AND (status BETWEEN 200 AND 299 OR status = 304)",
}


def load_statements(package: str) -> dict[str, str]:
    """The statements in a store's queries.sql, with the shared parts filled in."""
    statements = load_queries(package, "queries.sql")
    for mark, text in _SHARED_SQL.items():
        statements = {name: query.replace(mark, text) for name, query in statements.items()}
    return statements


def valid(batch: Batch) -> Batch:
    """The batch with lone surrogates, which cannot be encoded, written out as \\udXXX."""
    return rewritten(batch, _valid_text)


def rewritten(batch: Batch, change: Callable[[str], str]) -> Batch:
    """A copy of the batch with `change` applied to every text in it."""
    return Batch(
        pages=[_rewritten(page, change) for page in batch.pages],
        items=[_rewritten(item, change) for item in batch.items],
        rejected=[_rewritten(item, change) for item in batch.rejected],
        keep=batch.keep,
        files=[_rewritten(file, change) for file in batch.files],
    )


def once_each(items: Iterable[StoredItem]) -> list[StoredItem]:
    """The items with only the last of several readings of an item at the same moment.

    A statement can write a row only once.
    """
    return list({(i.kind, i.key, i.scraped_at): i for i in items}.values())


def known_best(files: Iterable[StoredFile]) -> list[StoredFile]:
    """The best record of each file: a stored file before one that is not, then the newest.

    A statement can write a row only once.
    """
    best: dict[bytes, StoredFile] = {}
    for file in files:
        other = best.get(file.fingerprint)
        if other is None or (file.is_done, file.at) >= (other.is_done, other.at):
            best[file.fingerprint] = file
    return list(best.values())


def rejection_digest(item: RejectedItem) -> bytes:
    """A hash of a rejected item's content and reason, by which equal ones are stored only once."""
    content = "\0".join((item.kind, item.reason, item.data))
    return hashlib.blake2b(content.encode(), digest_size=8).digest()


def _rewritten(record: S, change: Callable[[str], str]) -> S:
    texts = {
        name: change(value)
        for name, value in msgspec.structs.asdict(record).items()
        if isinstance(value, str)
    }
    return msgspec.structs.replace(record, **texts)


def _valid_text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
