"""Items: classes with keys, and the form in which they are stored or rejected."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from datetime import UTC, datetime
from typing import Any, ClassVar

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.records import RejectedItem, StoredItem
from shoal.errors import ConfigError
from shoal.spider.items import Item, store_form


class Product(Item, key="sku"):
    sku: str
    title: str
    price: float
    tags: list[str] = dataclasses.field(default_factory=list)


class Offer(Item, key=("shop", "number")):
    shop: str
    number: int


class Note(Item):
    text: str
    size: int | None = None


class Reading(Item):
    value: float | None
    more: Any = None


def form_of(item: Any) -> StoredItem | RejectedItem:
    return store_form(item, url="https://shop.example/x", fingerprint=b"12345678", scraped_at=5.0)


def stored(item: Any) -> StoredItem:
    form = form_of(item)
    assert isinstance(form, StoredItem), form
    return form


def rejected(item: Any) -> RejectedItem:
    form = form_of(item)
    assert isinstance(form, RejectedItem), form
    return form


# The class


def test_an_item_is_a_dataclass_with_a_key() -> None:
    product = Product("a", title="b", price=1.5)
    assert product == Product(sku="a", title="b", price=1.5)
    assert Product.__key__ == ("sku",)
    assert Offer.__key__ == ("shop", "number")
    assert Note.__key__ is None


def test_a_subclass_inherits_the_key_or_has_its_own() -> None:
    class Book(Product):
        isbn: str = ""

    class Edition(Book, key="isbn"):
        pass

    assert Book.__key__ == ("sku",)
    assert Edition.__key__ == ("isbn",)
    assert stored(Book("a", "b", 1.0, isbn="i")).key == "a"
    assert stored(Edition("a", "b", 1.0, isbn="i")).key == "i"


@pytest.mark.parametrize("key", ["sku", ("title", "sku"), ()])
def test_a_key_must_name_fields(key: Any) -> None:
    with pytest.raises(ConfigError, match="Wrong: key= must name fields, not "):

        class Wrong(Item, key=key):
            title: str


# What is stored


def test_an_item_is_stored_under_its_class_and_key() -> None:
    assert stored(Product("a", "b", 1.5)) == StoredItem(
        kind="Product",
        key="a",
        data=b'{"sku":"a","title":"b","price":1.5,"tags":[]}',
        url="https://shop.example/x",
        fingerprint=b"12345678",
        scraped_at=5.0,
    )


def test_keys_of_several_fields_do_not_run_together() -> None:
    assert stored(Offer("a", 1)).key == '["a",1]'
    assert stored(Offer('a",1', 1)).key != stored(Offer("a", 1)).key


def test_without_a_key_the_content_is_the_key() -> None:
    first, again, other = stored(Note("a")), stored(Note("a")), stored(Note("b"))
    assert first.key == again.key != other.key
    assert len(bytes.fromhex(first.key)) == 16
    assert stored({"a": 1, "b": 2}).key == stored({"b": 2, "a": 1}).key


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("x", "x"),
        (7, "7"),
        (0, "0"),
        (False, "False"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (datetime(2024, 1, 2, tzinfo=UTC), "2024-01-02T00:00:00Z"),
        (Colour.RED, "red"),
        ("nul\0", "nul\0"),
    ],
)
def test_keys_are_text(value: Any, key: str) -> None:
    class Keyed(Item, key="id"):
        id: Any

    assert stored(Keyed(value)).key == key


@dataclasses.dataclass
class Plain:
    __key__ = "sku"
    sku: str
    price: float


class Record(msgspec.Struct, rename="camel"):
    __key__ = ("item_number",)
    item_number: int


@attrs.define
class Attrs:
    __key__ = "sku"
    sku: str
    price: float


class Model(pydantic.BaseModel):
    __key__: ClassVar[str] = "sku"
    sku: str
    price: float
    seen: datetime | None = None


@pytest.mark.parametrize(
    ("item", "kind", "key", "data"),
    [
        (Plain("a", 1.0), "Plain", "a", {"sku": "a", "price": 1.0}),
        (Record(5), "Record", "5", {"itemNumber": 5}),
        (Attrs("a", 1.0), "Attrs", "a", {"sku": "a", "price": 1.0}),
        (
            Model(sku="a", price=1, seen=datetime(2024, 1, 2, tzinfo=UTC)),
            "Model",
            "a",
            {"sku": "a", "price": 1.0, "seen": "2024-01-02T00:00:00Z"},
        ),
    ],
)
def test_other_kinds_of_classes_are_items_too(
    item: Any, kind: str, key: str, data: dict[str, Any]
) -> None:
    form = stored(item)
    assert (form.kind, form.key) == (kind, key)
    assert msgspec.json.decode(form.data) == data


def test_a_dict_is_an_item() -> None:
    form = stored({"a": [1, None, {"b": "c"}], "when": datetime(2024, 1, 2, tzinfo=UTC)})
    assert form.kind == "item"
    assert form.data == b'{"a":[1,null,{"b":"c"}],"when":"2024-01-02T00:00:00Z"}'


# What is rejected

_ANY: Any = "any"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Product("a", "b", _ANY), "price: Expected `float`, got `str`"),
        (Product(None, "b", 1.0), "sku: Expected `str`, got `null`"),  # type: ignore[arg-type]
        (Product("a", "b", 1.0, tags=["x", 5]), "tags[1]: Expected `str`, got `int`"),  # type: ignore[list-item]
        (Product("", "b", 1.0), "sku: the key is empty"),
        (Offer("", 1), "shop: the key is empty"),
        (Product("a", "b", float("nan")), "price: nan is not a finite number"),
        (Reading(float("inf")), "value: inf is not a finite number"),
        (Reading(1.0, [{"x": float("-inf")}]), "more[0].x: -inf is not a finite number"),
        ({"a": float("nan")}, "a: nan is not a finite number"),
        ({1: 2}, "field names must be text, not 1"),
        (Plain("a", _ANY), "price: Expected `float`, got `str`"),
        (Attrs("a", _ANY), "price: Expected `float`, got `str`"),
        (Record(_ANY), "itemNumber: Expected `int`, got `str`"),
        (Model.model_construct(sku="", price=1.0), "sku: the key is empty"),
        (Model(sku="a", price=float("inf")), "price: inf is not a finite number"),
    ],
)
def test_an_invalid_item_is_rejected_with_its_reason(item: Any, reason: str) -> None:
    form = rejected(item)
    assert form.reason == reason
    assert form.kind == ("item" if isinstance(item, dict) else type(item).__name__)
    assert (form.url, form.fingerprint, form.scraped_at) == (
        "https://shop.example/x",
        b"12345678",
        5.0,
    )


def test_a_rejected_item_is_shown_as_far_as_possible() -> None:
    assert (
        rejected(Product("a", "b", _ANY)).data == '{"sku":"a","title":"b","price":"any","tags":[]}'
    )
    assert rejected({"a": object}).data == "{'a': <class 'object'>}"


class Unruly(Item):
    value: Any

    def __post_init__(self) -> None:
        if self.value == "refuse":
            raise LookupError("not this one")

    def __repr__(self) -> str:
        raise RuntimeError("no repr either")


class Unresolved(Item):
    value: NoSuchName  # type: ignore[name-defined]  # noqa: F821


class Ambiguous(Item):
    value: str | datetime


class Bare(msgspec.Struct, array_like=True):
    value: int


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Note("\ud800"), "surrogates not allowed"),
        ({"\ud800": 1}, "surrogates not allowed"),
        ({"a": object()}, "unsupported"),
        ({"a": _nested(100_000)}, "recursion"),
        (Unruly(object()), "unsupported"),
        (Unresolved(1), "Unresolved cannot be checked: name 'NoSuchName'"),
        (Ambiguous("x"), "Ambiguous cannot be checked"),
        (Bare(1), "array_like"),
        (Model.model_construct(sku="a", price="x"), "Expected `float`"),
        ("text", "str is not an item"),
        (None, "NoneType is not an item"),
    ],
)
def test_what_cannot_be_checked_or_encoded_is_rejected(item: Any, reason: str) -> None:
    assert reason in rejected(item).reason


def test_an_error_in_the_items_own_code_is_a_rejection() -> None:
    item = Unruly("fine")
    item.value = "refuse"
    form = rejected(item)
    assert form.reason == "LookupError: not this one"
    assert form.data == '{"value":"refuse"}'
    item.value = object()
    assert rejected(item).data == "<Unruly>"


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=10,
)


@given(item=st.dictionaries(st.text(), _json) | st.builds(Reading, st.floats() | st.text(), _json))
def test_any_item_is_stored_or_rejected_and_what_is_stored_is_json(item: Any) -> None:
    form = form_of(item)
    if isinstance(form, StoredItem):
        assert isinstance(msgspec.json.decode(form.data), dict)
        assert b"\n" not in form.data
    else:
        assert form.reason
