"""The results contract on SQLite, and what can go wrong with a file."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from contract.files_suite import FilesContract
from contract.recrawl_suite import RecrawlContract
from contract.results_suite import (
    CRAWL,
    Connect,
    ResultsContract,
    all_items,
    some_item,
    some_page,
    some_rejected,
)
from shoal.core.records import StoredItem
from shoal.drivers.sqlfiles import load_schema
from shoal.errors import ConfigError, StorageFailed
from shoal.results import open_results
from shoal.results.port import Batch, RunNote
from shoal.results.sqlite.store import SqliteResults

P = ParamSpec("P")
T = TypeVar("T")

SCHEMA = load_schema("shoal.results.sqlite", "schema_1.sql", "schema_2.sql")
FIRST = Batch([some_page()], [some_item("first")], [some_rejected()])
SECOND = Batch([some_page(attempt=2)], [some_item("second")])
LARGE = some_item("large", data=b'{"x":"' + b"x" * 2_000_000 + b'"}')


class TestSqliteResults(ResultsContract, RecrawlContract, FilesContract):
    @pytest.fixture
    async def connect(self, tmp_path: Path) -> AsyncIterator[Connect]:
        opened: list[SqliteResults] = []

        def connect() -> SqliteResults:
            opened.append(SqliteResults(tmp_path / "shoal.db"))
            return opened[-1]

        yield connect
        for results in opened:
            await results.close()


async def test_a_user_can_query_the_fields_with_sql(tmp_path: Path) -> None:
    path = tmp_path / "shoal.db"
    await _saved(path, FIRST)
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT typeof(data), json_extract(data, '$.sku') FROM items"
        assert connection.execute(query).fetchall() == [("text", "first")]


# Addresses


async def test_what_an_address_stores_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/a%20b.db"
    results = open_results(address)
    await results.save(CRAWL, FIRST)
    await results.close()
    assert [file.name for file in tmp_path.iterdir()] == ["a b.db"]
    results = open_results(address)
    assert await all_items(results) == FIRST.items
    await results.close()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("mysql://me:s3cret@db.example/shop", "'mysql://me:***@db.example/shop'"),
        ("mysql://me:s3cret/@s3cret@db.example", "'mysql://me:***@db.example'"),
        ("redis://:s3cret@db.example", "'redis://:***@db.example'"),
        ("mysql:///shop?password=s3cret&user=me", "'mysql:///shop?password=***&user=me'"),
        ("shoal.db", "'shoal.db'"),
        ("", "''"),
    ],
)
def test_an_unknown_address_is_named_without_its_password(address: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_results(address)
    assert shown in str(caught.value)
    assert "supported: sqlite:///path.db" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_wrong_sqlite_address_says_how_to_write_it() -> None:
    with pytest.raises(ConfigError, match=r"write sqlite:///path\.db"):
        open_results("sqlite://shoal.db")


# Files that are not what they should be


@pytest.mark.parametrize(
    "content",
    [b"not a database", b"\0" * 50_000, bytes(range(256)) * 200],
    ids=["text", "zeros", "noise"],
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shoal.db"
    path.write_bytes(content)
    await _fails_in_one_line(path, SECOND)
    assert path.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


async def test_a_truncated_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shoal.db"
    await _saved(path, Batch(items=[some_item(f"k{n}") for n in range(1_000)]))
    whole = path.read_bytes()
    half = whole[: len(whole) // 2]
    path.write_bytes(half)
    await _fails_in_one_line(path, SECOND)
    assert path.read_bytes() == half


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    results = SqliteResults(tmp_path / "nowhere" / "shoal.db")
    with pytest.raises(ConfigError, match=r"nowhere/shoal\.db: the folder does not exist"):
        await results.save(CRAWL, FIRST)
    await results.close()


# Versions


async def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "shoal.db"
    _make(
        path,
        *SCHEMA[:1],
        "INSERT INTO result_crawls VALUES (1, 'shop', 'redis://one');"
        "INSERT INTO items VALUES (5, 1, 'Product', 'k1', 7, 1.5, 'u', '{\"n\":1}');"
        "INSERT INTO pages"
        " VALUES (1, 1, 7, 1.5, 1, 'w', 0, 'done', 200, 0, 1, 0, 'u', NULL, '')",
    )
    results = SqliteResults(path)
    (item,) = await all_items(results)
    assert (item.key, item.data, item.scraped_at) == ("k1", b'{"n":1}', 1.5)
    (page,) = await results.pages_of(CRAWL, (7).to_bytes(8))
    assert (page.url, page.digest, page.simhash, page.archived) == ("u", b"", None, "")
    assert await results.note_of(CRAWL) == RunNote("redis://one")
    newer = some_item(at=2.0)
    await results.save(CRAWL, Batch(items=[newer]))
    assert await all_items(results) == [newer]
    assert await results.history(CRAWL, "Product", "k1") == [newer]
    await results.close()


async def test_a_file_of_the_previous_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """Its items can be gone, and its pages are known without what the server said of them."""
    path = tmp_path / "shoal.db"
    _make(
        path,
        *SCHEMA[:2],
        "CREATE TABLE versions (part TEXT PRIMARY KEY, version INTEGER NOT NULL);"
        "INSERT INTO versions VALUES ('results', 2);"
        "INSERT INTO result_crawls VALUES (1, 'monday', 'redis://one', '[]', '');"
        "INSERT INTO items VALUES (5, 1, 'Product', 'k1', 7, 1.5, 1, 1.5, 0, 'u', '{\"n\":1}');"
        "INSERT INTO observations VALUES (5, 1.5, 7, 'u', '{\"n\":1}');"
        "INSERT INTO pages VALUES (1, 1, 7, 1.5, 1, 'w', 0, 'done', 200, 0, 1, 0, 'u', NULL, '',"
        " x'00', NULL, '')",
    )
    results = SqliteResults(path)
    (known,) = (await results.known_pages("monday", [(7).to_bytes(8)])).values()
    assert (known.etag, known.last_modified, known.read) == ("", "", 1)
    assert [item.key for item in known.items] == ["k1"]
    assert [item.scraped_at for item in await results.history("monday", "Product", "k1")] == [1.5]
    assert await results.mark_gone("tuesday", "monday", 9.0) == 1
    assert await results.count("monday") == {"Product": 1}
    assert await results.count("tuesday") == {}
    await results.close()


def _make(path: Path, *scripts: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for script in scripts:
            connection.executescript(script)


async def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shoal.db"
    await _saved(path, FIRST)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE versions SET version = 99 WHERE part = 'results'")
        connection.commit()
    with pytest.raises(ConfigError, match="written by a newer shoal") as caught:
        await _saved(path, SECOND)
    assert "\n" not in str(caught.value)


# Disks that do not take it. What changes the rights of a process runs in one of its own.


async def test_a_database_that_may_not_grow_stores_nothing_of_the_batch(tmp_path: Path) -> None:
    """SQLite's own limit gives the error that it gives when the disk has no space left."""
    results = SqliteResults(tmp_path / "shoal.db")
    await results.save(CRAWL, FIRST)
    await results._db.run(lambda connection: connection.execute("PRAGMA max_page_count = 100"))
    with pytest.raises(StorageFailed, match="full"):
        await results.save(CRAWL, Batch(items=[some_item("small"), LARGE]))
    assert await all_items(results) == FIRST.items
    await results.save(CRAWL, SECOND)
    assert await all_items(results) == FIRST.items + SECOND.items
    await results.close()


