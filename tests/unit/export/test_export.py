"""Export: exact data, whole files."""

from __future__ import annotations

import csv
import errno
import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from contract.results_suite import CRAWL, some_item
from shoal.core.records import StoredItem
from shoal.errors import ConfigError, StorageBusy, StorageFailed
from shoal.export import GONE_FIELD, OWN_FIELDS, Format, export, format_of
from shoal.insight.moments import parse_since
from shoal.results.port import EVERYTHING, Batch, Results, Wanted
from shoal.results.sqlite.store import SqliteResults


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[Results]:
    store = SqliteResults(tmp_path / "shoal.db")
    yield store
    await store.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "items.jsonl"


async def fill(results: Results, *data: str) -> None:
    """Store one item for each JSON object."""
    items = [some_item(f"k{n}", data=text.encode()) for n, text in enumerate(data)]
    await results.save(CRAWL, Batch(items=items))


async def csv_rows(results: Results, target: Path) -> list[dict[str, str]]:
    """Export as CSV and read it back."""
    await export(results, CRAWL, target, Format.CSV)
    with target.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


# What is written


async def test_a_line_has_the_fields_then_our_own(results: Results, target: Path) -> None:
    item = some_item("k1", at=1_700_000_000.0625, data=b'{"b":1,"a":"x"}', kind="Offer")
    await results.save(CRAWL, Batch(items=[item]))
    assert await export(results, CRAWL, target, Format.JSONL) == 1
    assert target.read_text("utf-8") == (
        '{"b":1,"a":"x","_kind":"Offer","_key":"k1","_url":"https://shop.example/k1",'
        '"_scraped_at":"2023-11-14T22:13:20.062Z"}\n'
    )


async def test_an_item_cannot_fake_our_fields(results: Results, target: Path) -> None:
    await fill(results, '{"_key":"fake","_url":["fake"],"_mine":1}')
    await export(results, CRAWL, target, Format.JSONL)
    line = json.loads(target.read_text("utf-8"))
    assert list(line) == ["_mine", *OWN_FIELDS]
    assert (line["_key"], line["_url"]) == ("k0", "https://shop.example/k0")
    assert [row["_key"] for row in await csv_rows(results, target)] == ["k0"]


@pytest.mark.parametrize(
    "value",
    ["123456789012345678901234567890", "0.10000000000000000555", "1e400", r'"\u0000"', '"🐟"'],
)
async def test_values_are_written_exactly(results: Results, target: Path, value: str) -> None:
    await fill(results, f'{{"v":{value},"nested":[{value}]}}')
    await export(results, CRAWL, target, Format.JSONL)
    assert target.read_text("utf-8").startswith(f'{{"v":{value},"nested":[{value}],"_kind"')


async def test_csv_columns_are_all_fields_in_first_seen_order(
    results: Results, target: Path
) -> None:
    await fill(results, '{"b":1,"a":2}', '{"c":3,"a":4}', "{}")
    rows = await csv_rows(results, target)
    assert list(rows[0]) == ["b", "a", "c", *OWN_FIELDS]
    assert [(row["b"], row["a"], row["c"]) for row in rows] == [
        ("1", "2", ""),
        ("", "4", "3"),
        ("", "", ""),
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("null", ""),
        ("true", "true"),
        ("1.50", "1.50"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r'"a \"b\", c;\td"', 'a "b", c;\td'),
        (r'"two\r\nlines\nand\rmore"', "two\r\nlines\nand\rmore"),
        ('"=1+1"', "=1+1"),
        ('"🐟"', "🐟"),
        ('"null"', "null"),
        ('{"x":[1,"y"]}', '{"x":[1,"y"]}'),
    ],
)
async def test_csv_cells(results: Results, target: Path, value: str, cell: str) -> None:
    await fill(results, f'{{"v":{value},"after":"!"}}')
    (row,) = await csv_rows(results, target)
    assert (row["v"], row["after"]) == (cell, "!")


