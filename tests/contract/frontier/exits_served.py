"""Lanes of exits: their state after a step, however often the step looks at them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoal.frontier.values import Verdict
from support.exits import (
    BLOCK,
    HOURS,
    RES,
    exit_client,
    exit_id,
    exits_of,
    give_back,
    laned,
    laned_pages,
    put_pool,
    urls_of,
)
from support.frontiers import A_MOMENT_S, HOST, Backend

TIMES = 8
"""Chance decides whether a step looks at a lane once or twice."""


class TestWhatWasServed:
    @pytest.mark.parametrize("limit", [2, 3, 40])
    async def test_and_emptied_gives_at_once_what_comes_in(
        self, backend: Backend, limit: int
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 9)
        await client.begin(laned(f"{HOST}/first"))
        assert urls_of(await client.lease(limit)) == [f"{HOST}/first"]
        await client.add(laned(f"{HOST}/second"))
        assert urls_of(await client.lease(limit)) == [f"{HOST}/second"]

    async def test_lets_nothing_leave_without_an_exit_in_the_same_step(
        self, backend: Backend
    ) -> None:
        """A task that was blocked on the only usable exit stays for the next request for work."""
        client = exit_client(backend)
        await put_pool(client.frontier, 2, allow_direct=True)
        await client.begin(*laned_pages(2))
        blocked, other = await client.lease(2)
        await backend.advance(A_MOMENT_S)
        await client.blocked(blocked)
        said = replace(BLOCK, retry_after_s=HOURS)
        await client.end(other, Verdict.DEAD, blocked=1, passage=said)
        await backend.advance(HOURS / 2)
        await client.add(laned(f"{HOST}/first", priority=9))
        first = await client.lease_one()
        assert exits_of([first]) == exits_of([blocked]), "it is on probation"
        await client.good(first)
        for number in range(TIMES):
            await client.add(*(laned(f"{HOST}/{number}/{n}", priority=9) for n in range(2)))
            leases = await client.lease(3)
            assert exits_of(leases) == exits_of([blocked]) * 2
            await client.good(*leases)
            (direct,) = await client.lease(3)
            assert (urls_of([direct]), exits_of([direct])) == (urls_of([blocked]), [""])
            await give_back(client, [direct])


class TestPoolsThatChange:
    async def test_are_looked_at_though_they_go_up_to_no_other_any_more(
        self, backend: Backend
    ) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, RES)
        await put_pool(client.frontier, 0, escalate_to=RES)
        await client.begin(*laned_pages(1))
        assert await client.take() == []
        await put_pool(client.frontier, 1)
        assert exits_of(await client.take()) == [exit_id(0)]