async def test_a_full_disk_stores_nothing_of_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "shoal.db"
    message, then = await _in_child(_save_on_a_full_disk, path)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert [item.key for item in then] == ["first", "second"]


def _save_on_a_full_disk(path: Path) -> tuple[str, list[StoredItem]]:
    """Fill up, then make room. A limit on file size stops a write as a full disk does: halfway."""

    async def scene() -> tuple[str, list[StoredItem]]:
        results = SqliteResults(path)
        await results.save(CRAWL, FIRST)
        _limit_file_size(1_000_000)
        with pytest.raises(StorageFailed) as caught:
            await results.save(CRAWL, Batch([some_page(attempt=2)], [some_item("small"), LARGE]))
        _limit_file_size(None)
        await results.save(CRAWL, SECOND)
        stored = await all_items(results)
        assert len(await results.pages_of(CRAWL, some_page().fingerprint)) == 2
        await results.close()
        return str(caught.value), stored

    return asyncio.run(scene())


def _limit_file_size(size: int | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


@pytest.mark.parametrize("locked", ["file", "folder"])
async def test_a_read_only_store_is_left_alone(tmp_path: Path, locked: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "shoal.db"
    await _saved(path, FIRST)
    before = path.read_bytes()
    (path if locked == "file" else folder).chmod(0o500)
    message = await _in_child(_save_without_rights, path)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert path.read_bytes() == before


async def test_a_read_only_folder_gets_no_new_store(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    message = await _in_child(_save_without_rights, folder / "shoal.db")
    assert message.startswith(f"{folder / 'shoal.db'}: ")
    assert list(folder.iterdir()) == []


def _save_without_rights(path: Path) -> str:
    _obey_permissions()
    with pytest.raises(StorageFailed) as caught:
        asyncio.run(_saved(path, SECOND))
    return str(caught.value)


def _obey_permissions() -> None:
    """Make permission bits bind this process, even root's: drop CAP_DAC_OVERRIDE and
    CAP_DAC_READ_SEARCH from this thread, and so from those that it starts."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3 of the interface, this thread
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then their upper halves
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    sets[0] &= ~0b110
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")


# Helpers


async def _saved(path: Path, batch: Batch) -> None:
    """Open, save, close."""
    results = SqliteResults(path)
    try:
        await results.save(CRAWL, batch)
    finally:
        await results.close()


async def _fails_in_one_line(path: Path, batch: Batch) -> None:
    with pytest.raises(StorageFailed) as caught:
        await _saved(path, batch)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


async def _in_child(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return await asyncio.wrap_future(pool.submit(work, *args, **kwargs))


async def test_a_python_with_an_old_sqlite_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.26.0")
    results = SqliteResults(tmp_path / "new.db")
    with pytest.raises(ConfigError, match=r"this Python has SQLite 3\.26\.0, which is older than"):
        await results.count("any")
    await results.close()
