"""Tagged values: what comes back, what is refused, and that nothing is run on the way."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st

from shoal.scrapy.wire.tagged import MAX_DEPTH, Unrestorable, Unserialisable, from_plain, to_plain


class Colour(Enum):
    RED = 1


class Size(StrEnum):
    LARGE = "large"


class Book(scrapy.Item):
    title = scrapy.Field()
    tags = scrapy.Field()


@dataclass(frozen=True)
class Point:
    x: int
    y: Any = None
    total: int = field(init=False, default=0)


@attrs.define
class Private:
    _name: str


class Model(pydantic.BaseModel):
    size: int
    inner: Model | None = None


class Counting(scrapy.Item):
    made = 0
    name = scrapy.Field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Counting.made += 1
        super().__init__(*args, **kwargs)


def round_trip(value: Any) -> Any:
    """Through JSON, as it goes through a frontier."""
    return from_plain(msgspec.json.decode(msgspec.json.encode(to_plain(value, "meta"))))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.sampled_from([*Colour, *Size])
)
NAMES = st.text(max_size=5) | st.sampled_from(["$bytes", "$dict", "$", "$item", "scrapy"])


@st.composite
def hashables(draw: st.DrawFn) -> Any:
    """Values that can be keys. A strategy with a name is short in the reports of hypothesis."""
    scalars = st.lists(SCALARS, max_size=3)
    return draw(SCALARS | scalars.map(tuple) | scalars.map(frozenset))


values = st.recursive(
    hashables() | st.lists(hashables(), max_size=3).map(set),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.lists(st.tuples(NAMES | hashables(), inner), max_size=3).map(dict)
        | st.builds(Point, inner, inner)
        | st.builds(lambda value: Book(title=value), inner)
    ),
    max_leaves=10,
)


@given(values)
def test_values_come_back(value: Any) -> None:
    restored = round_trip(value)
    assert restored == value
    assert repr(type(restored)) == repr(type(value))


@pytest.mark.parametrize(
    "value",
    [
        datetime(2024, 2, 29, 12, 30, 1, 5, timezone(timedelta(hours=-3, minutes=-30))),
        date(1, 1, 1),
        time(23, 59, tzinfo=UTC),
        timedelta(days=-1, microseconds=1),
        Decimal("1.10"),
        UUID(int=7),
        2**64,
        [-(10**5000)],
        float("inf"),
        "\ud800 and \udfff",
        {"\ud800": 1},
        {1: "a", None: "b", (1, 2): "c", b"x": "d"},
        {"$bytes": "AA=="},
        {"$oid": "7"},
        {"$bytes": "AA==", "more": 1},
        [b"", (), set(), frozenset(), {}, []],
        Private("n"),
        Model(size=1, inner=Model(size=2)),
        Book(title="A", tags=("x", b"y")),
        Book(),
    ],
)
def test_a_value_comes_back(value: Any) -> None:
    restored = round_trip(value)
    assert (restored, type(restored)) == (value, type(value))


def test_not_a_number_comes_back() -> None:
    assert str(round_trip([float("nan"), Decimal("nan")])) == "[nan, Decimal('NaN')]"


def test_subclasses_of_text_and_numbers_lose_their_class() -> None:
    class Result(str):
        __slots__ = ()

    class Number(float):
        __slots__ = ()

    text, number = round_trip([Result("ü"), Number(1.5)])
    assert (type(text), type(number), text, number) == (str, float, "ü", 1.5)


def test_plain_json_stays_as_it_is() -> None:
    value = {"a": 1, "b": [1.5, None, True, "ü"], "c": {"d": {}}}
    assert to_plain(value, "meta") == value


def test_what_others_write_like_an_unknown_tag_stays_as_it_is() -> None:
    assert from_plain({"$oid": "7"}) == {"$oid": "7"}


class Page:
    """Something that cannot travel."""


def cycle() -> list[Any]:
    ring: list[Any] = []
    ring.append({"again": ring})
    return ring


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"page": Page()}, "meta['page'] is of class Page"),
        ({"a": [1, {"b": (Page(),)}]}, "meta['a'][1]['b'][0] is of class Page"),
        ({"item": Point(1, Page())}, "meta['item']['y'] is of class Page"),
        ({"f": len}, "meta['f'] is of class builtin_function_or_method"),
        ({"e": ValueError("x")}, "meta['e'] is of class ValueError"),
        ({Page: 1}, "is of class type"),
        ({"d": type("Dict", (dict,), {})()}, "meta['d'] is of class Dict"),
        (type("Local", (Book,), {})(), "is of class Local, which no module has by that name"),
        (deep(MAX_DEPTH + 1), f"is nested deeper than {MAX_DEPTH} levels"),
        (deep(100_000), f"is nested deeper than {MAX_DEPTH} levels"),
        (cycle(), f"is nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_cannot_travel_is_named(value: Any, says: str) -> None:
    with pytest.raises(Unserialisable) as caught:
        to_plain(value, "meta")
    assert str(caught.value).startswith("meta")
    assert says in str(caught.value)


def test_the_deepest_that_is_allowed_comes_back() -> None:
    assert round_trip(deep(MAX_DEPTH)) == deep(MAX_DEPTH)


@pytest.mark.parametrize(
    "wire",
    [
        {"$bytes": "not base64!"},
        {"$bytes": 5},
        {"$int": "ten"},
        {"$datetime": "yesterday"},
        {"$timedelta": ["x"]},
        {"$timedelta": [10**12]},
        {"$decimal": "x"},
        {"$uuid": "x"},
        {"$uuid": 5},
        {"$dict": [[1]]},
        {"$dict": [[[], 1]]},
        {"$set": [[]]},
        {"$tuple": 5},
        {"$item": []},
        {"$item": [5, {}]},
        {"$item": ["os.system", {}]},
        {"$item": ["builtins.dict", {}]},
        {"$item": ["builtins.eval", {}]},
        {"$item": ["subprocess.Popen", {"args": ["true"]}]},
        {"$item": ["no_such_module.Item", {}]},
        {"$item": [f"{__name__}.Page", {}]},
        {"$item": [f"{__name__}.Book", {"no_such_field": 1}]},
        {"$item": [f"{__name__}.Book", "title"]},
        {"$enum": [f"{__name__}.Colour", "__class__"]},
        {"$enum": [f"{__name__}.Page", "RED"]},
    ],
)
def test_garbage_is_refused_with_one_kind_of_error(wire: Any) -> None:
    with pytest.raises(Unrestorable):
        from_plain({"a": [wire]})


def test_depth_on_the_wire_is_no_recursion_error() -> None:
    with pytest.raises(Unrestorable, match="nested too deep"):
        from_plain(deep(100_000))


def test_no_module_is_imported_for_a_class() -> None:
    sys.modules.pop("antigravity", None)
    with pytest.raises(Unrestorable, match="no item class"):
        from_plain({"$item": ["antigravity.Item", {}]})
    assert "antigravity" not in sys.modules


@dataclass
class Watched:
    """Has more that can be set than its fields."""

    x: int = 0
    touched = False

    @property
    def other(self) -> int:
        return 0

    @other.setter
    def other(self, value: Any) -> None:
        Watched.touched = True


@pytest.mark.parametrize("field", ["other", "__class__", "__dict__", "touched", "unknown"])
def test_nothing_but_fields_is_set(field: str) -> None:
    wire = {"$item": [f"{__name__}.Watched", {"x": 1, field: {"a": 1}}]}
    with pytest.raises(Unrestorable, match=f"has no field '{field}'"):
        from_plain(wire)
    assert not Watched.touched


def test_no_constructor_is_called() -> None:
    item = Counting(name="x")
    made = Counting.made
    assert round_trip(item) == item
    assert Counting.made == made