async def test_items_that_are_gone_where_they_are_wanted(results: Results, target: Path) -> None:
    await results.save("earlier", Batch(items=[some_item("a"), some_item("b", data=b'{"n":1}')]))
    await results.save(CRAWL, Batch(items=[some_item("a", data=b'{"n":2}')]))
    await results.mark_gone(CRAWL, "earlier", 1_700_000_000.0)
    assert await export(results, CRAWL, target, Format.JSONL) == 1
    assert "_gone_at" not in target.read_text("utf-8")
    assert await export(results, CRAWL, target, Format.JSONL, Wanted(gone=True)) == 2
    lines = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [list(line) for line in lines] == [["n", *OWN_FIELDS, GONE_FIELD]] * 2
    assert [line["_gone_at"] for line in lines] == [None, "2023-11-14T22:13:20.000Z"]
    await export(results, CRAWL, target, Format.CSV, Wanted(gone=True))
    with target.open(newline="", encoding="utf-8") as file:
        cells = [row["_gone_at"] for row in csv.DictReader(file)]
    assert cells == ["", "2023-11-14T22:13:20.000Z"]


async def test_one_kind_only(results: Results, target: Path) -> None:
    await results.save(CRAWL, Batch(items=[some_item("a"), some_item("b", kind="Review")]))
    assert await export(results, CRAWL, target, Format.JSONL, Wanted(kind="Review")) == 1
    assert json.loads(target.read_text("utf-8"))["_key"] == "b"


@pytest.mark.parametrize(
    ("fmt", "content"), [(Format.JSONL, ""), (Format.CSV, "_kind,_key,_url,_scraped_at\r\n")]
)
async def test_no_items_make_an_empty_file(
    results: Results, target: Path, fmt: Format, content: str
) -> None:
    assert await export(results, "never was", target, fmt) == 0
    assert target.read_bytes().decode() == content


@pytest.mark.parametrize(
    ("fmt", "written"),
    [(Format.JSONL, []), (Format.CSV, [1_000, 2_000]), (Format.PARQUET, [2_500])],
)
async def test_progress_is_told(
    results: Results, target: Path, fmt: Format, written: list[int]
) -> None:
    await fill(results, *["{}"] * 2_500)
    told: list[tuple[str, int]] = []

    def progress(stage: str, count: int) -> None:
        told.append((stage, count))

    assert await export(results, CRAWL, target, fmt, progress=progress) == 2_500
    assert told == [("read", 1_000), ("read", 2_000), *(("written", n) for n in written)]


