"""Whatever numbers a task comes with over a wire, Redis and SQLite make the same of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.config import Rules
from shoal.core.task import encode
from shoal.errors import BadUrl
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Verdict
from shoal.seeds.seeding import read_seed
from support.frontiers import Backend, Client, SqliteBackend, open_rules, outcome
from support.redis_backend import RedisBackend
from support.redis_servers import RedisServer

EDGES = [
    edge + step
    for edge in (0, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30)
    for step in (-1, 0, 1)
]
numbers: st.SearchStrategy[Any] = (
    st.sampled_from([*EDGES, *(-edge for edge in EDGES)])
    | st.integers(-300, 300)
    | st.floats()
    | st.sampled_from([None, True, "7", [], {}])
)
seeds = st.lists(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("depth", "priority", "retry_count", "max_retries"), numbers),
    ),
    min_size=1,
    max_size=12,
)


def admitted(fields: list[dict[str, Any]]) -> list[Entry]:
    """Those that get in, each at an address of its own. Who does not is told so."""
    admission, entries = Admission(Rules()), list[Entry]()
    for number, seed in enumerate(fields):
        line = json.dumps({"url": f"http://a.example/{number}", **seed}).encode()
        try:
            entries.append(admission.admit(read_seed(line)))
        except BadUrl:
            continue
    return entries


async def life(client: Client, entries: list[Entry], backend: Backend) -> list[Any]:
    """All that is seen of these tasks: waiting, leased, tried again, dead."""
    await client.frontier.forget(client.crawl)
    await client.frontier.start(client.crawl, open_rules(concurrency_per_host=99))
    seen: list[Any] = [await client.add(*entries)]
    for each in entries:
        record = await client.record(each)
        seen.append((record.state, encode(record.task)))
    for verdict in (Verdict.RETRY, Verdict.DEAD):
        leases = sorted(await client.lease(99), key=_rank)
        seen += [(lease.fingerprint, encode(lease.task)) for lease in leases]
        seen.append(await client.finish(*(outcome(lease, verdict) for lease in leases)))
        await backend.advance(1.0)
    dead = await client.frontier.dead(client.crawl, 99)
    seen += sorted((record.fingerprint, encode(record.task)) for record in dead)
    stats = await client.stats()
    return [*seen, stats.dead, stats.retries, stats.remaining]


def _rank(lease: Any) -> tuple[int, bytes]:
    return -lease.task.priority, lease.fingerprint


def test_both_make_the_same_of_them(redis_server: RedisServer, tmp_path: Path) -> None:
    backends: list[Backend] = [
        SqliteBackend(tmp_path / "frontier.db"),
        RedisBackend(redis_server.url),
    ]

    with asyncio.Runner() as runner:

        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(fields=seeds)
        def check(fields: list[dict[str, Any]]) -> None:
            lives = [runner.run(life(at.client(), admitted(fields), at)) for at in backends]
            assert lives[0] == lives[1]

        check()
        for backend in backends:
            runner.run(backend.close())
