"""Decides how the room of a host is shared among workers. Pure; lua/sharing.lua does the same.

The room of a host is the number of requests that may be in flight there. Workers that want more of
it than there is share it. A worker's share limits its requests in flight. Leases alone take no
room: neither do pages that were answered and wait to be saved, and tasks can be handed out ahead.
"""

from __future__ import annotations

from typing import NamedTuple

TURN_S = 1.0
"""How often shares rotate where the room cannot be divided evenly: the remainder of the division,
or all of it if there is less room than workers."""

WANT_S = 1.0
"""How long a worker that wants a share and has none is counted among those that want one."""

SHARE_WAIT_S = 0.05
"""When a worker that got nothing, because others have all the room, asks again. The others are told
to make room the next time they ask."""

AHEAD_PER_SHARE = 8
"""Tasks handed out ahead at most, for each request that a worker may have in flight at the host."""


class Share(NamedTuple):
    """A worker's share of a host's room."""

    told: int
    """How many requests the worker may have in flight from now on."""
    counted: int
    """How much room the share takes: requests in flight count until they are answered, even if the
    share has shrunk below them."""


def fair_share(room: int, workers: int, index: int, now: float) -> int:
    """What the worker of this index gets of a host's room if all `workers` want a share."""
    evenly, rest = divmod(room, workers)
    turn = int(now // TURN_S)
    return evenly + ((index + turn) % workers < rest)


def share_of(target: int, left: int, in_flight: int) -> Share:
    """The share of a worker that should get `target`, where the others leave `left` of the room."""
    told = max(min(target, left), 0)
    return Share(told, max(told, in_flight))
