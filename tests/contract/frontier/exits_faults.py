"""Exits that cannot be used, or cannot reach a host: which side is at fault, and for how long."""

from __future__ import annotations

import pytest

from shoal.core.exit_policy import (
    AGREE,
    AGREE_S,
    FAULTS_OUT,
    OUT_FIRST_S,
    OUT_LIMIT_S,
    UNREACHED_FIRST_S,
)
from shoal.core.exits import Blame
from support.exits import (
    LONG_S,
    SECOND_HOST,
    ExitClient,
    another_client,
    exit_client,
    exit_id,
    exits_of,
    laned_pages,
    put_pool,
    settle,
)
from support.frontiers import A_MOMENT_S, HOST, Backend


async def begin(backend: Backend, *hosts: str, exits: int = 1, **rules: object) -> ExitClient:
    client = exit_client(backend)
    await put_pool(client.frontier, exits, timeout_s=LONG_S, **rules)
    await client.begin(*(page for host in hosts or (HOST,) for page in laned_pages(20, host)))
    return client


async def fail(backend: Backend, client: ExitClient, times: int = FAULTS_OUT) -> None:
    """Finish `times` tasks in a row with a fault of their exit."""
    for _ in range(times):
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.faulty(lease)


class TestFaults:
    async def test_three_in_a_row_put_an_exit_out(self, backend: Backend) -> None:
        client = await begin(backend, HOST, SECOND_HOST)
        await fail(backend, client, FAULTS_OUT - 1)
        assert (await client.pool()).out == 0
        await fail(backend, client, 1)
        assert (await client.exit()).faults == FAULTS_OUT
        pool = await client.pool()
        assert (pool.exits, pool.ready, pool.out) == (1, 0, 1)
        await backend.advance(OUT_FIRST_S - 1.0)
        assert await client.take() == [], "nor at another host"
        await backend.advance(1.0)
        assert len(await client.take()) == 1

    async def test_no_try_is_counted(self, backend: Backend) -> None:
        client = await begin(backend, exits=2)
        first = await client.lease_one()
        await client.faulty(first)
        stats = await client.stats()
        assert (stats.sent, stats.retries, stats.waiting) == (0, 0, 20)
        exit_ = await client.exit()
        assert (exit_.requests, exit_.faults, exit_.leased) == (0, 1, 0)
        again = await client.lease_one()
        assert again.fingerprint == first.fingerprint
        assert exits_of([again]) == [exit_id(1)]
        assert again.lent is not None
        assert (again.task.retry_count, again.lent.blocks) == (0, 0)
        assert (await client.host()).failed == 0

    async def test_then_one_is_tried_and_all_is_well(self, backend: Backend) -> None:
        client, other = await begin(backend, HOST, SECOND_HOST), another_client(backend)
        await fail(backend, client)
        await backend.advance(OUT_FIRST_S + A_MOMENT_S)
        (probe,) = await client.take()
        await settle(backend)
        assert await other.take() == []
        await client.good(probe)
        assert (await client.exit()).faults == 0
        await settle(backend)
        assert len(await other.take()) == 8

    async def test_or_it_is_out_for_twice_as_long(self, backend: Backend) -> None:
        client = await begin(backend)
        await fail(backend, client)
        wait_s = OUT_FIRST_S
        for _ in range(7):
            assert await client.take() == []
            await backend.advance(wait_s - 0.5)
            assert await client.take() == []
            await backend.advance(0.5)
            await fail(backend, client, 1)
            wait_s = min(2 * wait_s, OUT_LIMIT_S)
        assert wait_s == OUT_LIMIT_S

    async def test_an_answer_in_between_begins_anew(self, backend: Backend) -> None:
        client = await begin(backend)
        for _ in range(3):
            await fail(backend, client, FAULTS_OUT - 1)
            await client.good(await client.lease_one())
        assert (await client.pool()).out == 0

    async def test_so_does_a_block_it_brought_the_answer(self, backend: Backend) -> None:
        client = await begin(backend)
        await fail(backend, client, FAULTS_OUT - 1)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.blocked(lease, retry_in_s=LONG_S)
        assert (await client.exit()).faults == 0

    async def test_what_left_before_says_nothing_new(self, backend: Backend) -> None:
        client = await begin(backend)
        leases = await client.take(8)
        for lease in leases:
            await backend.advance(1.0)
            await client.faulty(lease)
        assert (await client.exit()).faults == FAULTS_OUT
        await backend.advance(OUT_FIRST_S - 5.0 + A_MOMENT_S)
        assert len(await client.take()) == 1

    async def test_others_go_on(self, backend: Backend) -> None:
        client = await begin(backend, exits=2, concurrency=1)
        first, second = await client.take()
        for _ in range(FAULTS_OUT - 1):
            await backend.advance(A_MOMENT_S)
            await client.faulty(first)
            await settle(backend)
            (first,) = await client.take()
        await backend.advance(A_MOMENT_S)
        await client.faulty(first)
        await client.good(second)
        await settle(backend)
        assert exits_of(await client.take()) == exits_of([second])

    async def test_one_that_forges_is_out_at_once(self, backend: Backend) -> None:
        client = await begin(backend)
        lease = await client.lease_one()
        await client.faulty(lease, blame=Blame.FORGED)
        assert (await client.pool()).out == 1
        assert await client.take() == []
        await backend.advance(OUT_LIMIT_S - 1.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await client.take()) == 1

    async def test_all_dead_is_not_all_forgiven(self, backend: Backend) -> None:
        client = await begin(backend, exits=3)
        while (leases := await client.lease(1)) != []:
            await backend.advance(A_MOMENT_S)
            await client.faulty(*leases)
        assert (await client.pool()).out == 3
        for _ in range(8):
            await backend.advance(1.0)
            assert await client.take() == []

    async def test_holds_for_other_crawls_and_after_a_restart(self, backend: Backend) -> None:
        client = await begin(backend)
        await fail(backend, client)
        other = another_client(backend, crawl="other")
        await other.begin(*laned_pages(2, SECOND_HOST))
        assert await other.take() == []
        await backend.reopen()
        client = exit_client(backend)
        assert (await client.exit()).faults == FAULTS_OUT
        await backend.advance(OUT_FIRST_S - 1.0)
        assert await client.take() == []
        await backend.advance(1.0 + A_MOMENT_S)
        assert len(await client.take()) == 1


