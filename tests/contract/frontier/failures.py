"""Kinds of failures are counted, stored with dead tasks, and select what to retry or purge."""

from __future__ import annotations

from collections import Counter

import pytest

from shoal.core.failures import FailureKind
from shoal.errors import ConfigError
from shoal.frontier.facts import DEAD_AT_ONCE
from shoal.frontier.values import ALL_DEAD, Control, CrawlState, DeadFilter, TaskState, Verdict
from support.exits import ASK_EVERY_S, exit_client, laned_pages, pass_time, put_pool
from support.frontiers import CRAWL, HOST, Backend, Client, outcome, pages

OTHER_HOST = "b.example"
TIMEOUT, HANDLER, LOGIN = FailureKind.TIMEOUT, FailureKind.HANDLER, FailureKind.LOGIN
OF_TWO_HOSTS = [*pages(3), *pages(2, OTHER_HOST)]


async def with_kinds(backend: Backend) -> Client:
    """A finished crawl: one task of each host died of a timeout, the others of their handler."""
    client = backend.client()
    await client.start(*OF_TWO_HOSTS, concurrency_per_host=9)
    await client.control(Control.SEAL)
    leases = await client.lease(9)
    assert len(leases) == len(OF_TWO_HOSTS)
    for lease in leases:
        kind = TIMEOUT if lease.task.url.endswith("/0") else HANDLER
        await client.end(lease, Verdict.DEAD, kind=kind, reason=f"it was {kind}")
    return client


def of(kind: FailureKind | None = None, host: str | None = None) -> DeadFilter:
    return DeadFilter(kind=kind, host=host)


FILTERS = [
    (ALL_DEAD, 5),
    (of(TIMEOUT), 2),
    (of(HANDLER), 3),
    (of(LOGIN), 0),
    (of(host=HOST), 3),
    (of(host="c.example"), 0),
    (of(TIMEOUT, OTHER_HOST), 1),
    (of(LOGIN, HOST), 0),
    (DeadFilter(kind=HANDLER, fingerprints=[at.fingerprint for at in OF_TWO_HOSTS[:2]]), 1),
    (DeadFilter(host=OTHER_HOST, fingerprints=[at.fingerprint for at in OF_TWO_HOSTS[:2]]), 0),
    (DeadFilter(fingerprints=[OF_TWO_HOSTS[0].fingerprint, b"unheard."]), 1),
    (DeadFilter(fingerprints=[]), 0),
]


class TestFailureKinds:
    async def test_failed_tries_are_counted(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), *pages(1, OTHER_HOST), concurrency_per_host=9)
        leases = {lease.task.url: lease for lease in await client.lease(9)}
        await client.finish(
            outcome(leases[f"http://{HOST}/0"], Verdict.RETRY, kind=TIMEOUT, retry_in_s=1.0),
            outcome(leases[f"http://{HOST}/1"], Verdict.DEAD, kind=TIMEOUT),
            outcome(leases[f"http://{HOST}/2"], Verdict.DEAD, kind=HANDLER),
            outcome(leases[f"http://{OTHER_HOST}/0"], Verdict.DEAD, kind=TIMEOUT),
        )
        assert (await client.stats()).failures_by_kind == {TIMEOUT: 3, HANDLER: 1}
        assert (await client.host()).failures_by_kind == {TIMEOUT: 2, HANDLER: 1}
        assert (await client.host(OTHER_HOST)).failures_by_kind == {TIMEOUT: 1}

    async def test_other_ends_are_none(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=9)
        done, dropped, returned = await client.lease(9)
        await client.end(done)
        await client.end(dropped, Verdict.DROPPED, kind=FailureKind.STATUS_4XX)
        await client.end(returned, Verdict.RETURNED, kind=FailureKind.EXIT)
        assert (await client.stats()).failures_by_kind == {}
        assert (await client.host()).failures_by_kind == {}

    async def test_a_stale_lease_counts_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), lease_s=10.0)
        lease = await client.lease_one()
        await backend.advance(11.0)
        await client.lease(9)
        await client.finish(outcome(lease, Verdict.DEAD, kind=HANDLER))
        assert (await client.stats()).failures_by_kind == {}

    async def test_poison_is_one(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), max_losses=1, lease_s=10.0)
        await client.lease_one()
        await client.frontier.release(CRAWL, client.worker)
        (dead,) = await client.frontier.dead(CRAWL, 9)
        assert dead.kind is FailureKind.POISON
        assert (await client.host()).failures_by_kind == {FailureKind.POISON: 1}

    async def test_so_is_the_lack_of_exits(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 0, timeout_s=2 * ASK_EVERY_S)
        await client.begin(*laned_pages(2))
        await pass_time(backend, client, 4 * ASK_EVERY_S)
        for dead in await client.frontier.dead(client.crawl, 9):
            assert dead.kind is FailureKind.EXIT
        assert (await client.stats()).failures_by_kind == {FailureKind.EXIT: 2}
        which = DeadFilter(host=HOST, kind=FailureKind.EXIT)
        assert await client.frontier.purge_dead(client.crawl, which) == 2

    async def test_stay_with_what_is_dead(self, backend: Backend) -> None:
        client = await with_kinds(backend)
        for dead in await client.frontier.dead(CRAWL, 9):
            assert dead.reason == f"it was {dead.kind}"
            assert (await client.record(dead)).kind is dead.kind

    async def test_a_fresh_start_forgets_the_kind_and_not_the_count(self, backend: Backend) -> None:
        client = await with_kinds(backend)
        counted = (await client.stats()).failures_by_kind
        await client.frontier.retry_dead(CRAWL, of(host=OTHER_HOST))
        assert (await client.record(OF_TWO_HOSTS[-1])).kind is None
        assert (await client.stats()).failures_by_kind == counted == {TIMEOUT: 2, HANDLER: 3}

    async def test_a_crawl_that_begins_anew_has_none(self, backend: Backend) -> None:
        client = await with_kinds(backend)
        await client.frontier.forget(CRAWL)
        await client.start(*pages(1))
        assert (await client.stats()).failures_by_kind == {}
        assert (await client.host()).failures_by_kind == {}

    async def test_survive_the_frontiers_client(self, backend: Backend) -> None:
        await with_kinds(backend)
        await backend.reopen()
        client = backend.client()
        assert (await client.stats()).failures_by_kind == {TIMEOUT: 2, HANDLER: 3}


