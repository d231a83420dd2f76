"""Arguments: values that a spider gets when a crawl begins, `-a category=books`.

They are the annotated attributes of the user's classes: `limit: int = 10`. One without a value is
required. The given values are kept with the rules of the crawl, as JSON, so every worker has them.
Whoever can write to the frontier can change them, so each worker checks them against the
annotations of its own spider and refuses unknown names.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime, time
from functools import cache
from types import FunctionType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect as types

from shoal.config import SETTINGS
from shoal.core.addresses import without_credentials
from shoal.core.fields import SWITCH_WORDS, checked
from shoal.core.near_names import no_such
from shoal.errors import ConfigError
from shoal.spider.spider import Spider

MAX_BYTES = 16_384
"""The maximum size of all arguments of a crawl, as JSON."""
MAX_SHOWN = 200

_SINGLE = (
    *(types.BoolType, types.IntType, types.FloatType, types.StrType, types.NoneType),
    *(types.LiteralType, types.EnumType, types.DateType, types.TimeType, types.DateTimeType),
    *(types.TimeDeltaType, types.DecimalType, types.UUIDType),
)
_LISTS = (list, tuple, set, frozenset)
_EXAMPLES = {datetime: "2026-01-31T12:00:00Z", date: "2026-01-31", time: "12:00:00"}
"""How to write moments."""
_NOTHING = inspect.Parameter.empty


class Argument(msgspec.Struct, frozen=True):
    """One argument of a spider."""

    name: str
    type: Any
    default: Any = _NOTHING

    @property
    def is_required(self) -> bool:
        """Whether it has no default value."""
        return self.default is _NOTHING

    def read(self, value: Any) -> Any:
        """The value for a text that a user wrote, or for stored JSON. Raises ConfigError."""
        form = msgspec.defstruct("Given", [(self.name, self.type)])
        try:
            made = checked({self.name: self._from_text(value)}, form, strict=False)
        except ConfigError as error:
            kinds = set(_kinds(self.type))
            examples = [written for kind, written in _EXAMPLES.items() if kind in kinds]
            if not examples:
                raise
            message = f"{self.name}: write it as {examples[0]}, not {value!r:.80}"
            raise ConfigError(message) from error
        return getattr(made, self.name)

    def _from_text(self, value: Any) -> Any:
        kinds = set(_kinds(self.type))
        is_list = not kinds.isdisjoint(_LISTS)
        if isinstance(value, list) and not is_list:
            raise ConfigError(f"{self.name}: takes one value, not several")
        if not isinstance(value, str) or str in kinds:
            return value
        if bool in kinds:
            return SWITCH_WORDS.get(value.lower(), value)
        if value[:1] in ("[", "{") and (is_list or dict in kinds):
            return self._from_json(value)
        return [part.strip() for part in value.split(",") if part.strip()] if is_list else value

    def _from_json(self, text: str) -> Any:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self.name}: not JSON: {error}") from None


def _arguments_of(spider: type) -> dict[str, Argument]:
    """The arguments of a spider, by name: its annotated attributes, except settings, attributes of
    every spider, and attributes that its methods assign."""
    found: dict[str, Argument] = {}
    own = [cls for cls in reversed(spider.__mro__) if cls not in Spider.__mro__]
    for cls in own:
        for name, hint in inspect.get_annotations(cls).items():
            if not _is_taken(name) and (kind := _type_of(cls, name, hint)) is not None:
                found[name] = Argument(name, kind)
    assigned = {name for cls in own for name in _assigned_in(cls)} if found else set()
    return {
        name: Argument(name, argument.type, default)
        for name, argument in found.items()
        if name not in assigned
        and not hasattr(default := inspect.getattr_static(spider, name, _NOTHING), "__get__")
    }


arguments_of: Callable[[type], dict[str, Argument]] = cache(_arguments_of)


def no_argument(name: str, known: Collection[str]) -> str:
    """A message that there is no argument of this name, and what to write instead."""
    if not known:
        return f"no arguments: declare them in its class, for instance {name[:MAX_SHOWN]}: str"
    return no_such("argument", name, known)


def read_arguments(spider: type[Spider], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values, converted to the types of the arguments. Raises ConfigError, also if a
    required argument is missing."""
    known, name = arguments_of(spider), spider.__name__
    for unknown in given.keys() - known.keys():
        raise ConfigError(f"{name} has {no_argument(unknown, known)}")
    for argument in known.values():
        if argument.is_required and argument.name not in given:
            raise ConfigError(f"{name} needs an argument: -a {argument.name}=...")
    values = {}
    for argument_name, value in given.items():
        try:
            values[argument_name] = known[argument_name].read(value)
        except ConfigError as error:
            raise ConfigError(f"{name}: argument {error}") from None
    return values


