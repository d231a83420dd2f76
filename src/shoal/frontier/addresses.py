"""Addresses of frontiers: whether they name a carrier, where the state is, how large a window is.

sqlite:///path.db, redis://host       no carrier
redis://host?blocks=on                blocks are kept in Redis itself, compressed
amqp://host, sqs://region/prefix      blocks are with a broker; the state is at `state`, on Redis
"""

from __future__ import annotations

import msgspec

from shoal.core.addresses import masked
from shoal.errors import ConfigError

REDIS_SCHEMES = ("redis", "rediss", "redis+sentinel", "redis+cluster")
BROKER_SCHEMES = ("amqp", "amqps", "sqs")

SIZE_OPTIONS = ("window", "block", "moved")
_OPTIONS = ("blocks", *SIZE_OPTIONS)
_MOST_WINDOW = 100_000
_MOST_BLOCK = 64


class Sizes(msgspec.Struct, frozen=True):
    """The options of an address that concern windows, blocks and their carrier. None: not set."""

    window: int | None = None
    block: int | None = None
    has_moved: bool = False
    """Whether a crawl that uses another carrier is switched to this one."""


class Place(msgspec.Struct, frozen=True):
    """Where a frontier is. The options that concern a carrier are taken out of its address."""

    address: str
    """The address of the broker, or of the frontier itself."""
    state: str
    """The address at which crawls are kept: the same as `address` if there is no broker."""
    sizes: Sizes | None = None
    """None: there is no carrier."""


def place_of(address: str, state: str | None = None) -> Place:
    """Read the address of a frontier, and that of its state. Raises ConfigError."""
    bare, options = _without_options(address)
    scheme = scheme_of(address)
    if scheme in BROKER_SCHEMES:
        if "blocks" in options:
            raise ConfigError(f"{masked(address)}: blocks is an option of redis:// addresses")
        return Place(bare, _state(address, state), _sizes(address, options))
    if state is not None:
        raise ConfigError(
            f"--state is for a --frontier that is a broker (amqp://, sqs://): {masked(address)} has"
            " its state itself"
        )
    if scheme not in REDIS_SCHEMES or not options:
        return Place(address, address)
    if options.get("blocks") not in ("on", "off"):
        raise ConfigError(f"{masked(address)}: blocks is on or off")
    return Place(bare, bare, _sizes(address, options) if options["blocks"] == "on" else None)


def scheme_of(address: str) -> str:
    """The scheme of an address: what stands before its first colon."""
    return address.partition(":")[0]


def _state(address: str, state: str | None) -> str:
    if state is None:
        raise ConfigError(
            f"{masked(address)} carries tasks, and Redis schedules them: --state redis://host"
        )
    if scheme_of(state) not in REDIS_SCHEMES or scheme_of(state) == "redis+cluster":
        raise ConfigError(f"--state is one Redis, or sentinels, and not {masked(state)!r}")
    return state


def _sizes(address: str, options: dict[str, str]) -> Sizes:
    if scheme_of(address) == "redis+cluster":
        raise ConfigError(f"{masked(address)}: tasks travel from one server, not from a cluster")
    return Sizes(
        _number(address, options, "window", _MOST_WINDOW),
        _number(address, options, "block", _MOST_BLOCK),
        _has_moved(address, options.get("moved", "off")),
    )


def _has_moved(address: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise ConfigError(f"{masked(address)}: moved is on or off")
    return text == "on"


def _number(address: str, options: dict[str, str], name: str, most: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
        raise ConfigError(f"{masked(address)}: {name} is a number from 1 to {most}")
    return int(text)


def _without_options(address: str) -> tuple[str, dict[str, str]]:
    """Split an address into the address without our options, otherwise unchanged, and the
    options."""
    bare, mark, query = address.rpartition("?")
    if not mark or "@" in query:  # What follows may be a password.
        return address, {}
    parts = [part.partition("=") for part in query.split("&")]
    ours = {name: value for name, _, value in parts if name in _OPTIONS}
    rest = "&".join("".join(part) for part in parts if part[0] not in _OPTIONS)
    return (f"{bare}?{rest}" if rest else bare), ours
