"""Chains that are cancelled, retried, purged or worked on by many."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial

from contract.frontier.chains import only, run_off, step_of, steps
from shoal.frontier.values import Control, CrawlState, DeadFilter, TaskState, Verdict
from support.frontiers import A_MOMENT_S, Backend, Client, outcome, pages
from support.until import until


class TestChainsLookedAfter:
    async def test_cancel_drops_all(self, backend: Backend) -> None:
        client = backend.client()
        tasks = steps(3)
        await client.start(*tasks)
        await only(client)
        await client.control(Control.CANCEL)
        stats = await client.stats()
        assert (stats.dropped, stats.remaining) == (3, 0)
        assert await client.state(tasks[2]) is TaskState.DROPPED

    async def test_one_started_over_knows_nothing_of_the_old(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3))
        await only(client)
        await client.frontier.forget(client.crawl)
        await client.start(*steps(3))
        assert await run_off(client) == ["0", "1", "2"]

    async def test_what_is_retried_waits_for_its_turn(self, backend: Backend) -> None:
        """Retried tasks go before later ones of the chain that have not begun, in the order of the
        chain, not of the retries."""
        client = backend.client()
        tasks = steps(5)
        await client.start(*tasks)
        for _ in range(2):
            await client.end(await only(client), Verdict.DEAD)
        third = await only(client)
        for dead in (tasks[1], tasks[0]):
            assert (
                await client.frontier.retry_dead(
                    client.crawl, DeadFilter(fingerprints=[dead.fingerprint])
                )
                == 1
            )
        assert await client.lease(9) == []
        assert await client.state(tasks[0]) is TaskState.WAITING
        await client.end(third)
        assert await run_off(client) == ["0", "1", "3", "4"]

    async def test_all_that_is_retried_at_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(4), *pages(1, "b.example"))
        await client.control(Control.SEAL)
        while leases := await client.lease(9):
            await client.finish(*(outcome(lease, Verdict.DEAD) for lease in leases))
        assert (await client.stats()).state is CrawlState.FINISHED
        assert await client.frontier.retry_dead(client.crawl) == 5
        leases = await client.lease(9)
        assert len(leases) == 2
        await client.finish(*map(outcome, leases))
        assert await run_off(client) == ["1", "2", "3"]
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_what_is_purged_holds_nothing_up(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2))
        await client.end(await only(client), Verdict.DEAD)
        assert await client.frontier.purge_dead(client.crawl) == 1
        assert await run_off(client) == ["1"]

    async def test_outlives_a_restart(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3))
        await client.end(await only(client), Verdict.RETURNED)
        await backend.reopen()
        await backend.advance(A_MOMENT_S)
        assert await run_off(backend.client()) == ["0", "1", "2"]


class TestChainRace:
    async def test_many_workers_never_have_two_of_a_chain(self, backend: Backend) -> None:
        fleet = [backend.client(), *(backend.another(f"worker-{n}") for n in range(1, 4))]
        chains = {f"c{n}": steps(8, f"c{n}", f"h{n % 3}.example") for n in range(6)}
        await fleet[0].start(*(chain[0] for chain in chains.values()))
        await fleet[0].control(Control.SEAL)
        in_flight, tries = set[str](), defaultdict[str, list[str]](list)

        async def work(client: Client) -> bool:
            """Lease and finish once. Returns whether the crawl is over."""
            grant, ends = await client.ask(4), []
            for lease in grant.leases:
                name, number = str(lease.task.chain), int(step_of(lease))
                assert name not in in_flight
                in_flight.add(name)
                is_returned = number % 3 == 1 and str(number) not in tries[name]
                tries[name].append(str(number))
                # The next two steps. Usually one of them is known already.
                found = [] if is_returned else chains[name][number + 1 : number + 3]
                verdict = Verdict.RETURNED if is_returned else Verdict.DONE
                ends.append(outcome(lease, verdict, follow_ups=found))
            await asyncio.sleep(0)
            in_flight.difference_update(str(end.lease.task.chain) for end in ends)
            assert await client.finish(*ends) == []
            return grant.state.over

        await asyncio.gather(*(until("the crawl's end", partial(work, each)) for each in fleet))
        assert tries == {name: list("01123445677") for name in chains}
