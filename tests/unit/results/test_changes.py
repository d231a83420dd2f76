"""What differs between two crawls: one pass over both, values compared as values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.results_suite import some_item
from shoal.core.records import StoredItem
from shoal.results.changes import Change, Changed, Comparison, same_value

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_crawls = st.dictionaries(st.text(max_size=2), st.sampled_from([1, 2]))


async def stream(items: Iterable[StoredItem]) -> AsyncIterator[StoredItem]:
    """Items as a store gives them: by kind and key."""
    for item in sorted(items, key=lambda item: (item.kind, item.key)):
        yield item


async def compare(
    earlier: Iterable[StoredItem], later: Iterable[StoredItem], *ignored: str
) -> tuple[list[Changed], Comparison]:
    """The changes, and what counted them."""
    comparison = Comparison(stream(earlier), stream(later), ignored)
    return [changed async for changed in comparison.changes() if changed], comparison


def product(key: str, text: str = "{}", kind: str = "Product") -> StoredItem:
    return some_item(key, kind=kind, data=text.encode())


def fields(values: dict[str, Any]) -> dict[str, Any]:
    return {name: json.loads(bytes(value)) for name, value in values.items()}


async def test_new_changed_and_gone() -> None:
    earlier = [product("a"), product("b", '{"price":1,"sku":"b"}'), product("d", kind="A")]
    later = [product("b", '{"price":2,"sku":"b"}'), product("c", '{"sku":"c"}')]
    changes, comparison = await compare(earlier, later)
    told = [
        (each.change, each.item.key, fields(each.before), fields(each.after)) for each in changes
    ]
    assert told == [
        (Change.GONE, "d", {}, {}),
        (Change.GONE, "a", {}, {}),
        (Change.CHANGED, "b", {"price": 1}, {"price": 2}),
        (Change.NEW, "c", {}, {"sku": "c"}),
    ]
    assert comparison.counts == {Change.NEW: 1, Change.CHANGED: 1, Change.GONE: 2}
    assert (comparison.same, comparison.compared) == (0, 4)


async def test_fields_that_came_and_went_are_changes() -> None:
    (changed,), _ = await compare(
        [product("a", '{"x":1,"y":null}')], [product("a", '{"z":3,"x":1}')]
    )
    assert (fields(changed.before), fields(changed.after)) == ({"y": None}, {"z": 3})
    assert changed.fields() == ["z", "y"]


async def test_fields_that_are_ignored_may_differ() -> None:
    earlier, later = [product("a", '{"seen":1,"n":1}')], [product("a", '{"seen":2,"n":1}')]
    assert (await compare(earlier, later, "seen"))[0] == []
    assert len((await compare(earlier, later, "n"))[0]) == 1


@given(before=_crawls, after=_crawls)
async def test_every_item_is_counted_once(before: dict[str, int], after: dict[str, int]) -> None:
    changes, comparison = await compare(
        [product(key, f'{{"n":{n}}}') for key, n in before.items()],
        [product(key, f'{{"n":{n}}}') for key, n in after.items()],
    )
    expected = dict.fromkeys(after.keys() - before.keys(), Change.NEW)
    expected |= dict.fromkeys(before.keys() - after.keys(), Change.GONE)
    both = before.keys() & after.keys()
    expected |= {key: Change.CHANGED for key in both if before[key] != after[key]}
    assert {each.item.key: each.change for each in changes} == expected
    assert [each.item.key for each in changes] == sorted(expected)
    assert comparison.compared == len(before.keys() | after.keys())


@given(value=_values)
def test_a_value_in_another_spelling_is_the_same(value: Any) -> None:
    assert same_value(json.dumps(value).encode(), json.dumps(value, indent=1).encode())
    assert same_value(
        json.dumps(value, sort_keys=True).encode(), json.dumps(value, ensure_ascii=True).encode()
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1e2", "100", True),
        ("1", "1.0", True),
        ('{"a":1,"b":[2]}', '{"b":[2.0],"a":1}', True),
        ('"\\u00e9"', '"é"', True),
        ("1", "true", False),
        ("0", "false", False),
        ("0", "null", False),
        ('"1"', "1", False),
        ("[1,2]", "[2,1]", False),
        ("0.1", "0.10000000000000000555", False),
        ("1e400", "1e401", False),
        ("9" * 100, "9" * 99 + "8", False),
        ("1e99999999999999999999", "2", False),
        ("[" * 5_000 + "]" * 5_000, "[" * 5_000 + "1" + "]" * 5_000, False),
    ],
)
def test_values_are_compared(one: str, other: str, same: bool) -> None:
    assert same_value(one.encode(), other.encode()) is same
    assert same_value(other.encode(), one.encode()) is same
