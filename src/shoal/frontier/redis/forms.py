"""Converts values to the arguments of the scripts, and their answers to values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.core.cookies import Jar
from shoal.core.counters import page_counts
from shoal.core.exits import Lent
from shoal.core.identities import IdentityReport, LeasedIdentity, session_of_pool
from shoal.drivers.redis.scripts import Argument
from shoal.frontier import stored_robots
from shoal.frontier.redis.packing import pack, queue_of, unpack
from shoal.frontier.values import Entry, Lease, Outcome, Verdict

Group = tuple[str, int, list[bytes], str | None]
"""A host or lane, a priority, packed entries with these, and their shape, if that counts."""
Size = tuple[str, int, int] | tuple[str, int, int, str]
"""A group, with the number of its entries in their place."""

FAILED = (Verdict.RETRY, Verdict.DEAD)

_read_jar = msgspec.json.Decoder(Jar).decode

pack_values = msgspec.msgpack.encode
"""Packs values for the scripts. They must not include bytes: cmsgpack knows only text."""


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """Group entries by host and priority, as the scripts take them. Entries of chains keep their
    order, whatever their hosts and priorities: each is a group of its own."""
    groups: dict[tuple[str, int, str | None], list[bytes]] = {}
    chained = list[Group]()
    for entry in entries:
        task = entry.task
        if task.chain is None:
            place = queue_of(task), task.priority, entry.shape
            groups.setdefault(place, []).append(pack(entry))
        else:
            chained.append((queue_of(task), task.priority, [pack(entry)], entry.shape))
    return [
        *((at, first, packed, alike) for (at, first, alike), packed in groups.items()),
        *chained,
    ]


def sizes_of(groups: Iterable[Group]) -> tuple[list[Size], list[bytes]]:
    """Split groups into their sizes and a list of all their entries: see adding.lua."""
    sizes, entries = list[Size](), list[bytes]()
    for site, priority, packed, shape in groups:
        size = (site, priority, len(packed))
        sizes.append(size if shape is None else (*size, shape))
        entries += packed
    return sizes, entries


def has_lanes(sizes: Iterable[Size]) -> bool:
    """Whether any of the groups belongs to a lane."""
    return any(" " in size[0] for size in sizes)


def finish_args(
    outcomes: Sequence[Outcome], others: Sequence[Group] = ()
) -> tuple[list[Argument], bool]:
    """The arguments of finish.lua, and whether they add tasks to lanes."""
    packed, entries = [], list[bytes]()
    for outcome in outcomes:
        follow_ups, own = sizes_of(grouped(outcome.follow_ups))
        packed.append(_ended(outcome, follow_ups))
        entries += own
    sizes, added = sizes_of(others)
    owners = [owner_of(outcome.lease) for outcome in outcomes]
    of_lanes = has_lanes(sizes) or any(has_lanes(ended.follow_ups) for ended in packed)
    return [pack_values(packed), pack_values(sizes), *owners, *entries, *added], of_lanes


def leases_of(granted: list[Any], nonce: str, clock_s: float, *, alone: bool) -> list[Lease]:
    """Read the leases of all hosts from the answer of lease.lua, in the order of their tokens."""
    leases = list[Lease]()
    for host, stored_at, paced, crowded, shared, *tasks in granted:
        queue, robots_at = host.decode(), int(stored_at) / 1e6 or None
        is_plain = isinstance(shared, int)
        lent, identity = (None, None) if is_plain else _lent(shared)
        how = (bool(paced), alone, bool(crowded), is_plain and bool(shared), clock_s, lent)
        for number in range(0, len(tasks), 2):
            packed, jar = tasks[number + 1], None
            if isinstance(packed, list):
                packed, jar = packed[0], _read_jar(packed[1])
            fingerprint, task, _ = unpack(packed, queue, int(tasks[number]))
            token = f"{nonce}{len(leases) + 1}"
            leases.append(Lease(fingerprint, token, task, robots_at, *how, jar, identity))
    return leases


def _lent(values: list[Any]) -> tuple[Lent | None, LeasedIdentity | None]:
    """Read the exit and the identity of a lease. They stand where other leases say whether they are
    shared. A lease with an identity and without an exit leaves directly."""
    (exit_id, session, pool, blocks, tried), identity = values[:5], values[5:]
    lent = Lent(exit_id.decode(), session, pool.decode(), blocks, tried)
    if not identity:
        return lent, None
    return lent if lent.exit else None, identity_of(identity)


def identity_of(values: list[Any]) -> LeasedIdentity:
    """Read an identity from the answer of lease.lua or hold.lua."""
    account, is_in, jar, user_agent, login_url, *expired = values
    name = session_of_pool(account.decode())
    texts = user_agent.decode(), login_url.decode()
    return LeasedIdentity(name, bool(is_in), jar, *texts, *expired)


def shares_of(told: list[Any]) -> dict[str, int]:
    """Read a worker's shares by host from the answer of lease.lua."""
    return {host.decode(): share for host, share in zip(told[::2], told[1::2], strict=True)}


