"""Reads what-ifs, changes to a plan: --what-if workers=8,rate=5/s. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.core.policy import parse_rate
from shoal.errors import ConfigError
from shoal.insight.advise.model import MAX_WORKERS, Plan
from shoal.insight.figures import shortened

MAX_WHAT_IFS = 20
LEAST, MOST = 0.001, 100_000
_MOST = {"workers": MAX_WORKERS, "concurrency": MOST, "concurrency_per_host": MOST}


class WhatIf(msgspec.Struct, frozen=True):
    """Changes to a plan."""

    text: str
    """The text as it was written."""
    changes: Mapping[str, Any]
    """New values of fields of `Plan`."""

    @property
    def without_workers(self) -> str:
        """The text without the number of workers. Empty if nothing else changes."""
        parts = (part.strip() for part in self.text.split(","))
        return ",".join(part for part in parts if not part.startswith("workers"))

    def of(self, plan: Plan) -> Plan:
        """A copy of the plan with the changes."""
        return msgspec.structs.replace(plan, **self.changes)


def parse_what_if(text: str) -> WhatIf:
    """Read `workers=8,rate=5/s`. Raises ConfigError."""
    changes = dict[str, Any]()
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        where = f"what-if {shortened(part.strip())!r}"
        if name not in _KEYS:
            raise ConfigError(f"{where}: write one of {', '.join(_EXAMPLES)}")
        field, read = _KEYS[name]
        if field in changes:
            raise ConfigError(f"{where}: {name} is in it twice; write --what-if once for each")
        try:
            changes[field] = read(value)
        except (ValueError, ConfigError):
            example = next(at for at in _EXAMPLES if at.startswith(f"{name}="))
            most = f"; at most {_MOST[name]:,}" if name in _MOST else ""
            raise ConfigError(f"{where}: write, for example, {example}{most}") from None
    return WhatIf(text.strip(), changes)


def _up_to(most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not 1 <= (number := int(value)) <= most:
            raise ValueError(value)
        return number

    return read


def _fixed_rate(value: str) -> Any:
    rate = parse_rate(value)
    if rate.auto:  # How fast that is follows from the hosts' latency, and cannot be forecast.
        raise ValueError(value)
    return rate


def _times(value: str) -> float:
    if not LEAST <= (number := float(value.removesuffix("x"))) <= MOST:
        raise ValueError(value)
    return number


_KEYS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "workers": ("workers", _up_to(_MOST["workers"])),
    "rate": ("rate", _fixed_rate),
    "concurrency": ("slots", _up_to(_MOST["concurrency"])),
    "concurrency_per_host": ("room", _up_to(_MOST["concurrency_per_host"])),
    "exits": ("exits", _times),
    "stores": ("stores", _times),
}
_EXAMPLES = (
    *("workers=8", "rate=5/s", "concurrency=64", "concurrency_per_host=32"),
    *("exits=2x", "stores=2x"),
)
