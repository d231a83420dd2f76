"""The form in which the scripts store exits: packed values in a fixed order, times in microseconds.

Servers have records in this form, so existing fields keep their places; new ones come at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.core import identity_policy
from shoal.core.exit_policy import starved_reason
from shoal.core.exits import Exit, Lane, Pair, PoolRules, Spent
from shoal.core.identities import AccountState, is_group

UNKNOWN_POOL = PoolRules(name="")
"""The rules of a pool that was never put into the frontier."""

_NOT_KEPT = {"id", "cooling"}
_TIME = re.compile("_(at|until|since)$|^since$")
_COUNT = re.compile(r"^\d+")
_NUMBER = re.compile(r"\d+")


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a record in their order, and their values in a new one."""
    found = {}
    for field in msgspec.structs.fields(kind):
        if field.name not in _NOT_KEPT:
            default = field.default
            if default is msgspec.NODEFAULT:
                made = field.default_factory
                default = "" if made is msgspec.NODEFAULT else made()
            found[field.name] = int(default) if isinstance(default, float) else default
    return found


RECORDS: Mapping[str, Mapping[str, Any]] = {
    "exit": _fields(Exit),
    "pair": _fields(Pair),
    "lane": _fields(Lane),
    "spent": _fields(Spent),
    "account": _fields(AccountState),
}
"""The fields of each kind of record, and their values in a new one, by the name of the kind in the
scripts."""

_unpack = msgspec.msgpack.Decoder(strict=False).decode


def values_of(kind: str, packed: bytes) -> dict[str, Any]:
    """The fields of a packed record, with times in seconds."""
    values = zip(RECORDS[kind], _unpack(packed), strict=False)
    return {name: at / 1e6 if _TIME.search(name) else at for name, at in values}


def exit_of(exit_id: str, packed: bytes) -> Exit:
    """Read an exit from its packed record."""
    return msgspec.convert({"id": exit_id, **values_of("exit", packed)}, Exit)


def account_of(packed: bytes | None) -> AccountState:
    """Read the state of an account, which its record as an exit does not have. An account that was
    never used has none."""
    if packed is None:
        return AccountState()
    return msgspec.convert(values_of("account", packed), AccountState)


def lane_of(packed: bytes | None) -> Lane:
    """Read a lane. A lane in its initial state has no record."""
    return msgspec.convert(values_of("lane", packed), Lane) if packed else Lane()


def spent_of(packed: bytes | None) -> Spent:
    """Read what a pool has cost."""
    return msgspec.convert(values_of("spent", packed), Spent) if packed else Spent()


def pool_values(rules: PoolRules) -> dict[str, Any]:
    """The rules of a pool, in the form that the scripts use."""
    return {
        "name": rules.name,
        "rotation": rules.rotation,
        "sticky": _micro(rules.sticky_s),
        # Rounded up: a rate is a limit.
        "interval": _micro(rules.interval_s),
        "pair_interval": _micro(rules.pair_interval_s),
        "concurrency": rules.concurrency,
        "escalate_to": rules.escalate_to,
        "allow_direct": rules.allow_direct,
        "timeout": _micro(rules.timeout_s),
        "is_gateway": rules.is_gateway,
        "per_gb": rules.per_gb,
        "per_request": rules.per_request,
        "budget": rules.budget,
        "budget_period": _micro(rules.budget_period_s),
        "most_cost": rules.most_cost,
        **_texts(rules),
    }


def _texts(rules: PoolRules) -> dict[str, str]:
    """The beginnings of the reasons for which tasks of a pool die. A group has a second one, for
    tasks that wait for an exit of its pool."""
    if not is_group(rules.name):
        return {"starved": starved_head(rules.name, rules.timeout_s)}
    return {
        "through": rules.through,
        "starved": unusable_head(rules.timeout_s),
        "starved_through": starved_head(rules.through, rules.timeout_s),
    }


def starved_head(pool: str, timeout_s: float) -> str:
    """How the reason begins for which tasks die when no exit of the pool could be used."""
    spent = _starved(pool, timeout_s, may_spend=False)
    return spent.removesuffix(starved_words()["spent"])


def starved_words() -> dict[str, str]:
    """The phrases that may follow `starved_head`, with %d for numbers, taken from the texts of
    `starved_reason`."""
    said = {
        "spent": _starved(may_spend=False),
        "no_exits": _starved(),
        "one_exit": _starved(listed=1),
        "all": _starved(listed=6, out=1, cooling=2),
    }
    words = {name: text.rpartition(": ")[2] for name, text in said.items()}
    words["one_exit"] = words["one_exit"].partition(",")[0]
    for name, part in zip(
        ("exits", "out", "cooling", "tried"), words.pop("all").split(", "), strict=True
    ):
        words[name] = _COUNT.sub("%d", part)
    return words


def unusable_head(timeout_s: float) -> str:
    """How the reason begins for which tasks die when no account could be used, with %s for the
    session."""
    return _unusable("%s", timeout_s, listed=1).partition(":")[0]


def unusable_words() -> dict[str, str]:
    """Phrases that may take the place of `unusable_head`, or follow it, with %d for numbers, taken
    from the texts of `identity_policy.starved_reason`."""
    head, _, none = _unusable("%s", 1.0).partition(":")
    one, two = (_unusable("", 1.0, listed=n, resting=3, banned=4) for n in (1, 2))
    many, resting, banned = two.partition(":")[2].split(",")
    return {
        "unknown": unusable_head(UNKNOWN_POOL.timeout_s),
        "none": head,
        "no_accounts": f":{none}",
        "one": _with_number(f":{one.partition(':')[2].partition(',')[0]}"),
        "many": _with_number(f":{many}"),
        "resting": _with_number(f",{resting}"),
        "banned": _with_number(f",{banned}"),
    }


def _with_number(text: str) -> str:
    return _NUMBER.sub("%d", text)


def _unusable(session: str, timeout_s: float, **counts: int) -> str:
    counted = {"listed": 0, "resting": 0, "banned": 0, **counts}
    return identity_policy.starved_reason(session, timeout_s, **counted)


def _starved(pool: str = "", timeout_s: float = 1.0, **counts: Any) -> str:
    counted = {"listed": 0, "out": 0, "cooling": 0, "may_spend": True, **counts}
    return starved_reason(pool, timeout_s, **counted)


def _micro(seconds: float) -> int:
    return math.ceil(round(seconds * 1e6, 3))
