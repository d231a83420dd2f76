"""Several clients at once: each task goes to exactly one of them, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter

from shoal.frontier.values import Added, Control, CrawlState
from support.frontiers import Backend, Client, entry, outcome, pages

CLIENTS = 4


async def work_to_the_end(client: Client, limit: int) -> Counter[str]:
    """Lease and finish until the crawl is over. Every seed leads to one more page."""
    done: Counter[str] = Counter()
    while not (grant := await client.ask(limit)).state.over:
        outcomes = []
        for lease in grant.leases:
            done[lease.task.url] += 1
            seed = lease.task.depth == 0
            child = entry(lease.task.url.removeprefix("http://") + "/child", depth=1)
            outcomes.append(outcome(lease, follow_ups=[child] if seed else []))
        assert await client.finish(*outcomes) == []
    return done


class TestRace:
    async def test_each_task_is_done_exactly_once(self, backend: Backend) -> None:
        fleet = [backend.client(), *(backend.another(f"worker-{n}") for n in range(1, CLIENTS))]
        seeds = [page for host in range(8) for page in pages(25, f"h{host}.example")]
        await fleet[0].start(*seeds)
        await fleet[0].control(Control.SEAL)
        counts = await asyncio.gather(*(work_to_the_end(client, 7) for client in fleet))
        done: Counter[str] = sum(counts, Counter())
        assert len(done) == 2 * len(seeds) == 400
        assert set(done.values()) == {1}
        stats = await fleet[0].stats()
        assert (stats.state, stats.done, stats.lost) == (CrawlState.FINISHED, 400, 0)

    async def test_each_address_is_added_exactly_once(self, backend: Backend) -> None:
        fleet = [backend.client(), *(backend.another() for _ in range(1, CLIENTS))]
        await fleet[0].start()
        batches = [pages(50)[n : n + 10] for n in range(0, 50, 10)]
        answers = await asyncio.gather(
            *(client.add(*batch) for batch in batches for client in fleet)
        )
        assert sum(answer.added for answer in answers) == 50
        assert sum(answer.duplicates for answer in answers) == 50 * (CLIENTS - 1)
        assert (await fleet[0].stats()).waiting == 50

    async def test_all_may_start_the_same_crawl(self, backend: Backend) -> None:
        fleet = [backend.client(), *(backend.another() for _ in range(1, CLIENTS))]
        await asyncio.gather(*(client.start(*pages(5)) for client in fleet))
        assert await fleet[0].add(*pages(5)) == Added(duplicates=5)
        (stats,) = await fleet[0].frontier.crawls()
        assert (stats.added, stats.duplicates) == (5, 5 * CLIENTS)
