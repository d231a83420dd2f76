"""A process that may open no more files waits, as its connections do; a wrong path is an error."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from shoal.drivers.sqlite import Database
from shoal.errors import StorageBusy, StorageFailed


def needs_a_journal(connection: sqlite3.Connection) -> None:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    raise error


def may_open_no_more(connection: sqlite3.Connection) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


async def test_what_needs_one_more_file_is_tried_again(tmp_path: Path) -> None:
    database = Database(tmp_path / "shoal.db", "part", ())
    try:
        for work in (needs_a_journal, may_open_no_more):
            with pytest.raises(StorageBusy):
                await database.run(work)
    finally:
        await database.close()


async def test_a_file_that_cannot_be_opened_at_all_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "shoal.db").mkdir()
    database = Database(tmp_path / "shoal.db", "part", ())
    try:
        with pytest.raises(StorageFailed):
            await database.run(lambda connection: None)
    finally:
        await database.close()
