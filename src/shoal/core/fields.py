"""Describes the fields of a struct by their types, and checks values that users write.

Besides the limits that msgspec knows, `Meta(extra=...)` of a type may have the fields of `Field`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from math import isfinite
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from shoal.core.near_names import no_such
from shoal.errors import BadField, ConfigError

_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "yes or no"}
_LIMITS = {
    "ge": "at least {}",
    "gt": "more than {}",
    "le": "at most {}",
    "lt": "less than {}",
    "min_length": "not empty",
    "max_length": "at most {} long",
}
_MISSING = "missing required"
_KEY = re.compile(rf"Object (?:has |contains )?({_MISSING}|unknown) field `(.*)`", re.DOTALL)
"""How msgspec says that a key is not there, or that it knows of none."""
SWITCH_WORDS = {"yes": True, "on": True, "no": False, "off": False}

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Field(msgspec.Struct, kw_only=True, frozen=True):
    """One field of a struct, as its type describes it."""

    name: str
    default: Any
    type: Any
    """Without None and without limits: bool, int, float, str, tuple[str, ...], a Literal."""
    description: str = ""
    check: Callable[[Any], object] | None = None
    """Raises ConfigError for a value that nobody may set. Stored values are not checked."""
    is_secret: bool = False
    """Whether its value must never be shown."""
    is_in_files: bool = False
    """Whether an environment variable may name a file with the value."""
    stands_for: str = ""
    """The placeholder for its value in help texts, if type and name do not give a good one."""
    unset: str = ""
    """What applies if it is not set, in words, if the description does not say so."""
    limits: str = ""
    """The limits that its type sets, in words: `, at least 1`."""

    @property
    def is_list(self) -> bool:
        """Whether it takes any number of values."""
        return get_origin(self.type) is tuple

    @property
    def choices(self) -> tuple[str, ...]:
        """All values that it can have, if they can be listed; otherwise empty."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def wanted(self) -> str:
        """What a value must be, in words. Empty if that cannot be said simply."""
        kind = "a list of texts" if self.is_list else _KINDS.get(self.type, "")
        return f"{kind}{self.limits}" if kind else ""

    def from_text(self, value: Any) -> Any:
        """Convert a value written as text: a list separated by commas, a switch as a word."""
        if isinstance(value, str) and self.is_list:
            return [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str) and self.type is bool:
            return SWITCH_WORDS.get(value.lower(), value)
        return value


def at_most(most: int) -> Callable[[int], None]:
    """A check for a limit introduced later: stored values may exceed it."""

    def check(value: int) -> None:
        if value > most:
            raise ConfigError(f"{value} is more than {most}")

    return check


@cache
def fields_of(struct: type[msgspec.Struct]) -> dict[str, Field]:
    """The fields of a struct, by name."""
    hints = get_type_hints(struct, include_extras=True)
    return {info.name: _field(info, hints[info.name]) for info in msgspec.structs.fields(struct)}


def _field(info: msgspec.structs.FieldInfo, hint: Any) -> Field:
    bare, metas = _unwrapped(hint)
    said: dict[str, Any] = {}
    for meta in metas:
        said |= meta.extra or {}
        if meta.description:
            said["description"] = meta.description
    limits = "".join(_limits(meta) for meta in metas)
    return Field(name=info.name, default=info.default, type=bare, limits=limits, **said)


def _limits(meta: Meta) -> str:
    given = {name: getattr(meta, name) for name in _LIMITS if getattr(meta, name) is not None}
    return "".join(f", {_LIMITS[name].format(limit)}" for name, limit in given.items())


def _unwrapped(hint: Any) -> tuple[Any, list[Meta]]:
    """A type without None, and its annotations."""
    args = get_args(hint)
    if get_origin(hint) is Annotated:
        bare, metas = _unwrapped(args[0])
        return bare, [*args[1:], *metas]
    if NoneType in args:
        return _unwrapped(next(arg for arg in args if arg is not NoneType))
    return hint, []


def checked(values: Any, struct: type[Struct], *, strict: bool = True) -> Struct:
    """Make a struct from values that users wrote. Raises ConfigError: one line with the field."""
    try:
        made = msgspec.convert(values, struct, strict=strict)
    except msgspec.ValidationError as error:
        raise explained(error, values, struct) from None
    for field in fields_of(struct).values():
        _check(field, getattr(made, field.name))
    return made


def _check(field: Field, value: Any) -> None:
    if isinstance(value, float) and not isfinite(value):  # Stored as JSON, which has none.
        raise BadField(field.name, f"{field.name}: {value} is not finite")
    if field.check is None or value is None:
        return
    try:
        field.check(value)
    except ConfigError as error:
        raise BadField(field.name, f"{field.name}: {error}") from None


def explained(
    error: msgspec.ValidationError, values: Any, struct: type[msgspec.Struct]
) -> ConfigError:
    """What is wrong with the values, in one line. msgspec's messages name types and list no
    choices."""
    reason, _, where = str(error).partition(" - at `$.")
    path = where.rstrip("`")
    field = fields_of(struct).get(path.partition("[")[0])
    if field is None:
        reason = _in_words(reason, struct)
        return ConfigError(f"{path}: {reason}" if path else reason)
    mistake = _mistake(field, values[field.name]) or f"{path}: {_in_words(reason)}"
    return BadField(field.name, mistake)


def _in_words(reason: str, struct: type[msgspec.Struct] | None = None) -> str:
    """What is wrong with the keys of a table, as people say it; with what was meant, if it is known
    which there are."""
    found = _KEY.fullmatch(reason)
    if found is None:
        return reason
    what, name = found.groups()
    if what == _MISSING:
        return f"{name} is missing"
    if struct is None:
        return f"no key {name!r:.80}"
    return no_such("key", name, [info.encode_name for info in msgspec.structs.fields(struct)])


def _mistake(field: Field, value: Any) -> str:
    if field.choices:
        return f"{field.name}: {value!r} is none of {', '.join(field.choices)}"
    if field.type is str and field.check and isinstance(value, int | float):
        try:  # A number instead of text: the field's own check explains best what to write.
            field.check(str(value))
        except ConfigError as error:
            return f"{field.name}: {error}"
    return f"{field.name} must be {field.wanted}" if field.wanted else ""
