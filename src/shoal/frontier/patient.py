"""Wraps a frontier, or a part of it, so that every call waits until its store can be reached."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any, TypeVar, cast

from shoal.frontier.board import Notes
from shoal.frontier.port import Overview
from shoal.runtime.patience import patiently

PartT = TypeVar("PartT", bound=Overview)


def patient(frontier: PartT) -> PartT:
    """Wrap a part of a frontier: a call that would raise StorageBusy is repeated until the store
    answers. Not for `lease` and `exchange`: by then, a worker may want other work."""
    return cast(PartT, _Patient(frontier))


class _Patient:
    """Passes each method call on to a store, patiently."""

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
