"""The commands that read and refine what is stored: merge, duplicates, export, explain."""

from __future__ import annotations

import asyncio
import csv
import json
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from contract.results_suite import some_fingerprint, some_item, some_page, some_rejected
from shoal.config import Rules
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.results.port import RunNote
from support.frontiers import entry
from support.stored import Stored, product

DAY_S = 86_400.0


@pytest.fixture
def folder(tmp_path: Path) -> Stored:
    return Stored(tmp_path)


# merge


@pytest.fixture
def shops(folder: Stored) -> Stored:
    folder.save("a", product("1", 1.0, ean=5, name="", price=1), product("2", ean=6))
    folder.save("b", product("1", 2.0, ean="5 ", name="Thing", price=None), product("2"))
    return folder


def test_merge_folds_items_of_two_crawls(shops: Stored) -> None:
    said = shops.fine("merge", "a", "b", "--into", "all", "--by", "ean").out
    assert said.splitlines() == [
        "2 items in 'all', made of 3",
        "left out: 1 item without a value in ean",
    ]
    five, six = shops.export("all")
    assert (five["name"], five["price"], five["_key"]) == ("Thing", None, "5")
    assert [source["crawl"] for source in five["_sources"]] == ["b", "a"]
    assert six["_sources"][0]["fields"] == ["ean"]


def test_merge_takes_the_first_value_that_is_not_empty(shops: Stored) -> None:
    command = ("merge", "a", "b", "--into", "all", "--by", "ean", "--rule", "first-non-empty")
    done = shops.fine(*command, "--json").json()
    assert done == {"items": 2, "sources": 3, "left_out": 1}
    five, _ = shops.export("all")
    assert (five["ean"], five["name"], five["price"]) == (5, "Thing", 1)
    assert [source["fields"] for source in five["_sources"]] == [["ean", "price"], ["name"]]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_sources_survive_an_export(shops: Stored, suffix: str) -> None:
    shops.fine("merge", "a", "b", "--into", "all", "--by", "ean")
    file = shops.path / f"all.{suffix}"
    shops.fine("export", "all", "-o", file)
    five = first_row(file)
    sources = five["_sources"]
    if isinstance(sources, str):
        sources = json.loads(sources)
    assert [source["crawl"] for source in sources] == ["b", "a"]
    assert sources[0]["scraped_at"] == "1970-01-01T00:00:02.000Z"


def first_row(file: Path) -> dict[str, Any]:
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()[0]
    with file.open(encoding="utf-8", newline="") as lines:
        return next(csv.DictReader(lines)) if file.suffix == ".csv" else json.loads(next(lines))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["a", "--into", "a", "--by", "ean"], "'a' is one of the crawls to merge"),
        (["a", "--into", "b", "--by", "ean"], "'b' is a crawl that was run"),
        (["a", "nobody", "--into", "all", "--by", "ean"], "no crawl named 'nobody' here"),
        (["a", "--into", "all", "--by", "eam"], "none of 2 items has a value in eam"),
        (["a", "--into", "all", "--by", "ean,"], "a field has no name"),
        (["a", "--into", "all", "--by", "ean", "--rule", "oldest"], "oldest"),
        (["a", "--into", "all", "--by", "ean", "--results", "sqlite:///no.db"], "no.db"),
        (["a", "--by", "ean"], "--into"),
    ],
)
def test_merge_refuses(shops: Stored, args: list[str], said: str) -> None:
    shops.ask(lambda results: results.note_run("b", RunNote("sqlite:///shoal.db")))
    assert said in shops.refused("merge", *args)


# results duplicates


def test_duplicates_are_found_and_marked(folder: Stored) -> None:
    hashes = {1: 0, 2: 0b11, 3: 2**62 - 1, 4: 0b1111}
    pages = [
        some_page(url=f"https://x.example/{n}", fingerprint=some_fingerprint(n), simhash=value)
        for n, value in hashes.items()
    ]
    folder.save("x", pages=pages)
    said = folder.fine("results", "duplicates", "x").out
    assert said.splitlines() == [
        "of 4 pages, 2 are nearly the same as another one, in 1 group",
        "https://x.example/2",
        "    like https://x.example/1 (2 bits)",
        "https://x.example/4",
        "    like https://x.example/1 (4 bits)",
    ]
    found = folder.fine("results", "duplicates", "x", "--json").json()
    assert (found["pages"], found["near"], found["groups"]) == (4, 2, 1)
    assert found["examples"][0]["distance"] == 2
    near = folder.ask(lambda results: results.near_of("x", some_fingerprint(4)))
    assert near is not None
    assert (near.like, near.distance) == (some_fingerprint(1), 4)


def test_only_some_duplicates_are_listed(folder: Stored) -> None:
    pages = [some_page(fingerprint=some_fingerprint(n), simhash=7) for n in range(1_500)]
    folder.save("x", pages=pages)
    lines = folder.fine("results", "duplicates", "x").out.splitlines()
    assert lines[0] == "of 1,500 pages, 1,499 are nearly the same as another one, in 1 group"
    assert lines[-1] == "and 1,489 more: shoal explain x URL"


def test_duplicates_want_simhashes(folder: Stored) -> None:
    folder.save("x", pages=[some_page()])
    folder.ask(lambda results: results.note_run("x", RunNote("sqlite:///shoal.db")))
    assert "run it with --simhash" in folder.refused("results", "duplicates", "x")
    assert "no crawl named 'y' here" in folder.refused("results", "duplicates", "y")


