"""Identities: the turns at a host that logins ask for."""

from __future__ import annotations

import pytest

from shoal.core.policy import SEND_SLACK_S
from shoal.frontier.values import Pushback
from support.exits import (
    RES,
    SECOND_HOST,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend, pages
from support.sessions import (
    ALICE,
    BOB,
    begin_by_exits,
    put_group,
    session_client,
    session_pages,
)


class TestTurns:
    async def test_are_as_far_apart_as_the_rate_has_it(self, backend: Backend) -> None:
        client = session_client(backend)
        await client.begin(rate="1/s")
        turn = client.frontier.turn
        assert await turn(client.crawl, HOST, None) == 0.0
        wait_s = await turn(client.crawl, HOST, None)
        assert 0.9 <= wait_s <= 1.0 + 2 * SEND_SLACK_S
        await backend.advance(wait_s / 2)
        assert 0.0 < await turn(client.crawl, HOST, None) < wait_s
        await backend.advance(wait_s / 2 + A_MOMENT_S)
        assert await turn(client.crawl, HOST, None) == 0.0
        assert await turn(client.crawl, SECOND_HOST, None) == 0.0, "another host is another"

    async def test_without_a_rate_all_are_at_once(self, backend: Backend) -> None:
        client = session_client(backend)
        await client.begin()
        for _ in range(3):
            assert await client.frontier.turn(client.crawl, HOST, None) == 0.0

    async def test_leases_wait_for_them_and_they_for_leases(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(9), *pages(9), rate="1/m")
        assert len(await client.take()) == 1
        wait_s = await client.frontier.turn(client.crawl, HOST, None)
        assert wait_s == pytest.approx(60.0, abs=1.0)
        await backend.advance(wait_s + A_MOMENT_S)
        assert await client.frontier.turn(client.crawl, HOST, None) == 0.0
        grant = await client.ask(5)
        assert grant.leases == []
        assert grant.wait_s == pytest.approx(60.0, abs=1.0)
        await backend.advance(61.0)
        assert len(await client.take()) == 1

    async def test_take_no_room(self, backend: Backend) -> None:
        client = session_client(backend)
        await put_group(client.frontier, ALICE, BOB)
        await client.begin(*session_pages(2), concurrency_per_host=1)
        assert len(await client.take()) == 1
        assert await client.frontier.turn(client.crawl, HOST, None) == 0.0
        assert (await client.host()).leased == 1

    async def test_heed_a_host_that_wants_less(self, backend: Backend) -> None:
        client = session_client(backend)
        await client.begin(*pages(2))
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.end(lease, pushback=Pushback(retry_after_s=100.0))
        wait_s = await client.frontier.turn(client.crawl, HOST, None)
        assert wait_s == pytest.approx(100.0, abs=1.0)

    @pytest.mark.parametrize("clock", ["interval_s", "pair_interval_s"])
    async def test_by_an_exit_wait_for_its_clocks_too(self, backend: Backend, clock: str) -> None:
        client = await begin_by_exits(backend, exits=1, **{clock: 10.0})
        (lease,) = await client.take()
        turn = client.frontier.turn
        assert await turn(client.crawl, HOST, lease.lent) == pytest.approx(10.0, abs=0.1)
        assert await turn(client.crawl, HOST, None) == 0.0, "nothing was reserved"
        await backend.advance(10.0 + A_MOMENT_S)
        assert await turn(client.crawl, HOST, lease.lent) == 0.0
        assert await turn(client.crawl, HOST, lease.lent) == pytest.approx(10.0, abs=0.1)
        wait_s = await turn(client.crawl, SECOND_HOST, lease.lent)
        assert (wait_s == 0.0) == (clock == "pair_interval_s")
        await client.log_in(lease)
        await settle(backend)
        assert await client.take() == [], "a lease waits for it as well"
        await backend.advance(10.0)
        assert len(await client.take()) == 1
        exit_ = (await client.frontier.exits(RES))[0]
        assert exit_.leased == 1

    async def test_by_an_exit_that_is_gone_wait_for_the_host_only(self, backend: Backend) -> None:
        client = await begin_by_exits(backend, exits=1, interval_s=10.0)
        (lease,) = await client.take()
        assert lease.lent is not None
        await client.frontier.put_pool((await client.pool(RES)).rules, [])
        await client.frontier.turn(client.crawl, HOST, lease.lent)
        await backend.advance(10.0 + A_MOMENT_S)
        assert await client.frontier.turn(client.crawl, HOST, lease.lent) == 0.0
