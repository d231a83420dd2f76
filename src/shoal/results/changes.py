"""Compares the items of two crawls (`shoal diff`): new, changed and gone.

Both come sorted by kind and key, so one pass over both is enough, and nothing is kept in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import suppress
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from shoal.core.records import StoredItem
from shoal.results.fields import Fields, fields_of

_exact = msgspec.json.Decoder(float_hook=Decimal).decode


class Change(StrEnum):
    """How an item differs between the earlier and the later crawl."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


class Changed(msgspec.Struct, frozen=True):
    """One item that differs between two crawls."""

    change: Change
    item: StoredItem
    """The item of the later crawl; if it is gone, that of the earlier one."""
    before: Fields
    """The fields in the earlier crawl: if the item changed, only those that differ. Empty for a new
    item."""
    after: Fields
    """The fields in the later crawl: if the item changed, only those that differ. Empty for an item
    that is gone."""

    def fields(self) -> list[str]:
        """The names of the fields, those of the later crawl first."""
        return list(self.after | self.before)


class Comparison:
    """Compares two crawls. `counts` and `same` are complete once `changes` is exhausted."""

    def __init__(
        self,
        earlier: AsyncIterator[StoredItem],
        later: AsyncIterator[StoredItem],
        ignored: Collection[str] = (),
    ) -> None:
        self._earlier = earlier
        self._later = later
        self._ignored = frozenset(ignored)
        self.counts = dict.fromkeys(Change, 0)
        self.same = 0

    @property
    def compared(self) -> int:
        """How many distinct items were compared."""
        return self.same + sum(self.counts.values())

    async def changes(self) -> AsyncIterator[Changed | None]:
        """Stream the difference of every item, by kind and key; None for an unchanged item."""
        before, after = await anext(self._earlier, None), await anext(self._later, None)
        while before or after:
            place = min(_place(item) for item in (before, after) if item)
            old = before if before and _place(before) == place else None
            new = after if after and _place(after) == place else None
            yield self._counted(_change_of(old, new, self._ignored))
            if old:
                before = await anext(self._earlier, None)
            if new:
                after = await anext(self._later, None)

    def _counted(self, changed: Changed | None) -> Changed | None:
        if changed is None:
            self.same += 1
        else:
            self.counts[changed.change] += 1
        return changed


def _place(item: StoredItem) -> tuple[str, str]:
    return item.kind, item.key


def _change_of(
    old: StoredItem | None, new: StoredItem | None, ignored: Collection[str]
) -> Changed | None:
    if old and new:
        return _between(old, new, ignored)
    if new:
        return Changed(Change.NEW, new, {}, fields_of(new.data))
    return Changed(Change.GONE, old, fields_of(old.data), {}) if old else None


def _between(old: StoredItem, new: StoredItem, ignored: Collection[str]) -> Changed | None:
    if old.data == new.data:
        return None
    before, after = fields_of(old.data), fields_of(new.data)
    differing = set(_differing(before, after)).difference(ignored)
    if not differing:
        return None
    return Changed(Change.CHANGED, new, _only(before, differing), _only(after, differing))


def _only(fields: Fields, names: Collection[str]) -> Fields:
    return {name: value for name, value in fields.items() if name in names}


def _differing(before: Fields, after: Fields) -> Iterator[str]:
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if old is None or new is None or not same_value(bytes(old), bytes(new)):
            yield name


def same_value(one: bytes, other: bytes) -> bool:
    """Whether two JSON texts have the same value. Stores may write a value in another form: 100
    for 1e2, or the fields of an object in another order."""
    if one == other:
        return True
    with suppress(msgspec.DecodeError, RecursionError, ArithmeticError):
        return _alike(_exact(one), _exact(other))
    return False


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other  # In Python, True == 1.
    return bool(one == other)
