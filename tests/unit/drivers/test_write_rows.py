"""Many rows in few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.drivers.sqlite import MAX_ROWS, write_rows


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        yield connection


@given(st.integers(0, MAX_ROWS * 3))
def test_every_row_once_and_in_order(count: int) -> None:
    statements: list[str] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a, b)")
        connection.set_trace_callback(statements.append)
        write_rows(connection, "INSERT INTO t VALUES {rows}", [(n, -n) for n in range(count)])
        connection.set_trace_callback(None)
        rows = connection.execute("SELECT a, b FROM t ORDER BY rowid").fetchall()
    assert rows == [(n, -n) for n in range(count)]
    assert len(statements) <= count // MAX_ROWS + MAX_ROWS.bit_length()


def test_values_keep_their_types(connection: sqlite3.Connection) -> None:
    rows = [(b"\0\xff", "a\0b", None), (1.1, -(2**63), "{rows}")]
    write_rows(connection, "INSERT INTO t VALUES {rows}", rows)
    assert connection.execute("SELECT * FROM t").fetchall() == rows


def test_other_values_come_after_the_rows(connection: sqlite3.Connection) -> None:
    query = "WITH new (a, b) AS (VALUES {rows}) INSERT INTO t SELECT a, b, ? FROM new"
    write_rows(connection, query, [(1, 2), (3, 4), (5, 6)], "same")
    found = connection.execute("SELECT * FROM t").fetchall()
    assert found == [(1, 2, "same"), (3, 4, "same"), (5, 6, "same")]
