"""The archive of raw pages: one port, the formats blobs and WARC, stored in folders or S3.

Imports drivers, runtime and core. Knows nothing of frontiers or results.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

from shoal.archive.composed import ObjectArchive
from shoal.archive.filestore import FileStore
from shoal.archive.folder import FolderObjects
from shoal.archive.objects import Objects
from shoal.archive.port import Archive
from shoal.config import ArchiveFormat
from shoal.core.addresses import masked
from shoal.errors import ConfigError, MissingExtra

_FOLDERS: dict[ArchiveFormat, str] = {"blobs": "pages", "warc": "warc"}
"""The folder of each format."""


def open_archive(address: str, fmt: ArchiveFormat) -> Archive:
    """The archive at an address. It stores in one format and reads all of them.

    The storage is not touched before the first call. Raises ConfigError.
    """
    return ObjectArchive(_objects(address), _FOLDERS[fmt])


@asynccontextmanager
async def archive_at(address: str, fmt: ArchiveFormat) -> AsyncIterator[Archive]:
    """The archive at an address, closed at the end."""
    archive = open_archive(address, fmt)
    try:
        yield archive
    finally:
        await archive.close()


def open_files(address: str) -> FileStore:
    """The file store at an address. The storage is not touched before the first call. Raises
    ConfigError."""
    return FileStore(address, _objects(address))


def _objects(address: str) -> Objects:
    scheme = address.partition(":")[0]
    if scheme == "file":
        return FolderObjects(_path_of(address))
    if scheme == "s3":
        return _s3_objects(address)
    raise ConfigError(
        f"no archive for {masked(address)!r} (supported: file:///dir, s3://bucket/prefix)"
    )


def _path_of(address: str) -> Path:
    """The path of a file address: `file:///dir` is absolute, `file:dir` in the working folder."""
    rest = address.removeprefix("file:")
    has_host = rest.startswith("//") and not rest.startswith("///")
    path = unquote(rest.removeprefix("//"))
    if has_host or not path or "\0" in path:
        raise ConfigError(
            f"not a folder: {masked(address)!r} (write file:///dir, or file:dir for one in the"
            " working folder)"
        )
    return Path(path)


def _s3_objects(address: str) -> Objects:
    try:
        from shoal.archive.s3 import S3Objects
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "obstore":
            raise
        raise MissingExtra("s3:// archives", "s3") from None
    return S3Objects(address)
