"""Chains: their tasks run one after the other, while other tasks run in parallel."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from shoal.frontier.values import Chain, Control, CrawlState, Entry, Lease, TaskState, Verdict
from support.frontiers import HOST, Backend, Client, entry, outcome, pages

CHAIN = "account-17"
ENDS = [Verdict.DONE, Verdict.DEAD, Verdict.DROPPED]
NAMES = ["x", "{x}", "a:b", " ", "'\"\\\n", "überall/🐟", "🐟" * 200, "\0"]


def steps(count: int, chain: str = CHAIN, host: str = HOST, **fields: Any) -> list[Entry]:
    """`count` tasks of one chain, in the order of their numbers."""
    return [entry(f"{host}/{chain}/{number}", chain=chain, **fields) for number in range(count)]


def step_of(lease: Lease) -> str:
    return lease.task.url.rpartition("/")[2]


async def only(client: Client) -> Lease:
    """The one task that can be leased now, though the request is for nine."""
    return await client.lease_one(9)


async def run_off(client: Client) -> list[str]:
    """Finish tasks one by one until none can be leased. Returns the last parts of their URLs."""
    seen = []
    while leases := await client.lease(9):
        assert len(leases) == 1, "two at once"
        seen.append(step_of(leases[0]))
        await client.end(leases[0])
    return seen


class TestChain:
    async def test_goes_in_the_order_in_which_it_was_added(self, backend: Backend) -> None:
        client = backend.client()
        first, second, third, fourth = steps(4)
        await client.start(second, first)
        await client.add(fourth)
        await client.add(third)
        assert await run_off(client) == ["1", "0", "3", "2"]

    async def test_priorities_change_nothing_within_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(
            *(entry(f"{HOST}/{n}", chain=CHAIN, priority=p) for n, p in enumerate([0, 5, 0, 9, 5]))
        )
        assert await run_off(client) == ["0", "1", "2", "3", "4"]

    async def test_a_task_that_is_let_go_has_its_priority(self, backend: Backend) -> None:
        client = backend.client()
        low, high = steps(2)
        high.task.priority = 9
        await client.start(low, high, entry(f"{HOST}/plain", priority=5))
        assert step_of(await client.lease_one()) == "plain"
        await client.end(await client.lease_one())
        await client.add(entry(f"{HOST}/plain2", priority=5))
        assert step_of(await client.lease_one()) == "1"

    async def test_the_next_one_waits_for_the_end_of_the_one_before(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*steps(2))
        first = await only(client)
        assert await other.lease(9) == []
        await client.end(first)
        assert step_of(await only(other)) == "1"

    @pytest.mark.parametrize("verdict", ENDS)
    async def test_goes_on_after_every_end(self, backend: Backend, verdict: Verdict) -> None:
        client = backend.client()
        await client.start(*steps(2))
        await client.end(await only(client), verdict)
        assert step_of(await only(client)) == "1"

    async def test_two_go_side_by_side(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2, "a"), *steps(2, "b"), *pages(2))
        leases = await client.lease(9)
        assert sorted(lease.task.url.removeprefix("http://") for lease in leases) == [
            *("a.example/0", "a.example/1", "a.example/a/0", "a.example/b/0"),
        ]

    async def test_a_task_joins_one_that_was_done_with(self, backend: Backend) -> None:
        client = backend.client()
        first, second, third = steps(3)
        await client.start(first)
        await client.end(await only(client))
        await client.add(second, third)
        assert await run_off(client) == ["1", "2"]

    async def test_a_duplicate_joins_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(1, "a"), *steps(2, "b"))
        known = entry(f"{HOST}/a/0", chain="b")
        assert (await client.add(known, known)).duplicates == 2
        assert len(await client.lease(9)) == 2
        assert (await client.stats()).waiting == 1

    @pytest.mark.parametrize("name", NAMES)
    async def test_may_be_called_anything(self, backend: Backend, name: str) -> None:
        client = backend.client()
        await client.start(*(entry(f"{HOST}/{number}", chain=name) for number in range(2)))
        assert [lease.task.chain for lease in await client.lease(9)] == [name]
        assert await client.frontier.release(client.crawl, client.worker) == 1
        assert await run_off(client) == ["0", "1"]

    async def test_is_of_its_crawl(self, backend: Backend) -> None:
        client, other = backend.client(), backend.client(crawl="another")
        for each in (client, other):
            await each.start(*steps(2))
        await only(client)
        assert step_of(await only(other)) == "0"

    async def test_keeps_all_else_that_a_task_has(self, backend: Backend) -> None:
        client = backend.client()
        first, second = steps(2, meta={"page": 2}, headers={"X": "y"}, method="POST", body="b")
        await client.start(first, second)
        await client.end(await only(client))
        assert (await only(client)).task == second.task


class TestBlocked:
    """A task that has not ended holds up its chain."""

    async def test_while_it_is_retried(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2))
        await client.end(await only(client), Verdict.RETRY, retry_in_s=5.0)
        assert await client.lease(9) == []
        await backend.advance(5.1)
        again = await only(client)
        assert (step_of(again), again.task.retry_count) == ("0", 1)
        await client.end(again)
        assert step_of(await only(client)) == "1"

    async def test_when_it_is_given_back(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2))
        await client.end(await only(client), Verdict.RETURNED)
        assert await run_off(client) == ["0", "1"]

    async def test_when_its_worker_is_lost(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2), lease_s=2.0, max_losses=9)
        await only(client)
        await backend.advance(2.1)
        assert step_of(await only(client)) == "0"
        await client.frontier.release(client.crawl, client.worker)
        assert await run_off(client) == ["0", "1"], "the suspect, then the next"

    async def test_goes_on_after_poison(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3), lease_s=2.0, max_losses=1)
        await only(client)
        await backend.advance(2.1)
        second = await only(client)
        assert step_of(second) == "1", "in the very step that took the first one back"
        await client.frontier.release(client.crawl, client.worker)
        assert await client.state(second) is TaskState.DEAD
        assert await run_off(client) == ["2"]

    async def test_a_stale_finish_lets_nothing_go(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2))
        stale = await only(client)
        await client.frontier.release(client.crawl, client.worker)
        await only(client)
        assert await client.finish(outcome(stale)) == [stale]
        assert await client.lease(9) == []

    async def test_is_found_waiting_and_says_why(self, backend: Backend) -> None:
        client = backend.client()
        first, second = steps(2)
        await client.start(first, second)
        asked = entry(f"{HOST}/{CHAIN}/1")  # Users ask by URL, without the chain.
        record = await client.record(asked)
        assert (record.state, record.task) == (TaskState.WAITING, second.task)
        assert record.reason == f"waits for an earlier task of chain '{CHAIN}'"
        assert (await client.record(first)).reason == ""
        await client.end(await only(client))
        assert (await client.record(asked)).reason == ""

    async def test_counts_for_the_crawl_and_not_for_its_host(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3))
        stats, host = await client.stats(), await client.host()
        assert (stats.added, stats.waiting, host.waiting) == (3, 3, 1)
        await only(client)
        grant = await client.ask(9)
        assert grant.leases == []
        assert grant.wait_s, "not before the lease may expire"
        stats, host = await client.stats(), await client.host()
        assert (stats.waiting, stats.leased, host.waiting, host.leased) == (2, 1, 0, 1)

    async def test_those_who_ask_are_told_how_much_is_left(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3), *steps(5, "long"), *pages(4))
        chains = partial(client.frontier.chains, client.crawl)
        assert await chains(9) == [Chain("long", 5), Chain(CHAIN, 3)]
        assert len(await chains(1)) == 1
        for lease in await client.lease(9):
            await client.end(lease)
        assert await chains(9) == [Chain("long", 4), Chain(CHAIN, 2)]
        await client.work_off()
        assert await chains(9) == []

    async def test_nothing_is_left_of_a_cancelled_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3))
        await client.control(Control.CANCEL)
        assert await client.frontier.chains(client.crawl, 9) == []


class TestFollowUpsOfChains:
    async def test_go_behind_what_waits(self, backend: Backend) -> None:
        client = backend.client()
        first, second, third = steps(3)
        await client.start(first, second)
        await client.end(await only(client), follow_ups=[third])
        assert await run_off(client) == ["1", "2"]

    async def test_of_the_last_one_go_on(self, backend: Backend) -> None:
        client = backend.client()
        first, *others = steps(4)
        await client.start(first)
        await client.control(Control.SEAL)
        await client.end(await only(client), follow_ups=others)
        assert await run_off(client) == ["1", "2", "3"]
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_the_target_of_a_redirect_goes_before_what_waits(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3))
        for name in ("once", "twice"):
            came_from = await only(client)
            fields = {"chain": CHAIN, "redirects": [came_from.task.url]}
            target = entry(f"{HOST}/{name}", **fields)
            await client.end(came_from, follow_ups=[target])
        assert await run_off(client) == ["twice", "1", "2"]

    async def test_a_batch_of_many_chains(self, backend: Backend) -> None:
        client = backend.client()
        chains = [steps(3, f"c{number}") for number in range(4)]
        await client.start(*(chain[0] for chain in chains))
        leases = await client.lease(9)
        by_chain = {chain[0].task.chain: chain for chain in chains}
        ends = [outcome(at, follow_ups=by_chain[at.task.chain][1:]) for at in leases]
        assert await client.finish(*ends) == []
        for number in ("1", "2"):
            leases = await client.lease(9)
            assert [step_of(lease) for lease in leases] == [number] * 4
            await client.finish(*map(outcome, leases))


class TestChainAcrossHosts:
    HOSTS = (HOST, "b.example", HOST, "c.example", HOST)

    async def grants(self, backend: Backend) -> list[list[str]]:
        """The steps in each grant, until none is left."""
        client = backend.client()
        await client.start(*(entry(f"{h}/{n}", chain=CHAIN) for n, h in enumerate(self.HOSTS)))
        grants = []
        while leases := await client.lease(9):
            grants.append([step_of(lease) for lease in leases])
            await client.finish(*map(outcome, leases))
        return grants

    async def test_all_steps_are_done_and_those_of_one_host_in_order(
        self, backend: Backend
    ) -> None:
        order = [step for grant in await self.grants(backend) for step in grant]
        assert [step for step in order if self.HOSTS[int(step)] == HOST] == ["0", "2", "4"]
        assert sorted(order) == ["0", "1", "2", "3", "4"]

    async def test_all_steps_go_one_after_the_other(self, backend: Backend) -> None:
        backend.needs("chains_across_hosts")
        assert await self.grants(backend) == [["0"], ["1"], ["2"], ["3"], ["4"]]