@pytest.mark.parametrize("fmt", Format)
async def test_standard_output_gets_what_a_file_would(
    results: Results, target: Path, fmt: Format, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    await fill(results, '{"name":"žluť"}', '{"n":1}')
    assert await export(results, CRAWL, target, fmt) == 2
    assert await export(results, CRAWL, None, fmt) == 2
    assert capfdbinary.readouterr().out == target.read_bytes()


class Changing(SqliteResults):
    """A store whose item has another field whenever it is read."""

    reads = 0

    async def items(self, crawl: str, wanted: Wanted = EVERYTHING) -> AsyncIterator[StoredItem]:
        self.reads += 1
        yield some_item(data=f'{{"field{self.reads}":1}}'.encode())


async def test_csv_is_of_one_piece_while_the_crawl_goes_on(target: Path) -> None:
    changing = Changing(target.parent / "unused.db")
    (row,) = await csv_rows(changing, target)
    assert row["field1"] == "1"
    await changing.close()


# Whole files or none


class Failing(SqliteResults):
    """A store that breaks after some items."""

    async def items(self, crawl: str, wanted: Wanted = EVERYTHING) -> AsyncIterator[StoredItem]:
        for n in range(1_500):
            yield some_item(f"k{n}")
        raise StorageBusy("went away")


@pytest.mark.parametrize("fmt", Format)
@pytest.mark.parametrize("old", [None, "old content"])
async def test_a_failed_export_changes_nothing(target: Path, fmt: Format, old: str | None) -> None:
    if old:
        target.write_text(old)
    failing = Failing(target.parent / "unused.db")
    with pytest.raises(StorageBusy):
        await export(failing, CRAWL, target, fmt)
    await failing.close()
    assert {file.name: file.read_text() for file in target.parent.iterdir()} == (
        {target.name: old} if old else {}
    )


async def test_a_new_file_replaces_the_old_and_keeps_its_mode(
    results: Results, target: Path
) -> None:
    target.write_text("old content")
    target.chmod(0o640)
    await export(results, CRAWL, target, Format.JSONL)
    assert target.read_bytes() == b""
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list(target.parent.iterdir()) == [target]


async def test_a_new_file_has_the_usual_mode(results: Results, target: Path) -> None:
    usual = target.parent / "usual"
    usual.touch()
    await export(results, CRAWL, target, Format.JSONL)
    assert target.stat().st_mode == usual.stat().st_mode


async def test_a_link_is_followed(results: Results, target: Path) -> None:
    link = target.with_name("link.jsonl")
    link.symlink_to(target)
    await fill(results, "{}")
    await export(results, CRAWL, link, Format.JSONL)
    assert link.is_symlink()
    assert target.read_bytes() == link.read_bytes() != b""


async def test_what_is_no_regular_file_is_refused(results: Results, target: Path) -> None:
    os.mkfifo(target)
    for wrong in (target, target.parent):
        with pytest.raises(ConfigError, match="not a regular file"):
            await export(results, CRAWL, wrong, Format.JSONL)
    assert target.is_fifo()


@pytest.mark.parametrize("name", ["nowhere/x.csv", "x" * 300 + ".csv"])
async def test_a_file_that_cannot_be_made_is_named(
    results: Results, target: Path, name: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        await export(results, CRAWL, target.parent / name, Format.CSV)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_full_disk_leaves_the_old_file(
    results: Results, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target.write_text("old content")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFailed, match=r"items\.jsonl: No space left on device"):
        await export(results, CRAWL, target, Format.JSONL)
    assert target.read_text() == "old content"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("fmt", Format)
async def test_standard_output_may_be_full(
    results: Results, fmt: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(results, "{}")
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=full))
        with pytest.raises(StorageFailed, match="standard output: No space left on device"):
            await export(results, CRAWL, None, fmt)


@pytest.mark.parametrize("fmt", Format)
async def test_a_reader_who_has_seen_enough_is_no_failure_of_ours(
    results: Results, fmt: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(results, "{}")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb", buffering=0) as pipe:  # noqa: PTH123 - a descriptor has no path
        monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=pipe))
        with pytest.raises(BrokenPipeError):
            await export(results, CRAWL, None, fmt)
        assert not pipe.closed


# Formats


@pytest.mark.parametrize(
    ("target", "named", "fmt"),
    [
        (Path("x.jsonl"), None, Format.JSONL),
        (Path("x.y.CSV"), None, Format.CSV),
        (Path("x.txt"), "csv", Format.CSV),
        (Path("x.csv"), "jsonl", Format.JSONL),
        (None, None, Format.JSONL),
        (None, "csv", Format.CSV),
        (Path("x.parquet"), None, Format.PARQUET),
    ],
)
def test_the_format_is_named_or_follows_from_the_suffix(
    target: Path | None, named: str | None, fmt: Format
) -> None:
    assert format_of(target, named) is fmt


@pytest.mark.parametrize(
    ("target", "named", "wrong"),
    [
        (Path("x.json"), None, "x.json"),
        (Path("x"), None, "x: "),
        (Path(".csv"), None, ".csv"),
        (Path("x.csv"), "xml", "'xml'"),
    ],
)
def test_an_unknown_format_lists_those_there_are(
    target: Path, named: str | None, wrong: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        format_of(target, named)
    assert wrong in str(caught.value)
    assert "(formats: jsonl, csv, parquet)" in str(caught.value)


# Since when


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", 1_000_000_000.0 - 90),
        ("7d", 1_000_000_000.0 - 7 * 86_400),
        ("2001-09-09", 999_993_600.0),
        ("2001-09-09T01:46:40", 1_000_000_000.0),
        ("2001-09-09 01:46:40.5Z", 1_000_000_000.5),
        ("2001-09-09T03:46:40+02:00", 1_000_000_000.0),
    ],
)
def test_a_moment_is_a_time_span_ago_or_a_date(text: str, moment: float) -> None:
    assert parse_since(text, 1_000_000_000.0) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "7", "0d", "2001-13-01", "-7d"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="neither a time span"):
        parse_since(text, 1_000_000_000.0)
