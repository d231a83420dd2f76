"""Merging: one item for each natural key, by the rule, with its sources."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.results_suite import some_fingerprint, some_item, some_page
from shoal.core.records import StoredItem
from shoal.errors import ConfigError, StorageFailed, UnknownCrawl
from shoal.results.fields import fields_of
from shoal.results.merge import SOURCES, Merged, MergePlan, Rule, merge, natural_key
from shoal.results.port import Batch, Results, RunNote
from shoal.results.sqlite.store import SqliteResults

_numbers = itertools.count()


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[Results]:
    store = SqliteResults(tmp_path / "shoal.db")
    yield store
    await store.close()


def item(key: str, at: float = 1.0, *, kind: str = "Product", **fields: Any) -> StoredItem:
    return some_item(key, at=at, kind=kind, data=json.dumps(fields).encode())


async def put(results: Results, crawl: str, *items: StoredItem) -> None:
    await results.save(crawl, Batch(items=list(items)))


async def merged(results: Results, crawl: str = "all") -> dict[str, dict[str, Any]]:
    """The fields of merged items, by their keys."""
    return {item.key: json.loads(item.data) async for item in results.items(crawl)}


def without_sources(items: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        key: {name: value for name, value in fields.items() if name != SOURCES}
        for key, fields in items.items()
    }


# Natural keys


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ('{"a":"x"}', "x"),
        ('{"a":"  x y\\n"}', "x y"),
        ('{"a":5}', "5"),
        ('{"a":"5"}', "5"),
        ('{"a":5.0}', "5"),
        ('{"a":5.5}', "5.5"),
        ('{"a":123456789012345678901234567890}', "123456789012345678901234567890"),
        ('{"a":true}', "true"),
        ('{"a":["x"]}', '["x"]'),
        ('{"a":0}', "0"),
        ("{}", None),
        ('{"a":null}', None),
        ('{"a":" "}', None),
        ('{"a":[]}', None),
    ],
)
def test_the_key_of_one_field(data: str, key: str | None) -> None:
    assert natural_key(fields_of(data.encode()), ["a"]) == key


def test_the_key_of_several_fields() -> None:
    fields = fields_of(b'{"a":" x ","b":5,"c":null}')
    assert natural_key(fields, ["b", "a"]) == '["5","x"]'
    assert natural_key(fields, ["a", "c"]) is None
    assert natural_key(fields, ["a", "d"]) is None


# Rules


async def test_the_newest_scrape_wins_as_a_whole(results: Results) -> None:
    await put(results, "a", item("1", 2.0, ean="5", price=1, color=None))
    await put(results, "b", item("2", 1.0, ean=5, price=2, color="red"))
    done = await merge(results, MergePlan(["b", "a"], "all", ["ean"]))
    assert done == Merged(items=1, sources=2)
    assert without_sources(await merged(results)) == {"5": {"ean": "5", "price": 1, "color": None}}


async def test_the_first_value_that_is_not_empty_wins(results: Results) -> None:
    await put(
        results,
        "a",
        item("1", 1.0, ean="5", name="old", price=None, tags=[]),
        item("2", 2.0, ean="5", name="new", price="", size={}),
    )
    await put(results, "b", item("3", 9.0, ean="5", name="b", price=0, tags=["x"], size=None))
    await merge(results, MergePlan(["a", "b"], "all", ["ean"], rule=Rule.FIRST_NON_EMPTY))
    assert without_sources(await merged(results)) == {
        "5": {"ean": "5", "name": "new", "price": 0, "size": {}, "tags": ["x"]}
    }


async def test_sources_are_kept(results: Results) -> None:
    url, page = "https://a.example/1", some_fingerprint(3)
    first = some_item("1", at=5.25, url=url, fingerprint=page, data=b'{"ean":"5","b":null}')
    await put(results, "a", first)
    await put(results, "b", item("2", 7.5, ean=" 5", b=2))
    await merge(results, MergePlan(["a", "b"], "all", ["ean"], rule=Rule.FIRST_NON_EMPTY))
    (stored,) = [item async for item in results.items("all")]
    assert (stored.kind, stored.key, stored.scraped_at) == ("Product", "5", 7.5)
    assert (stored.url, stored.fingerprint) == (url, page)
    assert json.loads(stored.data)[SOURCES] == [
        {
            "crawl": "a",
            "kind": "Product",
            "key": "1",
            "url": url,
            "scraped_at": "1970-01-01T00:00:05.250Z",
            "fields": ["ean"],
        },
        {
            "crawl": "b",
            "kind": "Product",
            "key": "2",
            "url": "https://shop.example/2",
            "scraped_at": "1970-01-01T00:00:07.500Z",
            "fields": ["b"],
        },
    ]


async def test_what_was_merged_can_be_merged_again(results: Results) -> None:
    await put(results, "a", item("1", ean="5"))
    await put(results, "b", item("2", ean="5", x=1))
    await merge(results, MergePlan(["a"], "once", ["ean"]))
    await merge(results, MergePlan(["once", "b"], "twice", ["ean"], rule=Rule.FIRST_NON_EMPTY))
    (fields,) = (await merged(results, "twice")).values()
    once, b = fields[SOURCES]
    assert (fields["ean"], fields["x"]) == ("5", 1)
    assert [source["crawl"] for source in once[SOURCES]] == ["a"]
    assert (b["crawl"], b["fields"]) == ("b", ["x"])


async def test_values_stay_exact(results: Results) -> None:
    exact = b'{"ean":"5","n":123456789012345678901234567890,"x":0.10000000000000000555}'
    await put(results, "a", some_item("1", data=exact))
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    (stored,) = [item async for item in results.items("all")]
    assert stored.data.startswith(exact[:-1])


async def test_kinds_stay_apart(results: Results) -> None:
    await put(results, "a", item("1", ean="5"), item("1", kind="Review", ean="5"))
    assert (await merge(results, MergePlan(["a"], "all", ["ean"]))).items == 2
    assert await results.count("all") == {"Product": 1, "Review": 1}
    assert (await merge(results, MergePlan(["a"], "reviews", ["ean"], kind="Review"))).items == 1
    assert await results.count("reviews") == {"Review": 1}


async def test_what_has_no_key_is_left_out_and_counted(results: Results) -> None:
    await put(results, "a", item("1", ean="5"), item("2"), item("3", ean=None))
    assert await merge(results, MergePlan(["a"], "all", ["ean"])) == Merged(
        items=1, sources=1, left_out=2
    )


# Any order


offers = st.lists(
    st.tuples(
        st.sampled_from("ab"),  # crawl
        st.sampled_from([5, "5", " 5", "6"]),  # natural key
        st.sampled_from([1.0, 2.0, 3.0]),  # time
        st.fixed_dictionaries(
            {}, optional={"x": st.sampled_from([None, "", 1, 2]), "y": st.just(3)}
        ),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offers, st.randoms(use_true_random=False), st.sampled_from(Rule))
async def test_the_order_of_arrival_does_not_matter(
    results: Results, drawn: list[tuple[str, Any, float, dict[str, Any]]], choice: Any, rule: Rule
) -> None:
    run = next(_numbers)
    items = [
        (crawl, item(f"k{n}", at, ean=ean, **more))
        for n, (crawl, ean, at, more) in enumerate(drawn)
    ]
    outcomes = []
    for attempt in range(2):
        names = {name: f"{name}-{run}-{attempt}" for name in "ab"}
        for crawl, one in items:
            await put(results, names[crawl], one)
        given = [names[name] for name in "ab" if any(crawl == name for crawl, _ in items)]
        into = f"all-{run}-{attempt}"
        await merge(results, MergePlan(given, into, ["ean"], rule=rule))
        text = json.dumps(await merged(results, into), sort_keys=True)
        outcomes.append(text.replace(f"-{run}-{attempt}", ""))
        choice.shuffle(items)
    assert outcomes[0] == outcomes[1]


# Again


async def test_merging_again_changes_nothing_if_nothing_changed(results: Results) -> None:
    await put(results, "a", item("1", ean="5"), item("2", ean="5"))
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    once = await merged(results)
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    assert await merged(results) == once
    assert len(await results.history("all", "Product", "5")) == 1


async def test_merging_again_brings_it_up_to_date(results: Results) -> None:
    await put(results, "a", item("1", 1.0, ean="5", price=1))
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    await put(results, "a", item("1", 2.0, ean="5", price=2), item("2", 1.0, ean="6"))
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    items = await merged(results)
    assert (items["5"]["price"], list(items)) == (2, ["5", "6"])
    assert len(await results.history("all", "Product", "5")) == 2


async def test_fresh_drops_what_was_merged_otherwise(results: Results) -> None:
    await put(results, "a", item("1", ean="5", sku="s"))
    await merge(results, MergePlan(["a"], "all", ["ean"]))
    await merge(results, MergePlan(["a"], "all", ["sku"]))
    assert list(await merged(results)) == ["5", "s"]
    await merge(results, MergePlan(["a"], "all", ["sku"], fresh=True))
    assert list(await merged(results)) == ["s"]


# Refusals


async def test_a_source_is_never_overwritten(results: Results) -> None:
    await put(results, "a", item("1", ean="5"))
    with pytest.raises(ConfigError, match="'a' is one of the crawls to merge"):
        await merge(results, MergePlan(["a"], "a", ["ean"], fresh=True))
    assert len(await merged(results, "a")) == 1


@pytest.mark.parametrize("trace", ["note", "items", "page"])
async def test_a_crawl_that_was_run_is_never_overwritten(results: Results, trace: str) -> None:
    await put(results, "a", item("1", ean="5"))
    fields: dict[str, Any] = {SOURCES: []} if trace == "page" else {}
    if trace == "note":
        await results.note_run("run", RunNote("sqlite:///shoal.db"))
    else:
        await put(results, "run", item("2", **fields))
    if trace == "page":
        await results.save("run", Batch(pages=[some_page(fingerprint=some_fingerprint(1))]))
    before = await merged(results, "run")
    with pytest.raises(ConfigError, match="'run' is a crawl that was run"):
        await merge(results, MergePlan(["a"], "run", ["ean"], fresh=True))
    assert await merged(results, "run") == before


async def test_there_must_be_something_to_merge(results: Results) -> None:
    await put(results, "a", item("1", ean="5"))
    with pytest.raises(UnknownCrawl):
        await merge(results, MergePlan(["a", "nobody"], "all", ["ean"]))
    with pytest.raises(ConfigError, match="none of 1 items has a value in sku and ean"):
        await merge(results, MergePlan(["a"], "all", ["sku", "ean"]))
    with pytest.raises(ConfigError, match="nothing to merge: no items of kind 'Reviw'"):
        await merge(results, MergePlan(["a"], "all", ["ean"], kind="Reviw"))
    assert await merged(results) == {}


async def test_a_full_temporary_disk_is_said(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(merge.__globals__["_QUERIES"], "add", "INSERT INTO nowhere VALUES (1)")
    await put(results, "a", item("1", ean="5"))
    with pytest.raises(StorageFailed, match="the temporary file to merge in: "):
        await merge(results, MergePlan(["a"], "all", ["ean"]))


async def test_many_items_need_little_memory(results: Results) -> None:
    """Sixty megabytes of them."""
    megabyte = "x" * 1_000_000
    for n in range(60):
        await put(results, "a", item(f"{n}", ean=n % 40, text=megabyte))
    tracemalloc.start()
    try:
        assert (await merge(results, MergePlan(["a"], "all", ["ean"]))).items == 40
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000