def epoch_of(crawl_id: str, life: str) -> int:
    """A number that changes when the crawl is started over, and when the server may have lost
    something: see `life` in step.lua."""
    return hash((crawl_id, life))


def owner_of(lease: Lease) -> bytes:
    """A lease in the form that the scripts take: its fingerprint and its token."""
    return lease.fingerprint + lease.token.encode()


def seconds_or_none(microseconds: bytes | int) -> float | None:
    """Read a wait from the answer of lease.lua, which has -1 for none."""
    wait = int(microseconds)
    return wait / 1e6 if wait >= 0 else None


def _micro(seconds: float) -> int:
    return round(seconds * 1e6)


def _raw(data: bytes) -> msgspec.Raw:
    """Pack bytes as text, because cmsgpack knows no other kind of string."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4) + data)


class _Report(msgspec.Struct, omit_defaults=True):
    """A report about an account, in the form that finish.lua and let_go.lua take."""

    change: str
    reason: str = ""
    jar: msgspec.Raw | None = None
    user_agent: str = ""
    login_url: str = ""


def report_of(report: IdentityReport) -> _Report:
    """Convert a report about an account to the form that the scripts take."""
    jar = None if report.jar is None else _raw(report.jar)
    return _Report(report.change, report.reason, jar, report.user_agent, report.login_url)


class _Ended(msgspec.Struct, omit_defaults=True):
    """An outcome in the form that finish.lua takes. Defaults are left out: most outcomes have few
    values that are not 0 or empty."""

    verdict: str
    kind: str = ""
    """Only set if the try failed."""
    reason: str = ""
    detail: str = ""
    retry_in: int = 0
    sent: bool = False
    fault: bool = False
    blocked: bool = False
    latency: int = 0
    ours: bool = False
    counts: tuple[int, ...] = ()
    """The counts, in the order of PAGE_COUNTERS."""
    pushback: bool = False
    meant: bool = False
    retry_after: int = 0
    robots: msgspec.Raw | None = None
    robots_ttl: int = 0
    crawl_delay: int = 0
    elsewhere: bool = False
    follow_ups: list[Size] = []
    passage: tuple[str, str, int, float, int] | None = None
    """What is to blame, the kind of block, how long to wait, a random number, bytes on the wire."""
    cookies: msgspec.Raw | None = None
    """The cookie jar of its chain as JSON; no bytes for an empty jar."""
    identity: _Report | None = None
    own_counts: dict[str, int] = {}


def _ended(outcome: Outcome, follow_ups: list[Size]) -> _Ended:
    ended = _Ended(
        outcome.verdict,
        outcome.kind if outcome.verdict in FAILED else "",
        outcome.reason,
        outcome.detail,
        _micro(outcome.retry_in_s),
        outcome.sent,
        outcome.fault,
        outcome.blocked > 0,
        _micro(outcome.latency_s),
        outcome.ours,
        page_counts(outcome),
        follow_ups=follow_ups,
        own_counts=outcome.own_counts,
    )
    if outcome.pushback is not None:
        ended.pushback = True
        ended.meant = outcome.pushback.meant
        ended.retry_after = _micro(outcome.pushback.retry_after_s or 0.0)
    if (passage := outcome.passage) is not None:
        wait = _micro(passage.retry_after_s)
        said = (passage.blame, passage.block, wait, passage.dice, outcome.wire_bytes)
        ended.passage = said
    if outcome.cookies is not None:
        ended.cookies = _raw(msgspec.json.encode(outcome.cookies) if outcome.cookies else b"")
    if outcome.identity is not None:
        ended.identity = report_of(outcome.identity)
    if outcome.robots is not None:
        ended.robots = _raw(stored_robots.pack(outcome.robots))
        ended.robots_ttl = _micro(outcome.robots.ttl_s)
        ended.crawl_delay = _micro(outcome.robots.crawl_delay_s)
        ended.elsewhere = bool(outcome.robots.location)
    return ended