class TestDeadByKindAndHost:
    @pytest.mark.parametrize(("which", "count"), FILTERS)
    async def test_are_listed(self, backend: Backend, which: DeadFilter, count: int) -> None:
        client = await with_kinds(backend)
        found = await client.frontier.dead(CRAWL, 9, None, which)
        assert len(found) == count
        for dead in found:
            assert which.kind in (None, dead.kind)
            assert which.host in (None, dead.task.site)

    @pytest.mark.parametrize(("which", "count"), FILTERS)
    async def test_a_dry_run_counts_them(
        self, backend: Backend, which: DeadFilter, count: int
    ) -> None:
        client = await with_kinds(backend)
        before = await client.snapshot()
        assert await client.frontier.retry_dead(CRAWL, which, dry_run=True) == count
        assert await client.frontier.purge_dead(CRAWL, which, dry_run=True) == count
        assert await client.snapshot() == before, "nothing has changed"

    @pytest.mark.parametrize(("which", "count"), FILTERS)
    async def test_are_retried(self, backend: Backend, which: DeadFilter, count: int) -> None:
        client = await with_kinds(backend)
        chosen = {at.fingerprint for at in await client.frontier.dead(CRAWL, 9, None, which)}
        assert await client.frontier.retry_dead(CRAWL, which) == count
        stats = await client.stats()
        assert (stats.waiting, stats.dead) == (count, 5 - count)
        assert stats.state is (CrawlState.RUNNING if count else CrawlState.FINISHED)
        assert {lease.fingerprint for lease in await client.lease(9)} == chosen

    @pytest.mark.parametrize(("which", "count"), FILTERS)
    async def test_are_purged(self, backend: Backend, which: DeadFilter, count: int) -> None:
        client = await with_kinds(backend)
        chosen = await client.frontier.dead(CRAWL, 9, None, which)
        assert await client.frontier.purge_dead(CRAWL, which) == count
        stats = await client.stats()
        assert (stats.dropped, stats.dead) == (count, 5 - count)
        for dead in chosen:
            assert await client.state(dead) is TaskState.DROPPED

    @pytest.mark.parametrize("host", [None, HOST])
    async def test_those_that_die_later_may_be_left_out(
        self, backend: Backend, host: str | None
    ) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=9)
        *early, late = await client.lease(9)
        for lease in early:
            await client.end(lease, Verdict.DEAD, kind=HANDLER)
        newest, *_ = await client.frontier.dead(CRAWL, 9)
        await backend.advance(1.0)
        await client.end(late, Verdict.DEAD, kind=HANDLER)
        which = DeadFilter(host=host, died_by=newest.place.died_at)
        named = DeadFilter(
            fingerprints=[early[0].fingerprint, late.fingerprint], died_by=which.died_by
        )

        assert await client.frontier.retry_dead(CRAWL, which, dry_run=True) == 2
        assert await client.frontier.retry_dead(CRAWL, named, dry_run=True) == 1
        assert await client.frontier.dead(CRAWL, 1, None, which) == [newest]
        assert len(await client.frontier.dead(CRAWL, 9, newest.place, which)) == 1
        assert await client.frontier.retry_dead(CRAWL, which) == 2
        assert [dead.fingerprint for dead in await client.frontier.dead(CRAWL, 9)] == [
            late.fingerprint
        ]

    async def test_are_listed_page_by_page(self, backend: Backend) -> None:
        client = await with_kinds(backend)
        first, second, third = await client.frontier.dead(CRAWL, 9, None, of(HANDLER))
        assert await client.frontier.dead(CRAWL, 1, None, of(HANDLER)) == [first]
        assert await client.frontier.dead(CRAWL, 1, first.place, of(HANDLER)) == [second]
        assert await client.frontier.dead(CRAWL, 9, second.place, of(HANDLER)) == [third]
        assert await client.frontier.dead(CRAWL, 9, third.place, of(HANDLER)) == []

    async def test_a_cancelled_crawl_only_counts(self, backend: Backend) -> None:
        client = await with_kinds(backend)
        await client.frontier.retry_dead(CRAWL, of(TIMEOUT))
        await client.control(Control.CANCEL)
        assert await client.frontier.retry_dead(CRAWL, of(HANDLER), dry_run=True) == 3
        with pytest.raises(ConfigError, match="cancelled"):
            await client.frontier.retry_dead(CRAWL, of(HANDLER))
        assert await client.frontier.retry_dead(CRAWL, of(LOGIN)) == 0
        assert (await client.stats()).dead == 3

    async def test_many_go_part_by_part(self, backend: Backend) -> None:
        count = 2 * DEAD_AT_ONCE + 10
        client = backend.client()
        await client.start(*pages(count), concurrency_per_host=count)
        kinds: Counter[FailureKind] = Counter()
        while leases := await client.lease(count):
            ended = [
                outcome(lease, Verdict.DEAD, kind=HANDLER if number % 3 else TIMEOUT)
                for number, lease in enumerate(leases)
            ]
            kinds.update(each.kind for each in ended)
            await client.finish(*ended)
        frontier = client.frontier
        assert (await client.stats()).failures_by_kind == kinds
        assert await frontier.purge_dead(CRAWL, of(HANDLER), dry_run=True) == kinds[HANDLER]
        assert len(await frontier.dead(CRAWL, count, None, of(HANDLER))) == kinds[HANDLER]
        assert await frontier.purge_dead(CRAWL, of(HANDLER)) == kinds[HANDLER]
        assert await frontier.retry_dead(CRAWL) == kinds[TIMEOUT]
        assert (await client.stats()).dead == 0


