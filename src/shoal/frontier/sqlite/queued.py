"""A task that waits, as it is read to be handed out."""

from __future__ import annotations

import msgspec


class Queued(msgspec.Struct, array_like=True):
    """In the order of the query `best_tasks`."""

    id: int
    fingerprint: int
    attempts: int
    payload: str
