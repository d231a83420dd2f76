"""Adds the state of each file to exported items, and copies stored files to a folder."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec

from shoal.archive.filestore import FileStore
from shoal.core.files import FILES_FIELD, FileRef, FileStatus, StoredFile, refs_in
from shoal.core.media_types import suffix_of
from shoal.core.records import StoredItem
from shoal.core.urls import FINGERPRINT_BYTES
from shoal.errors import ConfigError, StorageFailed
from shoal.export.files import replacing
from shoal.results.fields import fields_of
from shoal.results.port import Results
from shoal.runtime.patience import patiently

COMPLETE_FIELD = "_complete"
"""The field, added by the export, that says whether all files of an item are stored."""
ITEMS_AT_ONCE = 100
FILES_AT_ONCE = 8
REASONS_KEPT = 5


class ExportedFile(msgspec.Struct, omit_defaults=True):
    """A file of an item, as it is written in an export."""

    field: str
    url: str
    status: FileStatus
    path: str = ""
    """Its path within the folder that files are exported to."""
    type: str = ""
    size: int = 0
    sha256: str = ""
    place: str = ""
    error: str = ""


class FilesFolder:
    """A folder that files are exported to, under names made only from their content and type."""

    def __init__(self, store: FileStore, folder: Path) -> None:
        """Raises ConfigError if nothing can be written there."""
        self._store = store
        self._folder = folder
        self._room = asyncio.Semaphore(FILES_AT_ONCE)
        self.paths: dict[bytes, str] = {}
        """Paths of the exported files within the folder, by hash."""
        self.failed = 0
        """How many files could not be written."""
        self.reasons: list[str] = []
        """Why files could not be written, for the first few of them."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror}") from None

    async def write(self, files: Mapping[bytes, StoredFile]) -> None:
        """Write the files that are stored. One that the folder already has is not written again."""
        new = {f.sha256: f for f in files.values() if f.is_done and f.sha256 not in self.paths}
        await asyncio.gather(*(self._write(file) for file in new.values()))

    async def _write(self, file: StoredFile) -> None:
        name = file.sha256.hex()
        path = f"{name[:2]}/{name}.{suffix_of(file.type)}"
        target = self._folder / path
        async with self._room:
            try:
                if not await asyncio.to_thread(_is_there, target, file.size):
                    body = await patiently("file store", lambda: self._store.get(file.place))
                    await asyncio.to_thread(_write, target, body, file.sha256)
            except StorageFailed as error:
                self._note_failure(f"{file.url}: {error}")
            else:
                self.paths[file.sha256] = path

    def _note_failure(self, reason: str) -> None:
        self.failed += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(reason)


def _is_there(target: Path, size: int) -> bool:
    return target.is_file() and target.stat().st_size == size


def _write(target: Path, body: bytes, sha256: bytes) -> None:
    if hashlib.sha256(body).digest() != sha256:
        raise StorageFailed("it is damaged: its content is not what was stored")
    try:
        target.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{target.parent}: {error.strerror}") from None
    with replacing(target) as out:
        out.write(body)


async def with_files(
    items: AsyncIterator[StoredItem], results: Results, crawl: str, folder: FilesFolder | None
) -> AsyncIterator[StoredItem]:
    """Items in which references to files are replaced by the state of these files. Stored files are
    copied to `folder`, if there is one."""
    part: list[StoredItem] = []
    async for item in items:
        part.append(item)
        if len(part) >= ITEMS_AT_ONCE:
            for joined in await _joined(part, results, crawl, folder):
                yield joined
            part = []
    for joined in await _joined(part, results, crawl, folder):
        yield joined


async def _joined(
    items: list[StoredItem], results: Results, crawl: str, folder: FilesFolder | None
) -> list[StoredItem]:
    refs = [refs_in(item.data) for item in items]
    if not any(refs):
        return items
    wanted = {key for some in refs for ref in some if (key := _key(ref))}
    files = await results.files_of(crawl, list(wanted))
    if folder is not None:
        await folder.write(files)
    paths = {} if folder is None else folder.paths
    return [
        _with(item, [_exported(ref, files, paths) for ref in some]) if some else item
        for item, some in zip(items, refs, strict=True)
    ]


def _with(item: StoredItem, files: Sequence[ExportedFile]) -> StoredItem:
    is_complete = all(file.status is FileStatus.DONE for file in files)
    fields = {**fields_of(item.data), FILES_FIELD: files, COMPLETE_FIELD: is_complete}
    return msgspec.structs.replace(item, data=msgspec.json.encode(fields))


def _exported(
    ref: FileRef, files: Mapping[bytes, StoredFile], paths: Mapping[bytes, str]
) -> ExportedFile:
    file = files.get(_key(ref))
    if file is None:
        return ExportedFile(ref.field, ref.url, FileStatus.MISSING)
    path = paths.get(file.sha256, "")
    about = file.type, file.size, file.sha256.hex(), file.place, file.error
    return ExportedFile(ref.field, ref.url, file.status, path, *about)


def _key(ref: FileRef) -> bytes:
    """The fingerprint in a reference; empty if it is not valid, since items may hold any text."""
    try:
        key = bytes.fromhex(ref.id)
    except ValueError:
        return b""
    return key if len(key) == FINGERPRINT_BYTES else b""
