"""Exported files: what became of each beside its item, and the bytes in a folder."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.files_suite import some_file
from contract.results_suite import CRAWL, some_fingerprint, some_item
from shoal.archive import open_files
from shoal.archive.filestore import FileStore, place_of
from shoal.core.files import FileRef, FileStatus, with_refs
from shoal.errors import ConfigError, StorageFailed
from shoal.export import FilesFolder, Format, export
from shoal.results.port import Batch, Results
from shoal.results.sqlite.store import SqliteResults

BODY = b"\x89PNG the picture"
SHA256 = hashlib.sha256(BODY).digest()
PATH = f"{SHA256.hex()[:2]}/{SHA256.hex()}.png"


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[Results]:
    store = SqliteResults(tmp_path / "shoal.db")
    yield store
    await store.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileStore]:
    store = open_files(f"file:{tmp_path}/files")
    yield store
    await store.close()


def ref(number: int, field: str = "image") -> FileRef:
    return FileRef(field, f"https://shop.example/{number}.png", some_fingerprint(number).hex())


async def fill(results: Results, store: FileStore | None = None) -> None:
    """Three items: of one file that is stored, of one that is not and one that is, of none."""
    if store is not None:
        await store.put({SHA256: BODY})
    stored = some_file(1, size=len(BODY), sha256=SHA256, place=place_of(SHA256))
    gone = some_file(2, status=FileStatus.DROPPED, error="HTTP 404", sha256=b"", type="", size=0)
    gone.place = ""
    items = [
        some_item("a", data=with_refs(b'{"sku":"a"}', [ref(1)])),
        some_item("b", data=with_refs(b'{"sku":"b"}', [ref(2), ref(1, "more"), ref(3)])),
        some_item("c", data=b'{"sku":"c"}'),
    ]
    await results.save(CRAWL, Batch(items=items, files=[stored, gone]))


async def rows(results: Results, target: Path, folder: FilesFolder | None = None) -> list[Any]:
    await export(results, CRAWL, target, Format.JSONL, folder=folder)
    return [json.loads(line) for line in target.read_text("utf-8").splitlines()]


async def test_each_file_is_told_beside_its_item(results: Results, tmp_path: Path) -> None:
    await fill(results)
    one, two, none = await rows(results, tmp_path / "a.jsonl")
    (file,) = one["_files"]
    assert file == {
        "field": "image",
        "url": "https://shop.example/1.png",
        "status": "done",
        "type": "image/png",
        "size": len(BODY),
        "sha256": SHA256.hex(),
        "place": place_of(SHA256),
    }
    assert [(f["field"], f["status"], f.get("error")) for f in two["_files"]] == [
        ("image", "dropped", "HTTP 404"),
        ("more", "done", None),
        ("image", "missing", None),
    ]
    assert (one["_complete"], two["_complete"]) == (True, False)
    assert list(none) == ["sku", "_kind", "_key", "_url", "_scraped_at"]


async def test_files_go_to_a_folder_under_names_of_their_content(
    results: Results, store: FileStore, tmp_path: Path
) -> None:
    await fill(results, store)
    for _ in range(2):  # What is there already stays.
        folder = FilesFolder(store, tmp_path / "out" / "pictures")
        one, two, _ = await rows(results, tmp_path / "a.jsonl", folder)
        assert (len(folder.paths), folder.failed) == (1, 0)
        assert one["_files"][0]["path"] == two["_files"][1]["path"] == PATH
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [
        tmp_path / "out" / "pictures" / PATH
    ]
    assert (tmp_path / "out" / "pictures" / PATH).read_bytes() == BODY


@pytest.mark.parametrize("damage", [b"something else", None])
async def test_what_the_store_has_lost_is_told_and_costs_nothing_else(
    results: Results, store: FileStore, tmp_path: Path, damage: bytes | None
) -> None:
    await fill(results, store)
    stored = tmp_path / "files" / place_of(SHA256)
    stored.unlink() if damage is None else stored.write_bytes(damage)
    folder = FilesFolder(store, tmp_path / "out")
    one, *others = await rows(results, tmp_path / "a.jsonl", folder)
    assert (len(others), folder.paths, folder.failed) == (2, {}, 1)
    assert "is gone" in folder.reasons[0] or "is damaged" in folder.reasons[0]
    assert "path" not in one["_files"][0]


async def test_a_folder_that_cannot_be_made_is_said_at_once(
    store: FileStore, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="taken"):
        FilesFolder(store, tmp_path / "taken")


async def test_a_table_has_a_column_for_files(results: Results, tmp_path: Path) -> None:
    await fill(results)
    await export(results, CRAWL, tmp_path / "a.csv", Format.CSV)
    with (tmp_path / "a.csv").open(newline="") as file:
        one, _, none = csv.DictReader(file)
    assert json.loads(one["_files"])[0]["status"] == "done"
    assert (one["_complete"], none["_complete"], none["_files"]) == ("true", "", "")


@pytest.mark.parametrize(
    "data",
    [
        b'{"_files":"mine"}',
        b'{"_files":[{"field":"x","url":"y","id":"../../x"}]}',
        b'{"_files":[{"field":"x","url":"y","id":"00"}]}',
    ],
)
async def test_a_field_that_only_looks_like_references_does_no_harm(
    results: Results, tmp_path: Path, data: bytes
) -> None:
    await results.save(CRAWL, Batch(items=[some_item(data=data)]))
    (row,) = await rows(results, tmp_path / "a.jsonl")
    assert row["_files"] == "mine" or row["_files"][0]["status"] == "missing"


async def test_many_items_have_their_files(results: Results, tmp_path: Path) -> None:
    items = [some_item(f"k{n}", data=with_refs(b'{"n":%d}' % n, [ref(n)])) for n in range(250)]
    await results.save(CRAWL, Batch(items=items, files=[some_file(n) for n in range(250)]))
    found = await rows(results, tmp_path / "a.jsonl")
    assert [row["n"] for row in found] == list(range(250))
    assert all(row["_complete"] for row in found)


@pytest.mark.parametrize(
    "place", ["", "blobs/ab/cd.gz", "files/../../etc/passwd", "files/ab/" + "g" * 62]
)
async def test_a_store_of_files_gives_out_files_alone(store: FileStore, place: str) -> None:
    with pytest.raises(StorageFailed, match="no place of a file"):
        await store.get(place)


async def test_a_folder_that_cannot_be_made_is_one_clear_line(
    results: Results, store: FileStore, tmp_path: Path
) -> None:
    await fill(results, store)
    folder = FilesFolder(store, tmp_path / "out")
    (tmp_path / "out" / PATH[:2]).write_text("in the way")
    with pytest.raises(ConfigError, match=f"{PATH[:2]}: File exists"):
        await rows(results, tmp_path / "a.jsonl", folder)
