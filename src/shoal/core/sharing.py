"""How the room of a host is shared among workers. Pure; lua/sharing.lua says the same.

A worker that wants more of a host than there is room for takes part in sharing it. Its share is how
many requests it may have in flight there; the leases themselves take no room. So pages that were
answered and wait to be saved take none, and tasks can be handed out ahead.
"""

from __future__ import annotations

from typing import NamedTuple

TURN_S = 1.0
"""What cannot be divided evenly goes round so often: the rest of a division, or a host that has
less room than there are workers."""

WANT_S = 1.0
"""A worker that wants a share and has none is counted among those who do for so long."""

SHARE_WAIT_S = 0.05
"""A worker that was given nothing because others have all the room asks again after so long: they
are told with their next question to make room."""

AHEAD_PER_SHARE = 8
"""Tasks handed out ahead at most, per request that a worker may have in flight at the host."""


class Share(NamedTuple):
    """What a worker has of a host's room."""

    told: int
    """How many requests it may have in flight from now on."""
    counted: int
    """What that takes of the room: those that are in flight count until they are answered."""


def fair_share(room: int, workers: int, index: int, now: float) -> int:
    """What the worker of this index gets of a host's room, if all of them want some."""
    evenly, rest = divmod(room, workers)
    turn = int(now // TURN_S)
    return evenly + ((index + turn) % workers < rest)


def share_of(target: int, left: int, in_flight: int) -> Share:
    """The share of a worker that is to have `target`, where others leave so much of the room."""
    told = max(min(target, left), 0)
    return Share(told, max(told, in_flight))
