"""One shard of a crawl is away for a moment: leases that others have granted are not forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import StorageBusy
from shoal.frontier.redis import RedisFrontier
from shoal.frontier.redis.shard import Offer, Shard
from support.frontiers import CRAWL, Client, pages
from support.redis_servers import RedisServer
from support.until import until_now

HOSTS, PAGES = 12, 2
SHARDS = 3


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A cluster of one server, which has all shards."""
    with RedisServer(tmp_path, "--cluster-enabled", "yes") as server:
        server.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        until_now("the cluster", lambda: "cluster_state:ok" in server.cli("CLUSTER", "INFO"))
        yield server


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[Client]:
    frontier = RedisFrontier(f"redis+cluster://127.0.0.1:{server.port}?shards={SHARDS}")
    client = Client(frontier, "worker", CRAWL)
    await client.start(
        *(entry for host in range(HOSTS) for entry in pages(PAGES, host=f"h{host}.example"))
    )
    yield client
    await frontier.close()


@pytest.mark.rare
@pytest.mark.parametrize("which", range(SHARDS))
async def test_what_others_granted_is_kept(
    client: Client, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    calls, lease = count(), Shard.lease

    async def lease_or_fail(shard: Shard, *args: Any, **options: Any) -> Offer:
        if next(calls) == which:
            raise StorageBusy("away")
        return await lease(shard, *args, **options)

    monkeypatch.setattr(Shard, "lease", lease_or_fail)
    if which == 0:
        with pytest.raises(StorageBusy):
            await client.ask(HOSTS)
        assert (await client.stats()).leased == 0
    else:
        granted = await client.lease(HOSTS)
        assert 0 < len(granted) == (await client.stats()).leased
        for held in granted:
            await client.end(held)
    await client.work_off()
    stats = await client.stats()
    assert (stats.done + stats.leased, stats.lost) == (HOSTS * PAGES, 0)
