"""shoal diff, as it is used."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.results_suite import some_item
from shoal.results.port import Batch, RunNote
from support.postgres_servers import QUICK, PostgresServer
from support.stored import STORE, Stored, product

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Stored:
    """Two crawls of a shop, and another kind of items."""
    folder = Stored(tmp_path)
    folder.save("mon", product("1", name="Ryba 🐟", price=10, seen=1), product("2", name="old"))
    folder.save("mon", product("3", name="same", seen=1), some_item("x", kind="Review"))
    folder.save("tue", product("1", name="Ryba 🐟", price=9.5, seen=2), product("4", name="new"))
    folder.save("tue", product("3", name="same", seen=2))
    return folder


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_table_and_a_line_of_counts(folder: Stored) -> None:
    ended = folder.fine("diff", "mon", "tue", "--ignore", "seen", "--kind", "Product")
    *table, last = ended.out.splitlines()
    assert [row.split()[:3] for row in table[1:]] == [
        ["changed", "Product", "1"],
        ["gone", "Product", "2"],
        ["new", "Product", "4"],
    ]
    assert table[1].split()[3:] == ["price", "10", "9.5"]
    assert last == "1 new, 1 changed, 1 gone, 1 the same: mon → tue"


def test_a_long_table_is_capped_and_says_so(folder: Stored) -> None:
    said = folder.fine("diff", "mon", "tue", "--limit", "2").out
    assert "the first 2 of 5; --limit shows more, -o writes all to a file" in said
    assert said.endswith("1 new, 2 changed, 2 gone, 0 the same: mon → tue\n")


def test_help_names_the_formats_of_changes(folder: Stored) -> None:
    assert "--format jsonl|csv " in folder.fine("diff", "--help").out


def test_json_has_a_line_for_each_item(folder: Stored) -> None:
    ended = folder.fine("diff", "mon", "tue", "--json", "--ignore", "seen", "--only", "new,changed")
    changed, new = lines(ended.out)
    assert (changed["change"], changed["kind"], changed["key"]) == ("changed", "Product", "1")
    assert (changed["before"], changed["after"]) == ({"price": 10}, {"price": 9.5})
    assert (new["change"], new["before"], new["after"]) == ("new", None, {"name": "new"})
    assert new["url"] == "https://shop.example/4"
    assert ended.err == "1 new, 1 changed, 2 gone, 1 the same: mon → tue\n"


def test_a_csv_has_a_row_for_each_field(folder: Stored) -> None:
    folder.fine("diff", "mon", "tue", "-o", "changes.csv", "--kind", "Product")
    with (folder.path / "changes.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            (r["change"], r["key"], r["field"], r["before"], r["after"])
            for r in csv.DictReader(file)
        ]
    assert rows == [
        ("changed", "1", "price", "10", "9.5"),
        ("changed", "1", "seen", "1", "2"),
        ("gone", "2", "name", "old", ""),
        ("changed", "3", "seen", "1", "2"),
        ("new", "4", "name", "", "new"),
    ]


def test_scripts_can_ask_whether_anything_differs(folder: Stored) -> None:
    def code(*args: str) -> int:
        return folder.shoal("diff", *args, "--exit-code").code

    assert code("mon", "tue") == 3
    assert code("mon", "mon") == 0
    assert code("mon", "tue", "--kind", "Review", "--only", "new") == 0
    assert folder.shoal("diff", "mon", "tue").code == 0


def test_a_crawl_alone_is_compared_with_the_one_before(folder: Stored) -> None:
    folder.ask(lambda results: results.note_run("tue", RunNote("sqlite:///no.db", previous="mon")))
    assert folder.fine("diff", "tue").out.endswith(": mon → tue\n")


def test_a_crawl_is_compared_with_itself_at_an_earlier_moment(folder: Stored) -> None:
    now = time.time()
    for days, price in ((3, 1), (2, 2), (0.5, 3)):
        folder.save("shop", product("1", now - days * DAY_S, price=price))
    folder.save("shop", product("2", now, price=1), product("3", now - 3 * DAY_S, price=1))
    changed, new = lines(folder.fine("diff", "shop", "--since", "1d", "--json").out)
    assert (changed["before"], changed["after"]) == ({"price": 2}, {"price": 3})
    assert (new["change"], new["key"]) == ("new", "2")


def test_pages_do_not_order_the_terminal_about(folder: Stored) -> None:
    folder.save("odd", product("\x1b[2J\n", name="[red]\x1b[31m\u202e" + "x" * 99))
    said = folder.fine("diff", "mon", "odd").out
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "[red]" in said


def test_results_may_be_at_two_addresses(folder: Stored, server: PostgresServer) -> None:
    """Stores spell what they keep in their own ways: that is no change."""
    address = server.new_database("later")
    odd = b'{"zz":1e2,"name":"Ryba \xf0\x9f\x90\x9f","a":{"yy":null,"b":[1.50,{"x":true}]}}'
    items = [some_item(key, data=odd) for key in ("é", "Z", "a", "🐟")]
    folder.save("mon", *items)
    folder.ask(lambda results: results.save("tue", Batch(items=items)), address)
    options = ("--results", address, "--earlier-results", STORE)
    said = folder.fine("diff", "mon", "tue", *options).out
    assert said.endswith("0 new, 0 changed, 4 gone, 4 the same: mon → tue\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["mon", "wed"], "no crawl named 'wed' here"),
        (["wed", "mon"], "no crawl named 'wed' here"),
        (["tue"], "compare 'tue' with what? it follows on no other crawl"),
        (["mon", "tue", "--since", "1d"], "--since compares a crawl with itself: name only one"),
        (["mon", "tue", "--only", "old"], "--only old: no such change (new, changed, gone)"),
        (["mon", "tue", "-o", "x.parquet"], "changes are not written as parquet"),
        (["mon", "tue", "-o", "x.txt"], "no format has this suffix"),
        (["tue", "--since", "soon"], "neither a time span"),
        (["mon", "tue", "--earlier-results", "sqlite:///no.db"], "no.db"),
    ],
)
def test_diff_refuses(folder: Stored, args: list[str], said: str) -> None:
    assert said in folder.refused("diff", *args)
