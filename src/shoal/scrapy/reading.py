"""Reads the settings of a Scrapy project as numbers, switches and dicts. Errors name the
setting."""

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
    """Return a setting as a whole number, 0 or more. Raises ConfigError."""
    return as_whole_number(name, settings.get(name, default))


def as_whole_number(name: str, value: Any) -> int:
    """Return a value, named `name` in errors, as a whole number, 0 or more. Raises ConfigError."""
    number = _read(name, value, int, "a whole number")
    if number < 0:
        raise ConfigError(f"{name} = {value!r}: not less than 0")
    return number


def number(name: str, value: Any) -> float:
    """Return a value, named `name` in errors, as a number. Raises ConfigError."""
    return _read(name, value, float, "a number")


def switch(settings: BaseSettings, name: str) -> bool:
    """Return a setting as True or False. Raises ConfigError."""
    return _read(name, settings.get(name), lambda _: settings.getbool(name), "True or False")


def mapping(settings: BaseSettings, name: str) -> dict[str, Any]:
    """Return a setting as a dict; it may be written as JSON. Raises ConfigError."""
    return _read(name, settings.get(name), lambda _: settings.getdict(name), "a dict", hide=True)


def loaded(settings: BaseSettings, name: str) -> Any:
    """Return the object whose import path a setting gives. Raises ConfigError."""
    try:
        return load_object(settings[name])
    except (ImportError, NameError, ValueError, TypeError) as error:
        raise ConfigError(f"{name} = {settings[name]!r}: {error}") from None


def filled(name: str, pattern: Any, values: Mapping[str, Any]) -> str:
    """Return the name of a Redis key with values such as the spider's name filled in:
    `%(name)s:items`. Raises ConfigError."""
    try:
        text: str = pattern % values
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{name} = {pattern!r}: cannot be filled in: {error}") from None
    return text


def say_at_the_end(message: str) -> None:
    """Write a message to stderr when the process ends: after everything that Scrapy prints when
    something does not open."""
    # Looks up stderr only then: it may have been replaced.
    atexit.register(lambda: sys.stderr.write(f"shoal: {one_line(message)}\n"))


def _read(name: str, value: Any, read: Callable[[Any], T], what: str, *, hide: bool = False) -> T:
    """Return what `read` makes of a value. Raises ConfigError; with `hide` its message does not
    show the value, which may hold a password."""
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError):
        shown = "" if hide else f" = {value!r}"
        raise ConfigError(f"{name}{shown}: not {what}") from None
