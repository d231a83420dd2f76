"""Advances the states of alerts: turns findings into states, and decides which routes are to be
notified. Pure.

    (nothing) ─ found ─▶ pending ─ it lasts ─▶ firing ─ gone for five minutes ─▶ resolved ─▶ past
                            │                    │  ▲
                            └─ gone: forgotten   └──┘ sent again every four hours

States are stored as notes in the frontier. The next leader continues with them, so no route is
notified twice. A message that could not be delivered is owed to its route: it is sent again at each
look, for an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.alerts.conditions import ALL, Finding
from shoal.alerts.limits import Limits
from shoal.coordinator.runs import Moment
from shoal.insight.sample import Sample

QUIET_S = 300.0
"""An alert is resolved once its condition has been gone for this long. Without this delay, a value
near its limit would cause messages every minute."""
OWED_FOR_S = 3600.0
"""How long to keep trying to deliver a message."""


class AlertState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The state of one alert of one crawl."""

    alert: str
    crawl: str = ""
    """Empty if the alert is not about a crawl."""
    schedule: str | None = None
    state: Literal["pending", "firing", "resolved"] = "pending"
    text: str
    value: float
    limit: float
    since: Moment
    """When the condition was first found."""
    fired_at: Moment | None = None
    resolved_at: Moment | None = None
    seen_at: Moment
    """When the condition was last found."""
    told_at: Moment | None = None
    """When routes were last due to be notified."""
    owed: list[str] = []
    """The names of routes that have yet to be notified."""

    @property
    def key(self) -> str:
        """The name of the alert's note."""
        return key_of(self.alert, self.crawl)


def key_of(alert: str, crawl: str) -> str:
    """The name of an alert's note."""
    return f"{alert}/{crawl}"


class Found(msgspec.Struct, frozen=True):
    """A finding of the current look, with its alert and its crawl."""

    alert: str
    finding: Finding
    limits: Limits = Limits()
    sample: Sample | None = None

    @property
    def key(self) -> str:
        """The name of the alert's note."""
        return key_of(self.alert, self.sample.crawl if self.sample else "")


class Plan(msgspec.Struct, frozen=True):
    """How all alerts are sent."""

    routes: Sequence[str] = ()
    """The names of all routes."""
    again_s: float = 4 * 3600.0
    """After how long an alert that still fires is sent again."""


def advance(
    states: Mapping[str, AlertState],
    found: Sequence[Found],
    plan: Plan,
    now: float,
    *,
    watched: Collection[str],
) -> dict[str, AlertState]:
    """The states after a look, by key. A state that is missing afterwards is over.

    `watched` names the crawls that were looked at. Other crawls ended long ago or are gone: their
    alerts are resolved without a message.
    """
    seen = {one.key: one for one in found}
    moved = {
        key: _still_wrong(states[key], one, plan, now) if key in states else _new(one, plan, now)
        for key, one in seen.items()
    }
    for key, state in states.items():
        if key in seen:
            continue
        is_watched = not state.crawl or state.crawl in watched
        rest = _not_wrong(state, plan, now) if is_watched else _unwatched(state, now)
        if rest is not None:
            moved[key] = rest
    return moved


def delivered(state: AlertState, routes: Callable[[str], bool]) -> AlertState:
    """The state after some routes were notified. `routes` says whether a route is done with."""
    return msgspec.structs.replace(state, owed=[r for r in state.owed if not routes(r)])


def _new(one: Found, plan: Plan, now: float) -> AlertState:
    sample = one.sample
    state = AlertState(
        alert=one.alert,
        crawl=sample.crawl if sample else "",
        schedule=sample.schedule if sample else None,
        text=one.finding.text,
        value=one.finding.value,
        limit=one.finding.limit,
        since=now,
        seen_at=now,
    )
    return _fired_if_it_lasts(state, one, plan, now)


def _still_wrong(state: AlertState, one: Found, plan: Plan, now: float) -> AlertState:
    """The next state of an alert whose condition was found again."""
    if state.state == "resolved":
        return _new(one, plan, now)
    finding = one.finding
    seen = msgspec.structs.replace(
        state, text=finding.text, value=finding.value, limit=finding.limit, seen_at=now
    )
    if state.state == "pending":
        return _fired_if_it_lasts(seen, one, plan, now)
    if now - (state.told_at or 0.0) >= plan.again_s:
        return _owed_to_all(seen, plan, now)
    return _without_expired(seen, now)


def _fired_if_it_lasts(state: AlertState, one: Found, plan: Plan, now: float) -> AlertState:
    if now - state.since < ALL[state.alert].holds_s(one.limits):
        return state
    return _owed_to_all(msgspec.structs.replace(state, state="firing", fired_at=now), plan, now)


def _not_wrong(state: AlertState, plan: Plan, now: float) -> AlertState | None:
    """The next state of an alert whose condition was not found. None: it is over."""
    if state.state == "pending":
        return None
    if state.state == "firing":
        if now - state.seen_at < QUIET_S:
            return _without_expired(state, now)
        resolved = msgspec.structs.replace(state, state="resolved", resolved_at=now, owed=[])
        return _owed_to_all(resolved, plan, now) if ALL[state.alert].passes else resolved
    rest = _without_expired(state, now)
    return rest if rest.owed else None


def _unwatched(state: AlertState, now: float) -> AlertState | None:
    """The next state of an alert on a crawl that is not watched any more. None: it is over."""
    if state.state != "firing":
        return None
    return msgspec.structs.replace(state, state="resolved", resolved_at=now, owed=[])


def _owed_to_all(state: AlertState, plan: Plan, now: float) -> AlertState:
    return msgspec.structs.replace(state, told_at=now, owed=list(plan.routes))


def _without_expired(state: AlertState, now: float) -> AlertState:
    """The state without messages that could not be delivered for too long."""
    is_old = now - (state.told_at or 0.0) >= OWED_FOR_S
    return msgspec.structs.replace(state, owed=[]) if state.owed and is_old else state
