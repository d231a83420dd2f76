"""Exits that cost money: spending is counted, and stays within the budget."""

from __future__ import annotations

import pytest

from shoal.frontier.values import Verdict
from support.exits import (
    GOOD,
    LONG_S,
    SECOND_HOST,
    another_client,
    exit_client,
    give_back,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, Backend

PERIOD_S = 1000.0
"""The clock of the tests starts at the beginning of a period."""
GB, MB = 1e9, 1_000_000


class TestBudget:
    async def test_is_never_overspent_by_what_is_in_flight(self, backend: Backend) -> None:
        client, other = exit_client(backend), another_client(backend, crawl="other")
        money = {"per_request": 1.0, "budget": 5.0, "budget_period_s": PERIOD_S}
        await put_pool(client.frontier, 4, timeout_s=LONG_S, **money)
        await client.begin(*laned_pages(9))
        await other.begin(*laned_pages(9, SECOND_HOST))
        leases = await client.take(3)
        others = await other.take()
        assert (len(leases), len(others)) == (3, 2)
        assert await client.take() == []
        await backend.advance(A_MOMENT_S)
        await client.good(*leases)
        await other.good(*others)
        spent = (await client.pool()).spent
        assert (spent.requests, spent.leased) == (5, 0)
        assert spent.spent == pytest.approx(5.0)
        for _ in range(3):
            await backend.advance(PERIOD_S / 5)
            assert await client.take() == [], "not in this period"
        assert (await client.ask()).wait_s is not None
        await backend.advance(PERIOD_S)
        assert len(await client.take()) == 5
        assert (await client.pool()).spent.total == pytest.approx(5.0)

    async def test_what_was_not_sent_costs_nothing(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, per_request=1.0, budget=1.0, timeout_s=LONG_S)
        await client.begin(*laned_pages(9))
        for _ in range(3):
            leases = await client.take()
            assert len(leases) == 1
            await give_back(client, leases)
            await settle(backend)
        assert (await client.pool()).spent.spent == 0.0

    async def test_what_was_lost_is_not_set_aside_any_more(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, per_request=1.0, budget=2.0, timeout_s=LONG_S)
        await client.begin(*laned_pages(9))
        assert len(await client.take()) == 2
        await client.frontier.release(client.crawl, client.worker)
        await settle(backend)
        assert len(await client.take()) == 2
        assert (await client.pool()).spent.leased == 2

    async def test_bytes_are_paid_for_and_the_most_is_set_aside(self, backend: Backend) -> None:
        client = exit_client(backend)
        money = {"per_gb": GB / MB, "most_bytes": MB, "budget": 3.0}
        await put_pool(client.frontier, 1, timeout_s=LONG_S, **money)
        await client.begin(*laned_pages(20))
        leases = await client.take()
        assert len(leases) == 3
        await client.good(*leases, wire_bytes=MB // 10)
        spent = (await client.pool()).spent
        assert spent.spent == pytest.approx(0.3)
        assert spent.wire_bytes == 3 * MB // 10
        await settle(backend)
        assert len(await client.take()) == 2, "0.3 and thrice 1.0 are more than there is"

    async def test_every_answer_is_paid_for(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 4, per_request=0.5, per_gb=GB / MB)
        await client.begin(*laned_pages(9))
        good, bad, gone, lost = await client.take(4)
        await backend.advance(A_MOMENT_S)
        await client.good(good, wire_bytes=MB)
        await client.blocked(bad)
        await client.end(gone, Verdict.DROPPED, passage=GOOD, wire_bytes=MB)
        await client.end(lost, Verdict.RETURNED)
        spent = (await client.pool()).spent
        assert spent.total == pytest.approx(3.5)
        assert spent.requests == 3
        exits = await client.frontier.exits("dc")
        assert sum(each.requests for each in exits) == 3
        assert sum(each.wire_bytes for each in exits) == 2 * MB
        assert (await client.stats()).wire_bytes == 2 * MB

    async def test_none_is_as_much_as_it_takes(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 4, per_request=1e9)
        await client.begin(*laned_pages(9))
        assert len(await client.take()) == 9

    async def test_a_higher_one_counts_at_once(self, backend: Backend) -> None:
        client = exit_client(backend)
        for budget in (1.0, 2.0, 4.0):
            money = {"per_request": 1.0, "budget": budget}
            await put_pool(client.frontier, 1, timeout_s=LONG_S, **money)
            if budget == 1.0:
                await client.begin(*laned_pages(9))
            await settle(backend)
            assert len(await client.take()) == max(budget / 2, 1.0)

    async def test_is_kept_over_a_restart(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 1, per_request=1.0, budget=2.0, timeout_s=LONG_S)
        await client.begin(*laned_pages(9))
        await client.good(await client.lease_one())
        await backend.reopen()
        client = exit_client(backend)
        await settle(backend)
        assert len(await client.take()) == 1
