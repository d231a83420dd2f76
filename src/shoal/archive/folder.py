"""The object store in a folder: objects are files that appear complete or not at all."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from shoal.archive.objects import Objects
from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageFailed, unreachable

T = TypeVar("T")

THREADS = 8

_SET_UP_WRONG = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}
_PASSING = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETIMEDOUT}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FolderObjects(Objects):
    """A folder on this machine, or shared by several machines. It is created when needed."""

    def __init__(self, root: Path) -> None:
        self.shown = f"file:{root}"
        self._root = root
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="archive")

    async def check(self) -> None:
        try:
            await self._run(self._check)
        except StorageBusy as error:
            raise unreachable(error) from None
        except StorageFailed as error:
            raise ConfigError(f"{error}: nothing can be stored there") from None

    async def put(self, name: str, data: bytes) -> bool:
        return await self._run(lambda: _put(self._path(name), data))

    async def get(self, name: str) -> bytes:
        return await self._run(lambda: self._get(name))

    async def names(self, folder: str) -> list[str]:
        return await self._run(lambda: _names(self._path(folder), folder))

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work)
        except OSError as error:
            raise self._mapped(error) from error

    def _path(self, name: str) -> Path:
        """The file of an object. Raises StorageFailed for an invalid name, as names may come from
        a database that others write to."""
        parts = name.split("/")
        if any(not part or part.startswith(".") or "\0" in part for part in parts):
            raise StorageFailed(f"{self.shown}: no object can be called {name!r}")
        return self._root.joinpath(*parts)

    def _check(self) -> None:
        _make_folder(self._root)
        probe = _temporary_beside(self._root / "probe")
        try:
            probe.write_bytes(b"probe")  # A full disk may still have room for an empty file.
        finally:
            probe.unlink(missing_ok=True)

    def _get(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            raise StorageFailed(f"{self.shown}: {name} is gone") from None

    def _mapped(self, error: OSError) -> ShoalError:
        reason = error.strerror or str(error)
        if error.errno in _SET_UP_WRONG:
            where = error.filename or self._root
            return ConfigError(
                f"{self.shown}: {where}: {reason}: the archive must be a folder that can be"
                " read and written"
            )
        kind = StorageBusy if error.errno in _PASSING else StorageFailed
        return kind(f"{self.shown}: {reason}")


def _put(path: Path, data: bytes) -> bool:
    _make_folder(path.parent)
    is_new = not path.exists() and _write(path, data)
    # Also sync if another worker made the file, as that worker may not have synced it yet.
    _sync_folder(path.parent)
    return is_new


def _write(path: Path, data: bytes) -> bool:
    temporary = _temporary_beside(path)
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return _appear(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _appear(temporary: Path, path: Path) -> bool:
    """Give a complete file its name. False if another file has that name already."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        temporary.replace(path)
    return True


def _temporary_beside(path: Path) -> Path:
    """A name that `_names` leaves out, as a worker that dies may leave an incomplete file there."""
    return path.with_name(f".{secrets.token_hex(8)}.tmp")


def _make_folder(path: Path) -> None:
    """Create a folder and its parents, durably."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _names(path: Path, folder: str) -> list[str]:
    try:
        found = sorted(file.name for file in path.iterdir())
    except FileNotFoundError:
        return []
    return [f"{folder}/{name}" for name in found if not name.startswith(".")]