class TestUnreached:
    async def test_the_pair_cools_for_a_moment(self, backend: Backend) -> None:
        client = await begin(backend)
        for level in range(2):
            lease = await client.lease_one()
            await backend.advance(A_MOMENT_S)
            await client.unreached(lease)
            await client.add(*laned_pages(1, f"h{level}.example"))
            await settle(backend)
            (other,) = await client.take()
            assert other.task.site == f"h{level}.example"
            await client.good(other)
            await backend.advance(UNREACHED_FIRST_S * 2**level - 1.0)
            assert await client.take() == []
            await backend.advance(1.0)
        (probe,) = await client.take()
        assert probe.task.site == HOST

    async def test_it_is_a_try_like_any_other(self, backend: Backend) -> None:
        client = await begin(backend, exits=2)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.unreached(lease)
        record = await client.record(lease)
        assert record.task.retry_count == 1
        assert (await client.exit()).requests == 1

    async def test_if_exits_agree_it_is_the_host(self, backend: Backend) -> None:
        client = await begin(backend, exits=AGREE + 1, concurrency=1)
        leases = await client.take()
        assert len(set(exits_of(leases))) == AGREE + 1
        await backend.advance(A_MOMENT_S)
        await client.unreached(*leases[: AGREE - 1])
        assert (await client.host()).failures == 0
        assert (await client.pool()).cooling == AGREE - 1
        await client.unreached(*leases[AGREE - 1 :])
        assert (await client.host()).failures == 2
        pool = await client.pool()
        assert (pool.cooling, pool.out) == (AGREE - 1, 0)

    async def test_not_if_that_was_long_ago(self, backend: Backend) -> None:
        client = await begin(backend, exits=AGREE, concurrency=1)
        for _ in range(AGREE):
            lease = await client.lease_one()
            await backend.advance(A_MOMENT_S)
            await client.unreached(lease)
            await backend.advance(AGREE_S / 2 + 1.0)
        assert (await client.host()).failures == 0

    async def test_if_hosts_agree_it_is_the_exit(self, backend: Backend) -> None:
        hosts = [f"h{n}.example" for n in range(AGREE + 1)]
        client = await begin(backend, *hosts)
        leases = {lease.task.site: lease for lease in await client.take(8)}
        while len(leases) < AGREE:
            pytest.fail("one host was served more often than the others together")
        await backend.advance(A_MOMENT_S)
        for number, site in enumerate(sorted(leases)[:AGREE]):
            assert (await client.pool()).out == 0, number
            await client.unreached(leases[site])
        assert (await client.pool()).out == 1
        assert (await client.exit()).faults == FAULTS_OUT
        for site in sorted(leases)[:AGREE]:
            assert (await client.host(site)).failures == 0

    async def test_an_answer_ends_it(self, backend: Backend) -> None:
        client = await begin(backend)
        lease = await client.lease_one()
        await backend.advance(A_MOMENT_S)
        await client.unreached(lease)
        await backend.advance(UNREACHED_FIRST_S + A_MOMENT_S)
        (probe,) = await client.take()
        await client.good(probe)
        await settle(backend)
        assert len(await client.take()) == 8
