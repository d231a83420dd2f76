"""A waiting task as read for handing out."""

from __future__ import annotations

import msgspec


class Queued(msgspec.Struct, array_like=True):
    """A row of the query `best_tasks`, in its column order."""

    id: int
    fingerprint: int
    attempts: int
    payload: str
