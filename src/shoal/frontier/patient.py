"""A frontier, or a part of it, whose every call waits for as long as the store is away."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any, TypeVar, cast

from shoal.frontier.board import Notes
from shoal.frontier.port import Overview
from shoal.runtime.patience import patiently

PartT = TypeVar("PartT", bound=Overview)


def patient(frontier: PartT) -> PartT:
    """The same part of the same frontier: a call that would raise StorageBusy is made again until
    the store answers. Not for `lease` and `exchange`: meanwhile a worker may want other work."""
    return cast(PartT, _Patient(frontier))


class _Patient:
    """Has the methods of a store, by their names."""

    def __init__(self, store: Any) -> None:
        self._store = store

    @property
    def notes(self) -> Notes:
        return cast(Notes, _Patient(self._store.notes))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not callable(method):
            return method

        def call(*args: Any, **options: Any) -> Awaitable[Any]:
            return patiently("frontier", partial(method, *args, **options))

        return call