def as_json(spider: type[Spider], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given values, checked, as they are kept with the crawl. Raises ConfigError."""
    kept = msgspec.to_builtins(read_arguments(spider, given))
    if len(msgspec.json.encode(kept)) > MAX_BYTES:
        raise ConfigError(f"the arguments are longer than {MAX_BYTES:,} bytes")
    return {name: kept[name] for name in sorted(kept)}


def unlike(spider: type[Spider], kept: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether the given values differ from those that the crawl has kept. Missing values are the
    defaults of the class; a required argument that the crawl has not kept may have any value."""
    known = arguments_of(spider)
    now = read_arguments(spider, given)
    was = {name: known[name].read(value) for name, value in kept.items() if name in known}
    for argument in known.values():
        name, default = argument.name, argument.default
        if (name in was or not argument.is_required) and was.get(name, default) != now.get(
            name, default
        ):
            return True
    return False


def shown(args: Mapping[str, Any]) -> str:
    """Arguments, for people: `category=books, limit=50`. Values that look like passwords are
    hidden."""
    pairs = (f"?{name}={_plain(value)}" for name, value in args.items())
    text = ", ".join(without_credentials(each)[1:] for each in pairs) or "nothing"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_plain, value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_taken(name: str) -> bool:
    is_ours = hasattr(Spider, name) or name in Spider.__annotations__
    return name.startswith("_") or name in SETTINGS or is_ours


def _type_of(cls: type, name: str, hint: Any) -> Any:
    """The type of an attribute. None: it is a ClassVar, it is not known yet, or its values cannot
    be given as arguments."""
    module = sys.modules.get(cls.__module__)
    noted: Any = SimpleNamespace(__annotations__={name: hint})
    names = vars(module) if module else {}
    try:
        kind = get_type_hints(noted, names, dict(vars(cls)), include_extras=True)[name]
        return kind if _can_be_told(types.type_info(kind)) else None
    except Exception:  # Evaluating an annotation may raise anything.
        return None


def _can_be_told(info: types.Type) -> bool:
    match info:
        case types.Metadata():
            return _can_be_told(info.type)
        case types.UnionType():
            return all(map(_can_be_told, info.types))
        case types.ListType() | types.SetType() | types.FrozenSetType() | types.VarTupleType():
            return _can_be_told(info.item_type)
        case types.TupleType():
            return all(map(_can_be_told, info.item_types))
        case types.DictType():
            return _can_be_told(info.key_type) and _can_be_told(info.value_type)
    return isinstance(info, _SINGLE)


def _kinds(hint: Any) -> Iterator[Any]:
    """The types that a value may have."""
    if get_origin(hint) is Annotated:
        yield from _kinds(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for inner in get_args(hint):
            yield from _kinds(inner)
    else:
        yield get_origin(hint) or hint


def _assigned_in(cls: type) -> Iterator[str]:
    """The attributes that the methods of a class assign: its state, not its arguments."""
    for method in vars(cls).values():
        if isinstance(method, FunctionType):
            for step in dis.get_instructions(method):
                if step.opname == "STORE_ATTR":
                    yield step.argval
