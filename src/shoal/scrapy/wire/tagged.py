"""Python values as JSON values and back, never with pickle.

What JSON has stays as it is. Anything else becomes an object with one key that names its kind:

    b"\\x00"             {"$bytes": "AA=="}
    (1, 2)              {"$tuple": [1, 2]}
    Product(sku="7")    {"$item": ["shop.items.Product", {"sku": "7"}]}

A user's object that looks like one of these is written as {"$dict": [[key, value], ...]}. Restoring
imports nothing and calls no constructor of a user's class: classes are looked up among the modules
that are loaded already, and must be items or enumerations.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import scrapy
from itemadapter import ItemAdapter

from shoal.errors import ShoalError
from shoal.scrapy.wire.loaded import class_name, find_class

MAX_DEPTH = 100
"""The most levels of containers. A value that has more, or contains itself, is refused."""

_TAG = "$"
_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1
"""Beyond these, readers in other languages would round."""


class Unserialisable(ShoalError):
    """A value that cannot be written as JSON. The message says which, and what it is."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path} {what}")
        self.path = path


class Unrestorable(ShoalError):
    """A JSON value that cannot be turned back into a Python value here."""


class _Odd(Exception):
    """Something in a value cannot be written. On its way up, the exception collects where that
    is."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.steps: list[str] = []


def to_plain(value: Any, path: str) -> Any:
    """Return a value as JSON values. Raises Unserialisable, with `path` as the name of the
    value."""
    try:
        return _plain(value, 0)
    except _Odd as odd:
        where = "".join(reversed(odd.steps))
        raise Unserialisable(f"{path}{where}", odd.what) from None


def from_plain(value: Any) -> Any:
    """Return the Python value that `to_plain` was given. Raises Unrestorable."""
    try:
        return _restored(value)
    except RecursionError:
        raise Unrestorable("a value is nested too deep") from None


# To plain


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str and value.isascii():
        return value
    to_form = _FORMS.get(kind)
    if to_form is not None:
        return to_form(value, depth)
    return _unusual(value, depth)


def _same(value: Any, _depth: int) -> Any:
    return value


def _text(value: str, _depth: int) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$text": _base64(value.encode("utf-8", "surrogatepass"))}
    return value


def _integer(value: int, _depth: int) -> Any:
    return value if _LEAST_INT <= value <= _MOST_INT else {"$int": hex(value)}


def _number(value: float, _depth: int) -> Any:
    return value if math.isfinite(value) else {"$float": str(value)}


def _mapping(value: dict[Any, Any], depth: int) -> Any:
    _check_depth(depth)
    plain = {}
    for key, inner in value.items():
        try:
            plain[key] = _plain(inner, depth + 1)
        except _Odd as odd:
            odd.steps.append(f"[{key!r}]")
            raise
    if all(map(_is_plain_key, plain)) and not _is_tag(plain):
        return plain
    return {"$dict": [[_key(key, depth), inner] for key, inner in plain.items()]}


def _key(key: Any, depth: int) -> Any:
    try:
        return _plain(key, depth + 1)
    except _Odd as odd:
        odd.steps.append(f" key {key!r}")
        raise


def _is_plain_key(key: Any) -> bool:
    return type(key) is str and (key.isascii() or _text(key, 0) is key)


def _is_tag(value: dict[Any, Any]) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(_TAG)


def _sequence(value: Any, depth: int) -> list[Any]:
    _check_depth(depth)
    plain = []
    for position, inner in enumerate(value):
        try:
            plain.append(_plain(inner, depth + 1))
        except _Odd as odd:
            odd.steps.append(f"[{position}]")
            raise
    return plain


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _Odd(f"is nested deeper than {MAX_DEPTH} levels")


def _unusual(value: Any, depth: int) -> Any:
    if isinstance(value, Enum):
        return {"$enum": [_findable(value), value.name]}
    for base, exact in _BASES:
        if isinstance(value, base):
            return _plain(exact(value), depth)
    if ItemAdapter.is_item(value) and not isinstance(value, dict):
        _check_depth(depth)
        return {"$item": [_findable(value), _fields(value, depth)]}
    raise _Odd(f"is of class {type(value).__name__}")


def _fields(item: Any, depth: int) -> dict[str, Any]:
    fields = {}
    for name, value in ItemAdapter(item).items():
        try:
            fields[name] = _plain(value, depth + 1)
        except _Odd as odd:
            odd.steps.append(f"[{name!r}]")
            raise
    return fields


def _findable(value: Any) -> str:
    name = class_name(type(value))
    if find_class(name) is not type(value):
        raise _Odd(f"is of class {type(value).__name__}, which no module has by that name")
    return name


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


# Parsers and numeric libraries use subclasses of these.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)

_FORMS: dict[type, Callable[[Any, int], Any]] = {
    bool: _same,
    type(None): _same,
    str: _text,
    int: _integer,
    float: _number,
    dict: _mapping,
    list: _sequence,
    tuple: lambda value, depth: {"$tuple": _sequence(value, depth)},
    set: lambda value, depth: {"$set": _sequence(value, depth)},
    frozenset: lambda value, depth: {"$frozenset": _sequence(value, depth)},
    bytes: lambda value, _: {"$bytes": _base64(value)},
    datetime: lambda value, _: {"$datetime": value.isoformat()},
    date: lambda value, _: {"$date": value.isoformat()},
    time: lambda value, _: {"$time": value.isoformat()},
    timedelta: lambda value, _: {
        "$timedelta": [value.days, value.seconds, value.microseconds],
    },
    Decimal: lambda value, _: {"$decimal": str(value)},
    UUID: lambda value, _: {"$uuid": value.hex},
}


# From plain


def _restored(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        if len(value) == 1:
            ((tag, content),) = value.items()
            restore = _TAGS.get(tag)
            if restore is not None:
                return _from_tag(tag, restore, content)
        return {key: _restored(inner) for key, inner in value.items()}
    if kind is list:
        return [_restored(inner) for inner in value]
    return value


def _from_tag(tag: str, restore: Callable[[Any], Any], content: Any) -> Any:
    try:
        return restore(content)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise Unrestorable(f"not a {tag}: {error}") from None


def _item(content: Any) -> Any:
    name, fields = content
    cls = find_class(name)
    if cls is None or issubclass(cls, dict) or not ItemAdapter.is_item_class(cls):
        raise Unrestorable(f"no item class {name!r} is loaded here")
    values = {field: _restored(value) for field, value in fields.items()}
    construct = getattr(cls, "model_construct", None)
    if construct is not None:  # pydantic
        return construct(**values)
    item = cls.__new__(cls)
    if isinstance(item, scrapy.Item):
        scrapy.Item.__init__(item, values)
        return item
    if unknown := set(values) - set(ItemAdapter.get_field_names_from_class(cls) or ()):
        raise Unrestorable(f"item class {name!r} has no field {min(unknown)!r}")
    for field, value in values.items():
        object.__setattr__(item, field, value)
    return item


def _enum(content: Any) -> Any:
    name, member = content
    cls = find_class(name)
    if cls is None or not issubclass(cls, Enum) or member not in cls.__members__:
        raise Unrestorable(f"no enumeration {name!r} with a {member!r} is loaded here")
    return cls.__members__[member]


_TAGS: dict[str, Callable[[Any], Any]] = {
    "$text": lambda content: b64decode(content).decode("utf-8", "surrogatepass"),
    "$int": lambda content: int(content, 16),
    "$float": float,
    "$dict": lambda content: {_restored(key): _restored(value) for key, value in content},
    "$tuple": lambda content: tuple(map(_restored, content)),
    "$set": lambda content: set(map(_restored, content)),
    "$frozenset": lambda content: frozenset(map(_restored, content)),
    "$bytes": b64decode,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$timedelta": lambda content: timedelta(*content),
    "$decimal": Decimal,
    "$uuid": UUID,
    "$item": _item,
    "$enum": _enum,
}
