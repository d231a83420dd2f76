"""A safe unpickler: reads what scrapy-redis pickled, without running any of it.

A pickle is a program. This unpickler lets it build plain data and nothing else: its instructions
are checked before the first one is executed, and it can only call what makes dates, numbers and
sets.
"""

from __future__ import annotations

import datetime
import decimal
import io
import pickle
import pickletools
from typing import Any

from shoal.errors import ShoalError
from shoal.scrapy.migration.weighing import Scales, TooHeavy

MOST_BYTES = 64 * 2**20

_INSTRUCTIONS = frozenset(
    [
        *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE"),
        *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
        *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_DICT", "SETITEM", "SETITEMS"),
        *("EMPTY_SET", "ADDITEMS", "FROZENSET"),
        *("MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
        *("GLOBAL", "STACK_GLOBAL", "REDUCE"),
    ]
)
_CALLABLE = {
    ("datetime", "date"): datetime.date,
    ("datetime", "datetime"): datetime.datetime,
    ("datetime", "timedelta"): datetime.timedelta,
    ("datetime", "timezone"): datetime.timezone,
    ("decimal", "Decimal"): decimal.Decimal,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
}
_GROWTH = 10
"""A value that is larger than its pickle by more than this factor repeats itself on purpose."""


class BadPickle(ShoalError):
    """Not the plain data of a request. None of the pickle was executed."""


def load(data: bytes) -> Any:
    """Return the plain data in a pickle. Raises BadPickle."""
    try:
        _check_instructions(data)
        value = _Unpickler(io.BytesIO(data)).load()
        _check_size(value, _GROWTH * len(data))
    except BadPickle:
        raise
    except Exception as error:  # A pickle can make the unpickler raise anything.
        raise BadPickle(f"not a pickle: {error or type(error).__name__}") from None
    return value


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _CALLABLE[module, name]
        except KeyError:
            raise BadPickle(f"a pickle that wants {module}.{name}") from None

    def persistent_load(self, _pid: Any) -> Any:
        raise BadPickle("a pickle that refers to something outside")


def _check_instructions(data: bytes) -> None:
    if len(data) > MOST_BYTES:
        raise BadPickle(f"longer than {MOST_BYTES} bytes")
    scales = Scales(_GROWTH * len(data))
    for instruction, argument, _ in pickletools.genops(data):
        if instruction.name not in _INSTRUCTIONS:
            raise BadPickle(f"a pickle with a {instruction.name}")
        # The unpickler would allocate a memo of this size.
        if instruction.name == "LONG_BINPUT" and int(argument or 0) > len(data):
            raise BadPickle("a pickle with a memo of gigabytes")
        try:
            scales.weigh(instruction.name, argument)
        except TooHeavy as error:
            raise BadPickle(f"a pickle of a value that is not worth it: {error}") from None


def _check_size(value: Any, most: int) -> None:
    left = [value]
    count = 0
    while left:
        inner = left.pop()
        count += 1
        if count > most:
            raise BadPickle("a pickle that repeats itself beyond measure")
        if isinstance(inner, dict):
            left += inner.keys()
            left += inner.values()
        elif isinstance(inner, list | tuple | set | frozenset):
            left += inner
