"""Export as Parquet: every value as exact as its column can hold it; bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.results_suite import CRAWL, some_item
from shoal.errors import MissingExtra
from shoal.export import GONE_FIELD, OWN_FIELDS, Format, export, parquet
from shoal.export.rows import ValueKind, kind_of
from shoal.results.port import Batch, Results, Wanted
from shoal.results.sqlite.store import SqliteResults
from support.export_process import MANY
from support.processes import TESTS, environment


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[Results]:
    store = SqliteResults(tmp_path / "shoal.db")
    yield store
    await store.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "items.parquet"


async def exported(results: Results, target: Path, *data: str) -> pa.Table:
    """Store one item for each JSON object, export, and read the file."""
    items = [some_item(f"k{n}", data=text.encode()) for n, text in enumerate(data)]
    await results.save(CRAWL, Batch(items=items))
    assert await export(results, CRAWL, target, Format.PARQUET) == len(data)
    return pq.read_table(target)


# Columns


@pytest.mark.parametrize(
    ("values", "type_", "read"),
    [
        (["1", "-2", "null"], pa.int64(), [1, -2, None]),
        (["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
        (["1.5", "2", "null"], pa.float64(), [1.5, 2.0, None]),
        (["1e-7"], pa.float64(), [1e-7]),
        # Doubles as PostgreSQL writes them
        (["1.5", f"{10**16}", f"{10**22}"], pa.float64(), [1.5, 1e16, 1e22]),
        (["1.5", f"{10**23}", f"-{10**300}"], pa.float64(), [1.5, 1e23, -1e300]),
        (["1.5", f"{2**1023}", f"{2**63}"], pa.float64(), [1.5, 2.0**1023, 2.0**63]),
        ([f"{10**16}", "1"], pa.int64(), [10**16, 1]),
        (["1234567890123456800", "1"], pa.int64(), [1234567890123456800, 1]),
        (["true", "false", "null"], pa.bool_(), [True, False, None]),
        (['"a"', '"ž\\n"', '""', "null"], pa.string(), ["a", "ž\n", "", None]),
        (["null", "null"], pa.string(), [None, None]),
        # Numbers that would be rounded
        (["1", "9223372036854775808"], pa.string(), ["1", "9223372036854775808"]),
        (["1.5", "9007199254740993"], pa.string(), ["1.5", "9007199254740993"]),
        (["1.5", "1e400"], pa.string(), ["1.5", "1e400"]),
        (["1.5", f"{10**22 + 1}"], pa.string(), ["1.5", f"{10**22 + 1}"]),
        (["1.5", f"{10**309}"], pa.string(), ["1.5", f"{10**309}"]),
        ([f"{10**22}", "1"], pa.string(), [f"{10**22}", "1"]),
        (["9" * 5_000], pa.string(), ["9" * 5_000]),
        # Everything else
        (["[1,2]", '{"a":1}'], pa.string(), ["[1,2]", '{"a":1}']),
        (["1", '"1"', "true"], pa.string(), ["1", '"1"', "true"]),
    ],
)
async def test_a_column_has_the_type_of_its_values(
    results: Results, target: Path, values: list[str], type_: pa.DataType, read: list[Any]
) -> None:
    table = await exported(results, target, *(f'{{"v":{value}}}' for value in values))
    assert table.schema.field("v").type == type_
    assert table["v"].to_pylist() == read


async def test_columns_are_all_fields_then_our_own(results: Results, target: Path) -> None:
    table = await exported(results, target, '{"b":1,"a":2}', '{"c":3,"_key":"fake"}', "{}")
    assert table.column_names == ["b", "a", "c", *OWN_FIELDS]
    assert table["b"].to_pylist() == [1, None, None]
    assert table["_key"].to_pylist() == ["k0", "k1", "k2"]


async def test_times_are_exact(results: Results, target: Path) -> None:
    await results.save(CRAWL, Batch(items=[some_item(at=1_700_000_000.123456)]))
    await export(results, CRAWL, target, Format.PARQUET)
    table = pq.read_table(target)
    assert table.schema.field("_scraped_at").type == pa.timestamp("us", tz="UTC")
    moment = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert table["_scraped_at"].to_pylist() == [moment]


async def test_items_that_are_gone_have_a_time_of_their_own(results: Results, target: Path) -> None:
    await results.save(CRAWL, Batch(items=[some_item("there", data=b'{"_gone_at":"fake"}')]))
    await results.save("earlier", Batch(items=[some_item("there"), some_item("gone", data=b"{}")]))
    await results.mark_gone(CRAWL, "earlier", 1_700_000_000.123456)
    await export(results, CRAWL, target, Format.PARQUET, Wanted(gone=True))
    table = pq.read_table(target)
    assert table.column_names == [*OWN_FIELDS, GONE_FIELD]
    assert table.schema.field(GONE_FIELD).type == pa.timestamp("us", tz="UTC")
    moment = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
    assert table[GONE_FIELD].to_pylist() == [None, moment]
    await export(results, CRAWL, target, Format.PARQUET)
    assert pq.read_table(target)["_gone_at"].to_pylist() == ["fake"]


async def test_no_items_make_an_empty_table(results: Results, target: Path) -> None:
    table = await exported(results, target)
    assert (table.column_names, table.num_rows) == (list(OWN_FIELDS), 0)


@given(st.integers())
def test_integers_go_where_they_fit(number: int) -> None:
    kind = kind_of(str(number).encode())
    assert (kind in (ValueKind.INT, ValueKind.LONG)) == (-(2**63) <= number < 2**63)
    assert kind is not ValueKind.LONG or int(float(number)) != number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_that_are_written_out_are_doubles(number: float) -> None:
    digits = f"{Decimal(repr(number)):f}".removesuffix(".0")
    kind = kind_of(digits.encode())
    assert kind in (ValueKind.INT, ValueKind.BIG, ValueKind.DOUBLE)
    assert float(digits) == number


# Size


@pytest.mark.parametrize(("bound", "groups"), [("GROUP_ROWS", 3), ("GROUP_CELLS", 5)])
async def test_row_groups_are_bounded(
    results: Results, target: Path, monkeypatch: pytest.MonkeyPatch, bound: str, groups: int
) -> None:
    monkeypatch.setattr(parquet, bound, 10)
    table = await exported(results, target, *["{}"] * (25 if bound == "GROUP_ROWS" else 10))
    assert pq.ParquetFile(target).num_row_groups == groups
    assert table["_key"].to_pylist() == [f"k{n}" for n in range(table.num_rows)]


async def test_large_items_make_small_row_groups(results: Results, target: Path) -> None:
    text = "x" * (parquet.GROUP_BYTES // 2 + 1)
    table = await exported(results, target, *[f'{{"text":"{text}"}}'] * 5)
    assert pq.ParquetFile(target).num_row_groups == 3
    assert table.num_rows == 5


@pytest.mark.parametrize("fmt", [Format.JSONL, Format.PARQUET])
def test_many_items_need_little_memory(target: Path, fmt: Format) -> None:
    """All of them at once would take a hundred megabytes and more."""
    command = [sys.executable, "-m", "support.export_process", fmt, str(target)]
    grown = int(subprocess.check_output(command, env=environment({"PYTHONPATH": str(TESTS)})))
    # Of Parquet with what Arrow holds, twice a row group.
    assert grown < (120_000_000 if fmt is Format.PARQUET else 10_000_000)
    if fmt is Format.PARQUET:
        assert pq.ParquetFile(target).metadata.num_rows == MANY


# Without the extra


async def test_the_missing_extra_is_named(
    results: Results, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[parquet\]'"):
        await export(results, CRAWL, target, Format.PARQUET)
    assert not target.exists()
