"""Weighs pickles: how large their values would be if nothing in them were shared.

A pickle may use one part many times. Written out, forty tuples of two can be 2**40 values, and to
hash such a tuple, as the key of a dict, Python walks through all of them. So the instructions are
simulated beforehand, with weights in place of values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_DEPTH = 200
"""The most levels of tuples. Hashing recurses on the C stack for each level, unchecked."""

_ENDLESS = 2**62


class TooHeavy(Exception):
    """A value that is too large to be built."""


class _Weight:
    """The weight of a value: how many values it is made of, and how deep they are nested."""

    __slots__ = ("depth", "size")

    def __init__(self, *parts: _Weight) -> None:
        self.size = self.depth = 1
        for part in parts:
            self.add(part)

    def add(self, part: _Weight) -> None:
        self.size = min(self.size + part.size, _ENDLESS)
        self.depth = max(self.depth, part.depth + 1)


class Scales:
    """Simulates the machine that executes a pickle, with weights on its stack.

    A list or a dict that grows after it was put into something keeps the weight it had then: it
    cannot be hashed, and neither can what contains it.
    """

    def __init__(self, most: int) -> None:
        """`most` limits how many values may be hashed in all, and how many may be in one value."""
        self._left = self._most = most
        self._stack: list[_Weight] = []
        self._marks: list[int] = []
        self._memo: dict[int, _Weight] = {}

    def weigh(self, name: str, argument: Any) -> None:
        """Process one more instruction. Raises TooHeavy; IndexError or KeyError if it makes no
        sense."""
        act = _ACTIONS.get(name)
        if act is not None:
            act(self, argument)
        elif name not in ("PROTO", "FRAME", "STOP"):
            self._stack.append(_Weight())

    def _mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[_Weight]:
        return self._pop(len(self._stack) - self._marks.pop())

    def _pop(self, count: int) -> list[_Weight]:
        first = len(self._stack) - count
        if first < 0:
            raise IndexError("the stack is empty")
        popped = self._stack[first:]
        del self._stack[first:]
        return popped

    def _push(self, parts: list[_Weight]) -> None:
        whole = _Weight(*parts)
        if whole.depth > MAX_DEPTH:
            raise TooHeavy(f"it is nested deeper than {MAX_DEPTH} levels")
        if whole.size > self._most:
            raise TooHeavy("it repeats itself beyond measure")
        self._stack.append(whole)

    def _grow(self, parts: list[_Weight], hashed: list[_Weight]) -> None:
        self._hash(hashed)
        for part in parts:
            self._stack[-1].add(part)

    def _hash(self, parts: list[_Weight]) -> None:
        self._left -= sum(part.size for part in parts)
        if self._left < 0:
            raise TooHeavy("it repeats itself beyond measure")

    def _add_items(self, _: Any) -> None:
        items = self._since_mark()
        self._grow(items, items)

    def _set_items(self, items: list[_Weight]) -> None:
        self._grow(items, items[::2])

    def _frozenset(self, _: Any) -> None:
        items = self._since_mark()
        self._hash(items)
        self._push(items)

    def _reduce(self, _: Any) -> None:
        """Weigh a call: its result may be a set of its arguments."""
        _, arguments = self._pop(2)
        self._hash([arguments])
        self._push([arguments])

    def _memoize(self, place: Any) -> None:
        self._memo[len(self._memo) if place is None else place] = self._stack[-1]

    def _get(self, place: Any) -> None:
        self._stack.append(self._memo[place])


_ACTIONS: dict[str, Callable[[Scales, Any], None]] = {
    "MARK": Scales._mark,
    "TUPLE": lambda scales, _: scales._push(scales._since_mark()),
    "TUPLE1": lambda scales, _: scales._push(scales._pop(1)),
    "TUPLE2": lambda scales, _: scales._push(scales._pop(2)),
    "TUPLE3": lambda scales, _: scales._push(scales._pop(3)),
    "FROZENSET": Scales._frozenset,
    "APPEND": lambda scales, _: scales._grow(scales._pop(1), []),
    "APPENDS": lambda scales, _: scales._grow(scales._since_mark(), []),
    "SETITEM": lambda scales, _: scales._set_items(scales._pop(2)),
    "SETITEMS": lambda scales, _: scales._set_items(scales._since_mark()),
    "ADDITEMS": Scales._add_items,
    "STACK_GLOBAL": lambda scales, _: scales._push(scales._pop(2)),
    "REDUCE": Scales._reduce,
    "MEMOIZE": Scales._memoize,
    "BINPUT": Scales._memoize,
    "LONG_BINPUT": Scales._memoize,
    "BINGET": Scales._get,
    "LONG_BINGET": Scales._get,
}
