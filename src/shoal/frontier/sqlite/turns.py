"""Reserves the extra turns that a login needs, beside the one that its lease has reserved."""

from __future__ import annotations

from shoal.core.exits import Lent
from shoal.frontier.sqlite.step import Step


def take_turn(current: Step, host_name: str, lent: Lent | None) -> float:
    """Reserve a turn at a host by the clocks of host and exit.

    Returns 0, or how many seconds to wait before asking again; nothing is reserved then.
    """
    host = current.hosts_named([host_name])[host_name]
    wait_s = host.next_at - current.now
    exit_ = current.exits.exit(lent.exit) if lent is not None and lent.exit else None
    if exit_ is not None:
        exits = current.exits
        pair = exits.pair(host_name, exit_)
        wait_s = max(wait_s, max(exit_.next_at, pair.next_at if pair else 0.0) - exits.now)
    if wait_s > 0:
        return wait_s
    host.next_at = current.now + current.interval_of(host)
    if exit_ is not None:
        current.exits.reserve(exit_, host_name)
    return 0.0
