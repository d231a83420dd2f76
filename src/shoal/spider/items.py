"""Items: typed records, their keys, and their validation before they are stored."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, dataclass_transform

import msgspec

from shoal.core.records import SHOWN_CHARACTERS, RejectedItem, StoredItem
from shoal.errors import ConfigError, ShoalError

KEY_DIGEST_BYTES = 16


class InvalidItem(ShoalError):
    """An item that cannot be stored, and why."""


@dataclass_transform()
class Item:
    """The base class of typed records. Subclasses are dataclasses: annotate fields, name the key.

        class Product(Item, key="sku"):       # or key=("shop", "sku")
            sku: str
            price: float

    Two items of one class with the same key are one record, and the newest scrape wins. Without a
    key, an item is identified by its content.
    """

    __key__: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, *, key: str | Sequence[str] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(cls)
        if key is not None:
            cls.__key__ = _checked_key(cls, key)


def _checked_key(cls: type, key: str | Sequence[str]) -> tuple[str, ...]:
    names = key_names(key)
    fields = {field.name for field in dataclasses.fields(cls)}
    missing = [name for name in names if name not in fields]
    if missing or not names:
        raise ConfigError(
            f"{cls.__name__}: key= must name fields, not {', '.join(missing) or '()'}"
        )
    return names


def key_names(key: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the fields of a key, which a user may write as one name or several."""
    return (key,) if isinstance(key, str) else tuple(key)


class _Form(msgspec.Struct, frozen=True):
    """How items of one class are checked and stored. Made once per class."""

    kind: str
    key: tuple[str, ...]
    check: Callable[[bytes], object]
    """Raises if the JSON does not match the class's annotations."""
    builtins: Callable[[Any], Any]
    """Returns what to encode: the item itself if msgspec knows its class."""


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def is_item_class(cls: type) -> bool:
    """Whether objects of this class are items: dicts, dataclasses, Structs, attrs, pydantic."""
    return (
        issubclass(cls, dict | msgspec.Struct)
        or dataclasses.is_dataclass(cls)
        or hasattr(cls, "__attrs_attrs__")
        or hasattr(cls, "model_dump")
    )


def store_form(
    item: Any, *, url: str, fingerprint: bytes, scraped_at: float, key: Sequence[str] = ()
) -> StoredItem | RejectedItem:
    """The item as it is stored or, if it is invalid, as it is rejected. Never raises.

    `key` names the fields of its key if its class does not.
    """
    try:
        kind, key_text, data = _checked(item, key)
    except Exception as error:  # An item's own code runs here and may raise anything.
        return RejectedItem(
            kind=kind_of(type(item)),
            data=_shown(item),
            reason=_reason(error),
            url=url,
            fingerprint=fingerprint,
            scraped_at=scraped_at,
        )
    return StoredItem(
        kind=kind, key=key_text, data=data, url=url, fingerprint=fingerprint, scraped_at=scraped_at
    )


def _checked(item: Any, named_key: Sequence[str]) -> tuple[str, str, bytes]:
    """The kind, the key and the JSON of a valid item."""
    form = _form(type(item))
    content = form.builtins(item)
    data = _encode(content)
    # msgspec writes NaN and infinity as null, so they are only looked for if there is a null.
    if b"null" in data:
        _reject_non_finite(msgspec.to_builtins(content), "")
    form.check(data)
    if names := form.key or named_key:
        return form.kind, _key_text([_field(item, name) for name in names], names), data
    digest = hashlib.blake2b(_encode_sorted(content), digest_size=KEY_DIGEST_BYTES)
    return form.kind, digest.hexdigest(), data


def _make_form(cls: type) -> _Form:
    if not is_item_class(cls):
        raise InvalidItem(f"{cls.__name__} is not an item: use an Item, a dict or a dataclass")
    if issubclass(cls, dict):
        return _Form(kind_of(cls), (), _any_object, _with_text_keys)
    key = key_names(getattr(cls, "__key__", None) or ())
    if hasattr(cls, "model_dump"):
        return _Form(kind_of(cls), key, _any_object, _pydantic_dump)
    return _Form(kind_of(cls), key, _checker(cls), _itself)


_form: Callable[[type], _Form] = cache(_make_form)


def kind_of(cls: type) -> str:
    """The kind under which items of a class are stored."""
    return "item" if issubclass(cls, dict) else cls.__name__


def _checker(cls: type) -> Callable[[bytes], object]:
    if getattr(getattr(cls, "__struct_config__", None), "array_like", False):
        raise InvalidItem(f"{cls.__name__} is array_like, so it has no field names to store")
    try:
        return msgspec.json.Decoder(cls).decode
    except Exception as error:  # Annotations are code, so resolving them may raise anything.
        raise InvalidItem(f"{cls.__name__} cannot be checked: {error}") from None


def _itself(item: Any) -> Any:
    return item


def _any_object(_data: bytes) -> None:
    """Accept anything: a dict has no annotations, and pydantic has already checked its own."""


def _with_text_keys(item: dict[Any, Any]) -> dict[Any, Any]:
    for name in item:
        if not isinstance(name, str):
            raise InvalidItem(f"field names must be text, not {name!r}")
    return item


def _pydantic_dump(item: Any) -> Any:
    # If a model was changed after its validation, pydantic only warns. Here that is an error.
    content = item.model_dump(mode="json", warnings="error")
    if not isinstance(content, dict):
        raise InvalidItem("a model must dump to an object")
    return content


def _reject_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidItem(f"{path.lstrip('.')}: {value} is not a finite number")
    if isinstance(value, dict):
        for name, inner in value.items():
            _reject_non_finite(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            _reject_non_finite(inner, f"{path}[{position}]")


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _key_text(values: list[Any], names: Sequence[str]) -> str:
    for name, value in zip(names, values, strict=True):
        if value is None or value == "":
            raise InvalidItem(f"{name}: the key is empty")
    if len(values) > 1:
        return _encode(values).decode()
    value = values[0]
    return value if type(value) is str else str(msgspec.to_builtins(value))


def _reason(error: Exception) -> str:
    if isinstance(error, InvalidItem):
        return str(error)
    if isinstance(error, msgspec.ValidationError):
        reason, _, where = str(error).partition(" - at `$")
        return f"{where.strip('.`')}: {reason}" if where else reason
    return f"{type(error).__name__}: {error}"


def _shown(item: Any) -> str:
    """The item for people, as JSON if possible, else as its repr."""
    try:
        return _encode(item).decode()[:SHOWN_CHARACTERS]
    except Exception:  # What made it invalid may also make it unprintable.
        return _safe_repr(item)


def _safe_repr(item: Any) -> str:
    try:
        return repr(item)[:SHOWN_CHARACTERS]
    except Exception:  # Its repr is its own code.
        return f"<{type(item).__name__}>"
