"""Stores the states of alerts as notes in the frontier, for queries and for the next leader.

The stored topics:

    alerts       ALERT/CRAWL -> AlertState         pending, firing, or resolved but still owed
    alerts-past  MOMENT ALERT/CRAWL -> AlertState  the last 200 that were resolved
    alerts-look  last -> Look                      when a leader last looked
"""

from __future__ import annotations

import msgspec

from shoal.alerts.conditions import ALL
from shoal.alerts.states import AlertState
from shoal.coordinator.runs import LeaderNotes, Moment
from shoal.frontier.board import Notes, read, read_all

NOW = "alerts"
PAST = "alerts-past"
LOOK = "alerts-look"
LAST = "last"
MOST_PAST = 200


class Look(msgspec.Struct):
    """When a leader looked at all crawls."""

    at: Moment


async def alerts_now(notes: Notes) -> list[AlertState]:
    """Alerts that are pending, firing, or just resolved, the latest first."""
    states = (await states_of(notes)).values()
    return sorted(states, key=lambda state: state.since, reverse=True)


async def alerts_past(notes: Notes) -> list[AlertState]:
    """Alerts that were resolved, the latest first."""
    states = (await read_all(notes, PAST, AlertState)).values()
    return sorted(states, key=lambda state: state.resolved_at or 0.0, reverse=True)


async def states_of(notes: Notes) -> dict[str, AlertState]:
    """The states of all alerts by key. Notes with an unknown alert or under a wrong key are
    skipped: others may have written them."""
    states = await read_all(notes, NOW, AlertState)
    return {key: state for key, state in states.items() if state.alert in ALL and key == state.key}


async def last_look(notes: Notes) -> float | None:
    """When a leader last looked. None if never."""
    look = await read(notes, LOOK, LAST, Look)
    return look.at if look else None


async def note_states(
    leader_notes: LeaderNotes, before: dict[str, AlertState], after: dict[str, AlertState]
) -> None:
    """Write the states that have changed, and remove those that are gone. States that are newly
    resolved are also added to the past ones. Raises Deposed."""
    for key, state in after.items():
        if before.get(key) != state:
            await leader_notes.write(NOW, key, state)
        was = before.get(key)
        if state.state == "resolved" and (was is None or was.state != "resolved"):
            await _note_past(leader_notes, state)
    for key in before.keys() - after.keys():
        await leader_notes.write(NOW, key, None)


async def _note_past(leader_notes: LeaderNotes, state: AlertState) -> None:
    name = f"{state.resolved_at or 0.0:017.3f} {state.key}"
    await leader_notes.write(PAST, name, msgspec.structs.replace(state, owed=[]))
    names = sorted(await leader_notes.notes.all(PAST))
    for old in names[:-MOST_PAST]:
        await leader_notes.write(PAST, old, None)


async def note_look(leader_notes: LeaderNotes, now: float) -> None:
    """Note that a leader has looked. Raises Deposed."""
    await leader_notes.write(LOOK, LAST, Look(now))