class TestLeased:
    async def test_says_who_has_what_since_when(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*pages(1), *pages(1, OTHER_HOST), lease_s=30.0)
        began = backend.clock.now
        mine = await client.lease_one()
        await backend.advance(2.0)
        theirs = await other.lease_one()
        first, second = await client.frontier.leased(CRAWL, 9)
        assert (first.url, first.host, first.worker) == (mine.task.url, mine.task.site, "worker")
        assert (second.url, second.worker) == (theirs.task.url, "another")
        assert first.fingerprint == mine.fingerprint
        assert (first.since, second.since) == pytest.approx((began, began + 2.0))
        assert (first.expires, second.expires) == pytest.approx((began + 30.0, began + 32.0))

    async def test_those_first_that_expire_first(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), concurrency_per_host=9, lease_s=30.0)
        leases = await client.lease(9)
        await backend.advance(1.0)
        await client.renew(*leases[:2])
        (first,) = await client.frontier.leased(CRAWL, 1)
        assert first.fingerprint == leases[2].fingerprint

    async def test_says_how_often_it_had_failed(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        await client.end(await client.lease_one(), Verdict.RETRY)
        await backend.advance(0.01)
        await client.lease_one()
        assert [at.tries for at in await client.frontier.leased(CRAWL, 9)] == [1]

    async def test_what_waits_or_has_ended_is_in_nobodys_hands(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4), rate="none", concurrency_per_host=9)
        done, delayed, _ = await client.lease(3)
        await client.end(done)
        await client.end(delayed, Verdict.RETRY, retry_in_s=0.5)
        assert len(await client.frontier.leased(CRAWL, 9)) == 1
        await client.control(Control.CANCEL)
        assert await client.frontier.leased(CRAWL, 9) == []

    async def test_of_lanes_too(self, backend: Backend) -> None:
        client = exit_client(backend)
        await put_pool(client.frontier, 2)
        await client.begin(*laned_pages(1))
        (lease,) = await client.take()
        (leased,) = await client.frontier.leased(client.crawl, 9)
        assert (leased.url, leased.host) == (lease.task.url, HOST)
