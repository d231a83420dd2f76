"""Items out of the store and into a file: JSON lines or CSV.

One object or row per item: its fields, then `_kind`, `_key`, `_url` and `_scraped_at`. Values are
written exactly as they were stored. That holds for CSV too: text that a spreadsheet would take for
a formula (`=…`) is not changed. The file is data first; open one from untrusted pages with care.
"""

from __future__ import annotations

import asyncio
import csv
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import msgspec

from shoal.errors import ConfigError, StorageFailed
from shoal.results.port import Results, StoredItem

PROGRESS_EVERY = 1_000
OWN_FIELDS = ("_kind", "_key", "_url", "_scraped_at")

Fields = dict[str, msgspec.Raw | str]

# Values stay JSON text: nothing is rounded, however large a number is.
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Format(StrEnum):
    """What an export can be written as."""

    JSONL = "jsonl"
    CSV = "csv"


def format_of(target: Path | None, named: str | None = None) -> Format:
    """The format that was named, else that of the file's suffix, else (to stdout) JSON lines."""
    wanted = named or (target.suffix.removeprefix(".").lower() if target else Format.JSONL)
    try:
        return Format(wanted)
    except ValueError:
        wrong = f"no such format: {named!r}" if named else f"{target}: no format has this suffix"
        raise ConfigError(f"{wrong} (formats: {', '.join(Format)})") from None


async def export(
    results: Results,
    crawl: str,
    target: Path | None,
    fmt: Format,
    kind: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the items of a crawl, or those of one kind, and return how many there were.

    A target of None is standard output. A file appears complete or not at all; until then an older
    one stays. `progress` is told the number of items read, every thousand.

    Raises ConfigError if the file cannot be made, StorageFailed if it cannot be written in full.
    BrokenPipeError passes: who reads our standard output has seen enough.
    """
    items = _reported(results.items(crawl, kind), progress)
    with _replacing(target) if target else _stdout() as out:
        return await _write(items, out, fmt, target.parent if target else None)


async def _write(
    items: AsyncIterator[StoredItem], out: BinaryIO, fmt: Format, spool_folder: Path | None
) -> int:
    if fmt is Format.JSONL:
        return await _write_jsonl(items, out, {})
    # CSV wants all columns first. Reading the store twice would find other items, with other
    # fields, if the crawl goes on meanwhile; so it is read once, into a file without a name.
    columns: dict[str, None] = {}
    with tempfile.TemporaryFile(dir=spool_folder) as spool:
        count = await _write_jsonl(items, spool, columns)
        spool.seek(0)
        await _write_csv(spool, out, columns)
    return count


async def _write_jsonl(
    items: AsyncIterator[StoredItem], out: BinaryIO, columns: dict[str, None]
) -> int:
    """Write a line per item, and add the names of all fields to `columns`, in order."""
    count = 0
    async for item in items:
        fields = _fields(item)
        columns.update(dict.fromkeys(fields))
        out.write(msgspec.json.encode(fields) + b"\n")
        count += 1
    return count


async def _write_csv(lines: Iterable[bytes], out: BinaryIO, columns: Iterable[str]) -> None:
    names = [name for name in columns if name not in OWN_FIELDS] + list(OWN_FIELDS)
    writer = csv.writer(_Utf8(out))
    writer.writerow(names)
    for number, line in enumerate(lines):
        fields = _fields_of(line)
        writer.writerow([_cell(fields.get(name)) for name in names])
        if number % PROGRESS_EVERY == 0:
            await asyncio.sleep(0)  # let others, and a Ctrl-C, have their turn


class _Utf8:
    """Text into a binary file. Unlike io.TextIOWrapper it never closes the file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(text.encode())


def _cell(value: msgspec.Raw | None) -> str:
    """Text as it is, nothing for null, everything else as JSON."""
    json = b"null" if value is None else bytes(value)
    if json.startswith(b'"'):
        return msgspec.json.decode(json, type=str)
    return "" if json == b"null" else json.decode()


def _fields(item: StoredItem) -> Fields:
    fields: Fields = {n: v for n, v in _fields_of(item.data).items() if n not in OWN_FIELDS}
    own = (item.kind, item.key, item.url, _iso(item.scraped_at))
    fields.update(zip(OWN_FIELDS, own, strict=True))
    return fields


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def _reported(
    items: AsyncIterator[StoredItem], progress: Callable[[int], None] | None
) -> AsyncIterator[StoredItem]:
    count = 0
    async for item in items:
        yield item
        count += 1
        if progress and count % PROGRESS_EVERY == 0:
            progress(count)


@contextmanager
def _stdout() -> Iterator[BinaryIO]:
    out = sys.stdout.buffer
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageFailed(f"standard output: {error.strerror}") from error


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A new file in the target's folder, which takes its place if all goes well."""
    final = Path(os.path.realpath(target))  # replace what a link points to, not the link
    temporary = final.parent / f".shoal-{secrets.token_hex(8)}.tmp"
    try:
        if final.exists() and not final.is_file():
            raise ConfigError(f"{target}: not a regular file")
        out = temporary.open("xb")
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}") from None
    try:
        with out:
            if final.exists():
                shutil.copymode(final, temporary)
            yield out
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(final)
    except OSError as error:
        raise StorageFailed(f"{target}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
