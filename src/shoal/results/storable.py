"""What all result stores share: their statements' common parts, text that no database can hold as
it is, and which records are the same one."""

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
"""The columns of the page log, in every store and every statement: those of the record."""

FILE_FIELDS = StoredFile.__struct_fields__
"""The columns of files, likewise."""

_SHARED_SQL = {
    "{page_fields}": ", ".join(PAGE_FIELDS),
    "{file_fields}": ", ".join(FILE_FIELDS),
    "{file_changes}": ", ".join(f"{name} = excluded.{name}" for name in FILE_FIELDS[1:]),
    # A visit that has read its page, or has learnt that it is still the same.
    "{has_read}": "verdict = 'done' AND (status BETWEEN 200 AND 299 OR status = 304)",
}


def load_statements(package: str) -> dict[str, str]:
    """The statements in a store's queries.sql, with what all stores share filled in."""
    statements = load_queries(package, "queries.sql")
    for mark, text in _SHARED_SQL.items():
        statements = {name: query.replace(mark, text) for name, query in statements.items()}
    return statements


def valid(batch: Batch) -> Batch:
    """A batch with lone surrogates, which no encoding can hold, written out as \\udXXX."""
    return rewritten(batch, _valid_text)


def rewritten(batch: Batch, change: Callable[[str], str]) -> Batch:
    """A copy of the batch with each text in it changed."""
    return Batch(
        pages=[_rewritten(page, change) for page in batch.pages],
        items=[_rewritten(item, change) for item in batch.items],
        rejected=[_rewritten(item, change) for item in batch.rejected],
        keep=batch.keep,
        files=[_rewritten(file, change) for file in batch.files],
    )


def once_each(items: Iterable[StoredItem]) -> list[StoredItem]:
    """The items without those that are replaced later in the batch: of several readings of an item
    at the same moment, the last. A statement can write a row only once."""
    return list({(i.kind, i.key, i.scraped_at): i for i in items}.values())


def known_best(files: Iterable[StoredFile]) -> list[StoredFile]:
    """The files without those of which the batch says more: of each one record, what is stored
    before what is not, and the newest. A statement can write a row only once."""
    best: dict[bytes, StoredFile] = {}
    for file in files:
        other = best.get(file.fingerprint)
        if other is None or (file.is_done, file.at) >= (other.is_done, other.at):
            best[file.fingerprint] = file
    return list(best.values())


def rejection_digest(item: RejectedItem) -> bytes:
    """A hash of what a rejected item says and why it was rejected: the same one is stored once."""
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
