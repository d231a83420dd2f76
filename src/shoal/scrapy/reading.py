"""Reading the settings of a Scrapy project: as numbers, switches, dicts; what is wrong is named."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from shoal.core.plaintext import one_line
from shoal.errors import ConfigError

T = TypeVar("T")


def whole_number(settings: BaseSettings, name: str, default: Any = 0) -> int:
    """A setting as a whole number, 0 or more. Raises ConfigError."""
    return as_whole_number(name, settings.get(name, default))


def as_whole_number(name: str, value: Any) -> int:
    """A value, given under this name, as a whole number, 0 or more. Raises ConfigError."""
    number = _read(name, value, int, "a whole number")
    if number < 0:
        raise ConfigError(f"{name} = {value!r}: not less than 0")
    return number


def number(name: str, value: Any) -> float:
    """A value, given under this name, as a number. Raises ConfigError."""
    return _read(name, value, float, "a number")


def switch(settings: BaseSettings, name: str) -> bool:
    """A setting as True or False. Raises ConfigError."""
    return _read(name, settings.get(name), lambda _: settings.getbool(name), "True or False")


def mapping(settings: BaseSettings, name: str) -> dict[str, Any]:
    """A setting as a dict; it may be written as JSON. Raises ConfigError."""
    return _read(name, settings.get(name), lambda _: settings.getdict(name), "a dict", hide=True)


def loaded(settings: BaseSettings, name: str) -> Any:
    """The object whose import path a setting gives. Raises ConfigError."""
    try:
        return load_object(settings[name])
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigError(f"{name} = {settings[name]!r}: {error}") from None


def filled(name: str, pattern: Any, values: Mapping[str, Any]) -> str:
    """The name of a Redis key, with the spider's name filled in: `%(name)s:items`. Raises
    ConfigError."""
    try:
        text: str = pattern % values
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{name} = {pattern!r}: cannot be filled in: {error}") from None
    return text


def say_at_the_end(message: str) -> None:
    """Write a message to stderr when the process ends, after all that Scrapy says when something
    does not open."""
    # Whatever stderr is by then.
    atexit.register(lambda: sys.stderr.write(f"shoal: {one_line(message)}\n"))


def _read(name: str, value: Any, read: Callable[[Any], T], what: str, *, hide: bool = False) -> T:
    """`hide` is for values that may hold a password."""
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError):
        shown = "" if hide else f" = {value!r}"
        raise ConfigError(f"{name}{shown}: not {what}") from None
