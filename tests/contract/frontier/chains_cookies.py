"""Cookies of chains: the next lease of the same chain gets the jar of an outcome, no other does."""

from __future__ import annotations

import pytest

from contract.frontier.chains import CHAIN, ENDS, NAMES, only, steps
from shoal.core.cookies import EMPTY, Cookie, Jar
from shoal.frontier.values import Control, TaskState, Verdict
from support.frontiers import HOST, Backend, entry, outcome, pages

UNENDED = [Verdict.RETRY, Verdict.RETURNED]


def jar(value: str, name: str = "sid") -> Jar:
    """A jar with one cookie that has all attributes."""
    cookie = Cookie(
        name=name,
        value=value,
        domain=HOST,
        host_only=True,
        path="/x",
        secure=True,
        http_only=True,
        expires=1e10,
        set_at=1.5,
    )
    return Jar((cookie,))


class TestCookiesOfChains:
    async def test_the_next_task_has_what_the_one_before_left(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*steps(3), cookies="visit")
        first = await only(client)
        assert first.cookies is None
        await client.end(first, cookies=jar("ü;1"))
        second = await only(other)
        assert second.cookies == jar("ü;1")
        await other.end(second)
        assert (await only(client)).cookies == jar("ü;1")

    async def test_in_one_round_trip(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2), cookies="visit")
        done = outcome(await only(client), cookies=jar("1"))
        _, grant = await client.exchange(done, limit=9)
        assert [lease.cookies for lease in grant.leases] == [jar("1")]

    @pytest.mark.parametrize("verdict", UNENDED)
    async def test_whatever_becomes_of_the_task(self, backend: Backend, verdict: Verdict) -> None:
        client = backend.client()
        await client.start(*steps(1), cookies="visit")
        await client.end(await only(client), verdict, cookies=jar("1"))
        assert (await only(client)).cookies == jar("1")

    async def test_with_its_follow_ups(self, backend: Backend) -> None:
        client = backend.client()
        first, second = steps(2)
        await client.start(first, cookies="visit")
        await client.end(await only(client), cookies=jar("1"), follow_ups=[second])
        assert (await only(client)).cookies == jar("1")

    async def test_with_no_other_task(self, backend: Backend) -> None:
        client = backend.client()
        mine, others, plain = steps(2), steps(2, "other"), pages(1)
        await client.start(*mine, *others, *plain, cookies="visit")
        leases = {lease.task.chain: lease for lease in await client.lease(9)}
        await client.end(leases[CHAIN], cookies=jar("mine"))
        await client.end(leases["other"])
        await client.end(leases[None], Verdict.RETURNED, cookies=jar("nobody's"))
        found = {lease.task.chain: lease.cookies for lease in await client.lease(9)}
        assert found == {CHAIN: jar("mine"), "other": None, None: None}

    async def test_an_empty_jar_takes_its_place(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        await client.end(await only(client), cookies=EMPTY)
        assert (await only(client)).cookies is None

    async def test_who_has_lost_the_lease_changes_nothing(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*steps(2), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        lost = await only(client)
        await other.frontier.release(client.crawl, client.worker)
        taken = await only(other)
        assert taken.cookies == jar("1"), "the next worker has them"
        assert await client.finish(outcome(lost, cookies=jar("stale"))) == [lost]
        await other.end(taken, Verdict.RETURNED)
        assert (await only(other)).cookies == jar("1")

    async def test_are_forgotten_when_the_chain_has_nothing_left(self, backend: Backend) -> None:
        client = backend.client()
        first, second = steps(2)
        await client.start(first, *pages(1, "b.example"), cookies="visit")
        (lease,) = [it for it in await client.lease(9) if it.task.chain]
        await client.end(lease, cookies=jar("1"))
        await client.add(second)
        assert (await only(client)).cookies is None

    async def test_are_forgotten_with_the_crawl(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        await client.frontier.forget(client.crawl)
        await client.start(*steps(2), cookies="visit")
        assert (await only(client)).cookies is None

    async def test_a_cancelled_crawl_keeps_none(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(2), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        await client.control(Control.CANCEL)
        assert await client.lease(9) == []

    async def test_are_not_handed_out_where_the_crawl_keeps_none(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*steps(3), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        await client.start()
        assert (await only(client)).cookies is None

    @pytest.mark.parametrize("name", NAMES)
    async def test_whatever_the_name_of_the_chain(self, backend: Backend, name: str) -> None:
        client = backend.client()
        await client.start(*(entry(f"{HOST}/{n}", chain=name) for n in "ab"), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        assert (await only(client)).cookies == jar("1")

    async def test_as_many_as_a_jar_can_have(self, backend: Backend) -> None:
        client = backend.client()
        full = Jar(tuple(jar("x" * 4000, f"c{number}").cookies[0] for number in range(300)))
        await client.start(*steps(2), cookies="visit")
        await client.end(await only(client), cookies=full)
        assert (await only(client)).cookies == full

    async def test_a_suspect_has_them_too(self, backend: Backend) -> None:
        client, other = backend.client(), backend.another()
        await client.start(*steps(2), cookies="visit")
        await client.end(await only(client), cookies=jar("1"))
        for _ in range(2):
            await only(client)
            await other.frontier.release(client.crawl, client.worker)
        last = await only(other)
        assert last.alone
        assert last.cookies == jar("1")


class TestCookiesOfTasks:
    async def test_come_back_as_they_were(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(entry(f"{HOST}/x", cookies=jar("ü"), cookies_since=3), cookies="visit")
        lease = await client.lease_one()
        assert (lease.task.cookies, lease.task.cookies_since) == (jar("ü"), 3)
        assert lease.cookies is None

    @pytest.mark.parametrize("verdict", [*ENDS, *UNENDED])
    async def test_are_told_to_nobody_who_asks(self, backend: Backend, verdict: Verdict) -> None:
        client = backend.client()
        task = entry(f"{HOST}/x", cookies=jar("1"), meta={"a": ["ü", 1.5]})
        await client.start(task, cookies="visit")
        for _ in range(2):
            record = await client.record(task)
            assert (record.task.cookies, record.task.meta) == (None, {"a": ["ü", 1.5]})
            if record.state is TaskState.WAITING and (leases := await client.lease()):
                await client.end(leases[0], verdict)
        assert [it.task.cookies for it in await client.frontier.dead(client.crawl, 9)] in (
            [],
            [None],
        )

    async def test_are_kept_with_a_dead_one(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(entry(f"{HOST}/x", cookies=jar("1")), cookies="visit")
        await client.end(await client.lease_one(), Verdict.DEAD)
        await client.frontier.retry_dead(client.crawl)
        assert (await client.lease_one()).task.cookies == jar("1")
