"""Exits as the scripts keep them: packed values in a lasting order, times in microseconds.

The first fields of a record stay as they are, because servers have them; new ones come behind.
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
"""What holds for a pool that nobody has brought."""

_NOT_KEPT = {"id", "cooling"}
_TIME = re.compile("_(at|until|since)$|^since$")
_COUNT = re.compile(r"^\d+")
_NUMBER = re.compile(r"\d+")


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a record in their order, and their values in one that is new."""
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
"""By the name that the scripts have for each kind: its fields, and their values in a new one."""

_unpack = msgspec.msgpack.Decoder(strict=False).decode


def values_of(kind: str, packed: bytes) -> dict[str, Any]:
    """What a packed record says, with its times in seconds."""
    values = zip(RECORDS[kind], _unpack(packed), strict=False)
    return {name: at / 1e6 if _TIME.search(name) else at for name, at in values}


def exit_of(exit_id: str, packed: bytes) -> Exit:
    """An exit, as the scripts have packed it."""
    return msgspec.convert({"id": exit_id, **values_of("exit", packed)}, Exit)


def account_of(packed: bytes | None) -> AccountState:
    """What only an account has. There is no record of one that nobody has used."""
    if packed is None:
        return AccountState()
    return msgspec.convert(values_of("account", packed), AccountState)


def lane_of(packed: bytes | None) -> Lane:
    """A lane. There is no record of one of which there is nothing to say."""
    return msgspec.convert(values_of("lane", packed), Lane) if packed else Lane()


def spent_of(packed: bytes | None) -> Spent:
    """What a pool has cost."""
    return msgspec.convert(values_of("spent", packed), Spent) if packed else Spent()


def pool_values(rules: PoolRules) -> dict[str, Any]:
    """The rules of a pool, as the scripts use them."""
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
    """How the reasons begin for which tasks die. Of a group: also where it waits for its exits."""
    if not is_group(rules.name):
        return {"starved": starved_head(rules.name, rules.timeout_s)}
    return {
        "through": rules.through,
        "starved": unusable_head(rules.timeout_s),
        "starved_through": starved_head(rules.through, rules.timeout_s),
    }


def starved_head(pool: str, timeout_s: float) -> str:
    """How the reason begins for which tasks of a pool die that no exit could be used for."""
    spent = _starved(pool, timeout_s, may_spend=False)
    return spent.removesuffix(starved_words()["spent"])


def starved_words() -> dict[str, str]:
    """What may follow, with %d for numbers: as `starved_reason` says it."""
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
    """How the reason begins for which tasks die that no account could be used for: with %s for the
    session."""
    return _unusable("%s", timeout_s, listed=1).partition(":")[0]


def unusable_words() -> dict[str, str]:
    """What may stand there as well, or follow: as `identity_policy.starved_reason` says it."""
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
