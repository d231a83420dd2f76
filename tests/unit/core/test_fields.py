"""What the types of a struct's fields say, and how wrong values are told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from shoal.core.fields import at_most, checked, fields_of
from shoal.errors import ConfigError

Few = Annotated[int, Meta(ge=0, extra={"check": at_most(9)})]


class Lamp(msgspec.Struct):
    colour: Annotated[Literal["red", "green"], Meta(description="What it shines in")] = "red"
    bulbs: Annotated[Few | None, Meta(description="How many")] = None
    rooms: tuple[str, ...] = ()
    key: Annotated[str, Meta(extra={"is_secret": True})] = ""
    on: bool = False


def test_types_say_what_a_field_is() -> None:
    lamp = fields_of(Lamp)
    assert [*lamp] == ["colour", "bulbs", "rooms", "key", "on"]
    assert lamp["colour"].choices == ("red", "green")
    assert lamp["colour"].description == "What it shines in"
    assert (lamp["bulbs"].type, lamp["bulbs"].description) == (int, "How many")
    assert [name for name, field in lamp.items() if field.is_list] == ["rooms"]
    assert [name for name, field in lamp.items() if field.is_secret] == ["key"]
    assert lamp["on"].type is bool


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rooms", "a, b,,", ["a", "b"]),
        ("on", "Yes", True),
        ("on", "off", False),
        ("on", "perhaps", "perhaps"),
        ("key", "a,b", "a,b"),
        ("colour", "on", "on"),
        ("rooms", 5, 5),
    ],
)
def test_text_is_read_as_the_type_wants_it(name: str, text: Any, value: Any) -> None:
    assert fields_of(Lamp)[name].from_text(text) == value


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"colour": "blue"}, "colour: 'blue' is none of red, green"),
        ({"colour": 5}, "colour: 5 is none of red, green"),
        ({"bulbs": -1}, "bulbs must be a whole number, at least 0"),
        ({"bulbs": "many"}, "bulbs must be a whole number, at least 0"),
        ({"on": "perhaps"}, "on must be yes or no"),
        ({"key": ["hush"]}, "key must be text"),
        ({"bulbs": 10}, "bulbs: 10 is more than 9"),
        ({"rooms": ["a", 5]}, "rooms must be a list of texts"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_a_wrong_value_is_named(values: Any, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        checked(values, Lamp)
    assert str(raised.value) == says


def test_only_what_is_set_is_checked() -> None:
    assert checked({"bulbs": 9}, Lamp).bulbs == 9
    assert checked({}, Lamp).bulbs is None
    assert msgspec.convert({"bulbs": 10}, Lamp).bulbs == 10, "as it was stored"
