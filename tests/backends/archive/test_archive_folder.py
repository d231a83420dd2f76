"""The archive contract on a folder, and what can go wrong with files."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contract.archive_suite import (
    CRAWL,
    ArchiveContract,
    Connect,
    Opened,
    all_pages,
    opened,
    some_page,
)
from shoal.archive import open_archive
from shoal.archive.folder import FolderObjects
from shoal.errors import ConfigError, StorageFailed


class TestFolder(ArchiveContract):
    @pytest.fixture
    async def connect(self, tmp_path: Path) -> AsyncIterator[Connect]:
        made: list[Opened] = []

        def connect(fmt: str) -> Opened:
            made.append(opened(FolderObjects(tmp_path / "raw" / "pages"), fmt))
            return made[-1]

        yield connect
        for one in made:
            await one.archive.close()


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[FolderObjects]:
    objects = FolderObjects(tmp_path / "raw")
    yield objects
    await objects.close()


async def test_an_object_is_made_once(objects: FolderObjects) -> None:
    assert await objects.put("a/b", b"data")
    assert not await objects.put("a/b", b"data")
    assert await objects.get("a/b") == b"data"


async def test_what_a_dead_worker_left_is_no_object(objects: FolderObjects, tmp_path: Path) -> None:
    await objects.put("a/b", b"data")
    (tmp_path / "raw" / "a" / ".0123.tmp").write_bytes(b"half")
    assert await objects.names("a") == ["a/b"]


async def test_nothing_but_objects_is_left(objects: FolderObjects, tmp_path: Path) -> None:
    await objects.check()
    await objects.put("a/b", b"data")
    await objects.put("a/b", b"data")
    files = [path for path in (tmp_path / "raw").rglob("*") if path.is_file()]
    assert files == [tmp_path / "raw" / "a" / "b"]


async def test_a_file_system_without_links(
    objects: FolderObjects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(self: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    assert await objects.put("a/b", b"data")
    assert await objects.get("a/b") == b"data"
    assert await objects.names("a") == ["a/b"]


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (errno.ENOSPC, StorageFailed, "No space left on device"),
        (errno.EROFS, ConfigError, "must be a folder that can be read and written"),
    ],
)
async def test_a_disk_that_refuses(
    objects: FolderObjects,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    kind: type[Exception],
    says: str,
) -> None:
    def refuse(file: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(kind, match=says):
        await objects.put("a", b"data")


@pytest.mark.parametrize(
    "code",
    [
        *(errno.ENOENT, errno.ENOSPC, errno.EROFS, errno.ENOTDIR, errno.EACCES, errno.EDQUOT),
        *(errno.EIO, errno.EINVAL, errno.ENAMETOOLONG, errno.ESTALE),
    ],
)
@pytest.mark.parametrize("call", ["mkdir", "write_bytes"])
async def test_a_folder_that_is_of_no_use_is_told_at_the_start(
    objects: FolderObjects, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def refuse(self: Path, *_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, call, refuse)
    with pytest.raises(ConfigError, match=os.strerror(code)):
        await objects.check()


async def test_a_folder_where_none_can_be() -> None:
    objects = FolderObjects(Path("/proc/x"))
    with pytest.raises(ConfigError, match="file:/proc/x: No such file or directory"):
        await objects.check()
    await objects.close()


async def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b"")
    for place in ("raw", "raw/below"):
        objects = FolderObjects(tmp_path / place)
        with pytest.raises(ConfigError, match="Not a directory"):
            await objects.check()
        await objects.close()


async def test_names_that_lead_elsewhere_are_refused(objects: FolderObjects) -> None:
    for name in ("../x", "a/../x", "/etc/x", "a//b", "", ".x", "a/.x", "a\0b"):
        with pytest.raises(StorageFailed, match="no object can be called"):
            await objects.put(name, b"data")


async def test_addresses_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address, place in (
        (f"file://{tmp_path}/absolute", "absolute"),
        ("file:relative/dir", "relative/dir"),
        ("file:with%20space", "with space"),
    ):
        archive = open_archive(address, "blobs")
        await archive.store(CRAWL, [some_page()])
        assert (tmp_path / place / CRAWL / "pages").is_dir()
        assert await all_pages(archive) == [some_page()]
        await archive.close()


@pytest.mark.parametrize(
    "address", ["file:", "file://", "file://host/dir", "file:a%00b", "folder", "ftp://x", ""]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ConfigError):
        open_archive(address, "blobs")


async def test_opening_touches_nothing(tmp_path: Path) -> None:
    archive = open_archive(f"file://{tmp_path}/raw", "warc")
    assert await all_pages(archive) == []
    await archive.close()
    assert not (tmp_path / "raw").exists()
