"""Queries: dead letters, statistics, one URL, hosts, several crawls."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.frontier.admission import Admission
from shoal.frontier.values import (
    Added,
    Control,
    CrawlState,
    DeadFilter,
    Entry,
    HostOrder,
    Record,
    TaskState,
    Verdict,
)
from support.frontiers import CRAWL, HOST, Backend, Client, entry, open_rules, outcome, pages

ODD = f"http://{HOST}/search?q=[1]"


async def with_dead(backend: Backend, count: int) -> tuple[Client, list[Entry]]:
    """A finished crawl whose tasks have all died after a retry."""
    client, entries = backend.client(), pages(count)
    await client.start(*entries, concurrency_per_host=count)
    await client.control(Control.SEAL)
    await client.finish(*(outcome(x, Verdict.RETRY) for x in await client.lease(count)))
    await backend.advance(0.01)
    leases = await client.lease(count)
    await client.finish(*(outcome(x, Verdict.DEAD, reason="broken") for x in leases))
    return client, entries


class TestDead:
    async def test_is_listed_with_its_story(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 5)
        listed = await client.frontier.dead(CRAWL, 9)
        assert sorted(record.task.url for record in listed) == [e.task.url for e in entries]
        assert {record.reason for record in listed} == {"broken"}
        assert {record.task.retry_count for record in listed} == {2}

    async def test_says_when_it_died(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 1)
        died_at = backend.clock.now
        await backend.advance(5.0)
        (listed,) = await client.frontier.dead(CRAWL, 9)
        found = await client.record(entries[0])
        assert (listed.died_at, found.died_at) == pytest.approx((died_at, died_at), abs=1e-5)
        await client.frontier.retry_dead(CRAWL)
        assert (await client.record(entries[0])).died_at is None

    async def test_those_that_died_last_are_listed_first(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(4), concurrency_per_host=4)
        leases = await client.lease(4)
        for lease in leases:
            await client.end(lease, Verdict.DEAD)
            await backend.advance(0.001)
        await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=[leases[1].fingerprint]))
        await client.end(await client.lease_one(), Verdict.DEAD)
        listed = [record.task.url for record in await client.frontier.dead(CRAWL, 9)]
        assert listed == [leases[number].task.url for number in (1, 3, 2, 0)]

    async def test_is_listed_page_by_page_in_a_lasting_order(self, backend: Backend) -> None:
        client, _ = await with_dead(backend, 5)  # All died at the same moment.
        everything = await client.frontier.dead(CRAWL, 9)
        listed: list[Record] = []
        while page := await client.frontier.dead(CRAWL, 2, listed[-1].place if listed else None):
            assert len(page) <= 2
            listed += page
        assert listed == everything

    async def test_paging_goes_on_where_one_was_retried(self, backend: Backend) -> None:
        client, _ = await with_dead(backend, 3)
        first, *others = await client.frontier.dead(CRAWL, 9)
        await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=[first.fingerprint]))
        assert await client.frontier.dead(CRAWL, 9, first.place) == others

    async def test_one_that_dies_while_pages_are_turned_is_not_met(self, backend: Backend) -> None:
        client, _ = await with_dead(backend, 3)
        first, *others = await client.frontier.dead(CRAWL, 9)
        await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=[first.fingerprint]))
        await backend.advance(1.0)
        await client.end(await client.lease_one(), Verdict.DEAD)
        assert await client.frontier.dead(CRAWL, 9, first.place) == others
        again = await client.frontier.dead(CRAWL, 1)
        assert [record.fingerprint for record in again] == [first.fingerprint]

    async def test_nothing_is_dead_at_first(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        assert await client.frontier.dead(CRAWL, 9) == []
        assert await client.frontier.retry_dead(CRAWL) == 0
        assert await client.frontier.purge_dead(CRAWL) == 0


class TestRetryDead:
    async def test_gives_a_fresh_start_and_the_crawl_runs_again(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 3)
        assert (await client.stats()).state is CrawlState.FINISHED
        assert await client.frontier.retry_dead(CRAWL) == 3
        stats = await client.stats()
        assert (stats.state, stats.finished_at) == (CrawlState.RUNNING, None)
        assert (stats.dead, stats.waiting) == (0, 3)
        record = await client.record(entries[0])
        assert (record.state, record.reason, record.losses) == (TaskState.WAITING, "", 0)
        leases = await client.lease(9)
        assert [lease.task.retry_count for lease in leases] == [0, 0, 0]
        await client.finish(*map(outcome, leases))
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_only_the_chosen(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 3)
        unknown, alive = entry("b.example/unknown"), entry("b.example/alive")
        await client.add(alive)
        chosen = [e.fingerprint for e in (entries[1], entries[1], unknown, alive)]
        assert await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=[])) == 0
        assert await client.frontier.retry_dead(CRAWL, DeadFilter(fingerprints=chosen)) == 1
        states = [await client.state(e) for e in entries]
        assert states == ["dead", "waiting", "dead"]

    async def test_a_poisoned_task_may_lose_as_many_again(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), max_losses=2)
        for _ in range(2):
            await client.lease_one()
            await client.frontier.release(CRAWL, client.worker)
        assert await client.frontier.retry_dead(CRAWL) == 1
        lease = await client.lease_one()
        await client.frontier.release(CRAWL, client.worker)
        assert await client.state(lease) is TaskState.WAITING

    async def test_not_in_a_cancelled_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease, Verdict.DEAD)
        await client.control(Control.CANCEL)
        with pytest.raises(ConfigError, match=CRAWL):
            await client.frontier.retry_dead(CRAWL)
        assert await client.state(lease) is TaskState.DEAD


class TestAddWhatIsDead:
    async def test_it_is_known_and_stays_dead(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 2)
        assert await client.add(*entries) == Added(duplicates=2)
        stats = await client.stats()
        assert (stats.dead, stats.state) == (2, CrawlState.FINISHED)

    async def test_one_that_asks_for_it_has_a_fresh_start(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 3)
        new = entry("b.example/new")
        brought = *map(asking, (entries[0], entries[0], new)), entries[1]
        assert await client.add(*brought) == Added(1, 2, 1)
        states = [await client.state(e) for e in (*entries, new)]
        assert states == ["waiting", "dead", "dead", "waiting"]
        assert (await client.stats()).state is CrawlState.RUNNING
        leases = await client.lease(9)
        assert [lease.task.retry_count for lease in leases] == [0, 0]
        await client.finish(*map(outcome, leases))
        assert (await client.stats()).state is CrawlState.FINISHED

    async def test_nothing_that_lives_or_is_done_is_touched(self, backend: Backend) -> None:
        client, entries = backend.client(), pages(3)
        await client.start(*entries)
        await client.end(await client.lease_one())
        states = [await client.state(e) for e in entries]
        assert await client.add(*map(asking, entries)) == Added(duplicates=3)
        assert [await client.state(e) for e in entries] == states

    async def test_not_in_a_cancelled_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        await client.end(lease, Verdict.DEAD)
        await client.control(Control.CANCEL)
        with pytest.raises(ConfigError, match=CRAWL):
            await client.add(*map(asking, pages(1)))
        assert await client.state(lease) is TaskState.DEAD

    async def test_a_crawl_that_nobody_has_started(self, backend: Backend) -> None:
        client = backend.client()
        assert await client.add(*map(asking, pages(2))) == Added(added=2)


def asking(entry: Entry) -> Entry:
    """The entry of a seed with `"retry": true`."""
    return replace(entry, retry=True)


class TestPurgeDead:
    async def test_drops_and_keeps_the_reason(self, backend: Backend) -> None:
        client, entries = await with_dead(backend, 3)
        assert (
            await client.frontier.purge_dead(
                CRAWL, DeadFilter(fingerprints=[entries[0].fingerprint])
            )
            == 1
        )
        assert await client.frontier.purge_dead(CRAWL) == 2
        stats = await client.stats()
        assert (stats.state, stats.dead, stats.dropped) == (CrawlState.FINISHED, 0, 3)
        record = await client.record(entries[0])
        assert record.state is TaskState.DROPPED
        assert "broken" in record.reason
        assert await client.frontier.dead(CRAWL, 9) == []
        assert (await client.add(*entries)).added == 0, "what was purged stays seen"


class TestQueries:
    async def test_find_knows_nothing_of_what_was_never_added(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        assert await client.frontier.find(CRAWL, entry("b.example/")) is None

    async def test_hosts_come_with_the_most_work_first(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), *pages(5, "b.example"), *pages(3, "c.example"))
        leases = await client.lease(3)
        hosts = {host.host: host for host in await client.frontier.hosts(CRAWL, 9)}
        assert list(hosts) == ["b.example", "c.example", "a.example"]
        assert sum(host.leased for host in hosts.values()) == len(leases)
        assert sum(host.waiting for host in hosts.values()) == 9 - len(leases)
        assert len(await client.frontier.hosts(CRAWL, 2)) == 2

    async def test_hosts_come_with_the_slowest_first(self, backend: Backend) -> None:
        client = backend.client()
        latencies = {"a.example": 0.5, "b.example": 4.0, "c.example": 0.0, "d.example": 1.0}
        await client.start(*(entry(f"{host}/{n}") for host in latencies for n in range(2)))
        while leases := await client.lease(9):
            await client.finish(*(outcome(x, latency_s=latencies[x.task.site]) for x in leases))
        hosts = await client.frontier.hosts(CRAWL, 9, HostOrder.SLOWEST)
        assert [host.host for host in hosts] == ["b.example", "d.example", "a.example"]
        assert [host.latency_s for host in hosts] == pytest.approx([4.0, 1.0, 0.5])
        assert len(await client.frontier.hosts(CRAWL, 2, HostOrder.SLOWEST)) == 2

    async def test_hosts_come_with_the_most_failures_first(self, backend: Backend) -> None:
        client = backend.client()
        verdicts = {
            "a.example": [Verdict.DEAD, Verdict.DONE, Verdict.DONE],
            "b.example": [Verdict.DONE, Verdict.DROPPED, Verdict.DONE],
            "c.example": [Verdict.RETRY, Verdict.DEAD, Verdict.DONE],
        }
        await client.start(*(entry(f"{host}/{n}") for host in verdicts for n in range(3)))
        while leases := await client.lease(9):
            for lease in leases:
                await client.end(lease, verdicts[lease.task.site].pop(), retry_in_s=600.0)
        hosts = await client.frontier.hosts(CRAWL, 9, HostOrder.FAILING)
        assert [(host.host, host.failed) for host in hosts] == [("c.example", 2), ("a.example", 1)]
        (first,) = await client.frontier.hosts(CRAWL, 1, HostOrder.FAILING)
        assert first.host == "c.example"

    @pytest.mark.parametrize("order", HostOrder)
    async def test_a_longer_list_of_hosts_has_those_of_a_shorter_one(
        self, backend: Backend, order: HostOrder
    ) -> None:
        """Of hosts that are all alike, too: so a list can be read page by page."""
        client = backend.client()
        await client.start(*(entry(f"h{number}.example/") for number in range(12)))
        await client.finish(
            *(outcome(x, Verdict.DEAD, latency_s=1.0, fault=True) for x in await client.lease(12))
        )
        shorter = set[str]()
        for limit in range(1, 13):
            hosts = {host.host for host in await client.frontier.hosts(CRAWL, limit, order)}
            assert len(hosts) == limit
            assert shorter < hosts
            shorter = hosts

    async def test_what_the_spider_cannot_read_is_no_failure_of_the_host(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start(
            *(entry(f"{host}/{n}") for host in ("a.example", "b.example") for n in range(3))
        )
        for lease in await client.lease(9):
            fault = lease.task.site == "b.example"
            await client.end(lease, Verdict.DEAD, ours=True, fault=fault)
        hosts = await client.frontier.hosts(CRAWL, 9, HostOrder.FAILING)
        assert [(host.host, host.failed) for host in hosts] == [("b.example", 3)]
        assert (await client.stats()).dead == 6

    async def test_crawls_come_newest_first(self, backend: Backend) -> None:
        assert await backend.frontier.crawls() == []
        for name in ("one", "two", "three"):
            await backend.client(crawl=name).start()
            await backend.advance(0.01)
        await backend.client(crawl="one").start()
        crawls = await backend.open_another().crawls()
        assert [stats.crawl for stats in crawls] == ["three", "two", "one"]

    async def test_pages_per_second(self, backend: Backend) -> None:
        client = backend.client()
        assert (await client.start(*pages(9))).pages_per_s == 0.0
        for _ in range(4):
            await backend.advance(0.25)
            await client.end(await client.lease_one())
        # With a real clock, the test may have been held up, but was never early.
        before = (await client.stats()).pages_per_s
        assert 0.1 < before <= 4.01
        for lease in await client.lease(4):
            await client.end(lease, Verdict.DEAD)
        after = (await client.stats()).pages_per_s
        assert before * 1.2 < after <= before * 2.01, "the end comes nearer with dead ones, too"

    async def test_pages_per_second_of_hosts_that_come_after_each_other(
        self, backend: Backend
    ) -> None:
        """The rate is one page per second, across hosts."""
        backend.needs("exact_rate")
        client = backend.client()
        await client.start()
        for host in ("a.example", "b.example"):
            await client.add(*pages(24, host))
            for _ in range(24):
                await backend.advance(1.0)
                await client.end(await client.lease_one())
            assert (await client.stats()).pages_per_s == pytest.approx(1.0, rel=0.15)


class TestFindOthers:
    """Tasks are found by their address, whatever their method, body or session."""

    @staticmethod
    async def urls_at(client: Client, url: str, limit: int = 99) -> list[tuple[str, TaskState]]:
        found = await client.frontier.find_others(CRAWL, HOST, lambda other: other == url, limit)
        return sorted((record.task.method, record.state) for record in found)

    async def test_finds_a_task_wherever_it_is(self, backend: Backend) -> None:
        client = backend.client()
        odd = Admission(open_rules()).admit(Task(url=ODD, method="POST", body="q", priority=3))
        await client.start(odd, *pages(3), concurrency_per_host=9)
        assert await self.urls_at(client, ODD) == [("POST", "waiting")]
        lease = await client.lease_one()
        assert lease.fingerprint == odd.fingerprint
        (record,) = await client.frontier.find_others(CRAWL, HOST, lambda url: url == ODD, 9)
        assert record == await client.record(odd)
        assert (record.state, record.worker) == (TaskState.LEASED, client.worker)
        await client.end(lease, Verdict.RETRY, retry_in_s=60.0)
        assert await self.urls_at(client, ODD) == [("POST", "delayed")]
        await backend.advance(61)
        (lease,) = [at for at in await client.lease(9) if at.fingerprint == odd.fingerprint]
        await client.end(lease, Verdict.DEAD, reason="broken", detail="Traceback")
        (record,) = await client.frontier.find_others(CRAWL, HOST, lambda url: url == ODD, 9)
        assert record == await client.record(odd)
        assert (record.state, record.reason, record.detail) == ("dead", "broken", "Traceback")

    async def test_finds_suspects_and_what_a_chain_holds_back(self, backend: Backend) -> None:
        client, admission = backend.client(), Admission(open_rules())
        suspect = admission.admit(Task(url=ODD, method="PUT"))
        await client.start(suspect)
        for _ in range(2):
            await client.lease_one()
            await client.frontier.release(CRAWL, client.worker)
        chained = [Task(url=ODD, method="POST", body=str(n), chain="login") for n in range(2)]
        await client.add(*map(admission.admit, chained))
        assert await self.urls_at(client, ODD) == [
            *[("POST", TaskState.WAITING)] * 2,
            ("PUT", TaskState.WAITING),
        ]
        found = await client.frontier.find_others(CRAWL, HOST, lambda url: url == ODD, 9)
        assert [r.reason for r in found if r.reason] == [
            "waits for an earlier task of chain 'login'"
        ]

    async def test_finds_every_copy_up_to_a_limit(self, backend: Backend) -> None:
        backend.needs("whole_backlog")
        client, admission = backend.client(), Admission(open_rules())
        copies = [admission.admit(Task(url=ODD, dont_filter=True)) for _ in range(5)]
        await client.start(*copies, *pages(2))
        assert len(await self.urls_at(client, ODD)) == 5
        assert len(await self.urls_at(client, ODD, limit=3)) == 3
        assert await self.urls_at(client, "https://nobody.example/") == []

    async def test_finds_what_a_cancelled_crawl_dropped(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(Admission(open_rules()).admit(Task(url=ODD, method="POST")))
        await client.control(Control.CANCEL)
        assert await self.urls_at(client, ODD) == [("POST", "dropped")]

    async def test_finds_what_is_done(self, backend: Backend) -> None:
        backend.needs("keeps_ended")
        client, odd = backend.client(), Task(url=ODD, method="POST", meta={"page": 7})
        await client.start(Admission(open_rules()).admit(odd))
        await client.end(await client.lease_one())
        (record,) = await client.frontier.find_others(CRAWL, HOST, lambda url: url == ODD, 9)
        assert (record.state, record.task.meta) == (TaskState.DONE, {"page": 7})

    async def test_looks_through_long_queues(self, backend: Backend) -> None:
        client, admission = backend.client(), Admission(open_rules())
        copies = [admission.admit(Task(url=ODD, dont_filter=True)) for _ in range(3)]
        await client.start(*pages(1500), *copies, concurrency_per_host=3000, max_losses=9)
        leases = await client.lease(1000) + await client.lease(1000)
        await client.finish(*(outcome(x, Verdict.RETRY, retry_in_s=9.0) for x in leases))
        assert [state for _, state in await self.urls_at(client, ODD)] == ["delayed"] * 3


class TestTwoCrawls:
    async def test_share_nothing_but_the_store(self, backend: Backend) -> None:
        one, two = backend.client(crawl="one"), backend.another(crawl="two")
        await one.start(*pages(3), rate="1/h")
        await two.start(*pages(3))
        await one.lease_one()
        assert len(await two.lease(9)) == 3, "the other crawl's rate and leases do not count"
        assert (await one.stats()).added == (await two.stats()).added == 3
        await one.control(Control.CANCEL)
        assert (await two.stats()).leased == 3
        await one.frontier.forget("one")
        assert await two.frontier.release("two", two.worker) == 3
        assert await two.work_off() == 3
        assert [stats.crawl for stats in await two.frontier.crawls()] == ["two"]

    async def test_wait_for_nothing_of_each_other(self, backend: Backend) -> None:
        one, two = backend.client(crawl="one"), backend.client(crawl="two")
        await one.start(*pages(1))
        await two.start()
        await one.lease_one()
        assert (await two.ask()).wait_s is None

    async def test_names_are_taken_literally(self, backend: Backend) -> None:
        names = ["a:b", "a", "b:a", "ä/ö {x}", "'; --", "*"]
        for name in names:
            await backend.client(crawl=name).start(*pages(2))
        await backend.frontier.forget("*")
        await backend.client(crawl="a").control(Control.CANCEL)
        stats = {stats.crawl: stats.waiting for stats in await backend.frontier.crawls()}
        assert stats == {"a:b": 2, "a": 0, "b:a": 2, "ä/ö {x}": 2, "'; --": 2}