# rejected


def test_rejected_items_are_listed_and_shown(folder: Stored) -> None:
    places = [(f"http://a.example/{n}", some_fingerprint(n)) for n in range(3)]
    rejected = [some_rejected(url=url, fingerprint=at) for url, at in places]
    folder.save("x", rejected=rejected)
    listed = folder.fine("rejected", "list", "x", "--limit", "2").out.splitlines()
    assert listed[:3:2] == ["http://a.example/0", "http://a.example/1"]
    assert listed[1].endswith(f"{some_rejected().kind}: {some_rejected().reason}")
    assert listed[-1] == "the first 2; --limit shows more"
    shown = folder.fine("rejected", "show", "x", "http://A.example:80/2#top").out
    assert some_rejected().reason in shown
    assert some_rejected().data in shown
    refused = folder.refused("rejected", "show", "x", "http://a.example/9")
    assert "no item of http://a.example/9 was rejected (see: shoal rejected list x)" in refused


# export


@pytest.fixture
def changing(folder: Stored) -> Stored:
    """Items that were read long ago, lately, and both; of the last two one has changed."""
    now = time.time()
    folder.save("x", *(product(key, now - 9 * DAY_S, n=1) for key in ("old", "same", "changed")))
    folder.save("x", product("same", now, n=1), product("changed", now, n=2), product("new", now))
    folder.save("x", some_item("old", at=now - 8 * DAY_S, data=b'{"n": 3}'))
    return folder


@pytest.mark.parametrize(
    ("filters", "keys"),
    [
        ([], ["old", "same", "changed", "new"]),
        (["--since", "7d"], ["same", "changed", "new"]),
        (["--since", "2000-01-01"], ["old", "same", "changed", "new"]),
        (["--since", "2999-01-01T00:00+02:00"], []),
        (["--where-changed"], ["old", "changed"]),
        (["--where-changed", "--since", "12h"], ["changed"]),
        (["--kind", "Product", "--since", "12h"], ["same", "changed", "new"]),
        (["--kind", "Review"], []),
    ],
)
def test_export_filters(changing: Stored, filters: list[str], keys: list[str]) -> None:
    out = changing.fine("export", "x", *filters).out
    assert [json.loads(line)["_key"] for line in out.splitlines()] == keys


def test_export_to_parquet(changing: Stored) -> None:
    ended = changing.fine("export", "x", "-o", "x.parquet")
    assert "4 items in x.parquet" in ended.err
    table = pq.read_table(changing.path / "x.parquet")
    assert table["n"].to_pylist() == [3, 1, 2, None]


def test_export_needs_no_frontier_to_find_items(changing: Stored) -> None:
    (changing.path / "shoal.db").rename(changing.path / "other.db")
    out = changing.fine("export", "x", "--results", "sqlite:///other.db").out
    assert len(out.splitlines()) == 4
    said = changing.refused("export", "y", "--results", "sqlite:///other.db")
    assert "no crawls here: shoal.db does not exist" in said


def test_export_says_what_a_time_is(changing: Stored) -> None:
    assert "neither a time span" in changing.refused("export", "x", "--since", "yesterday")


# explain


def test_explain_shows_copies_history_and_the_archive(folder: Stored) -> None:
    page = entry("a.example/page")
    like = entry("a.example/first")

    async def add() -> None:
        frontier = SqliteFrontier(folder.path / "shoal.db")
        await frontier.start("x", Rules())
        await frontier.add("x", [page, like])
        await frontier.close()

    asyncio.run(add())
    log = some_page(fingerprint=page.fingerprint, simhash=1, archived="file:///x#1", digest=b"\xaa")
    first = some_page(fingerprint=like.fingerprint, url=like.task.url, simhash=0)
    folder.save("x", pages=[first, log])
    for n in range(8):
        data = json.dumps({"sku": "k1", "price": n, "text": "x" * 100 * n}).encode()
        folder.save("x", some_item("k1", at=float(n), fingerprint=page.fingerprint, data=data))
    folder.fine("results", "duplicates", "x")

    said = folder.fine("explain", "x", page.task.url).out
    assert f"{like.task.url} (1 bit)" in said
    assert "file:///x#1" in said
    assert "8 readings, the last 5:" in said
    assert "1970-01-01 00:00:07 · price 6 → 7" in said
    assert "00:00:02" not in said

    told = folder.fine("explain", "x", page.task.url, "--json").json()
    assert told["near"] == {"url": like.task.url, "distance": 1}
    assert (told["tries"][0]["archived"], told["tries"][0]["digest"]) == ("file:///x#1", "aa")
    (history,) = told["histories"]
    assert [reading["scraped_at"] for reading in history] == [float(n) for n in range(8)]
    assert history[0]["changes"] == {}
    assert history[7]["changes"]["price"] == [6, 7]


def test_explain_of_a_page_that_is_like_no_other(folder: Stored) -> None:
    page = entry("a.example/page")

    async def add() -> None:
        frontier = SqliteFrontier(folder.path / "shoal.db")
        await frontier.start("x", Rules())
        await frontier.add("x", [page])
        await frontier.close()

    asyncio.run(add())
    folder.save("x", some_item(fingerprint=page.fingerprint))
    told = folder.fine("explain", "x", page.task.url, "--json").json()
    assert told["near"] is None
    assert [len(history) for history in told["histories"]] == [1]
    assert "history" not in folder.fine("explain", "x", page.task.url).out
