"""How workers share a host's room: how many requests each may have in flight, and tasks ahead.

The sum of their shares (or of the requests in flight, where these are more) and of the tasks that
were leased one by one never exceeds the host's room: `assert_within` checks this after every step.
"""

from __future__ import annotations

import random

import pytest

from shoal.core.sharing import AHEAD_PER_SHARE, TURN_S, WANT_S
from shoal.frontier.values import Control, CrawlState, Holding
from support.frontiers import A_MOMENT_S, HOST, Backend, entry, outcome, pages
from support.sharers import SharingClient

ROOM = 4
PLENTY = ROOM * AHEAD_PER_SHARE
"""All that one worker may hold of a host with this room. A worker that asks for so many gets a
share at once, even if each of several shards is asked for only a part of them."""
LEASE_S = 30.0
OTHER_HOST = "b.example"
PAGES = 150


def assert_within(room: int, *fleet: SharingClient, host: str = HOST) -> None:
    """Check that whatever they do until they ask again, the host's room is not exceeded."""
    assert sum(worker.in_flight(host) for worker in fleet) <= room


def fleet_of(backend: Backend, count: int) -> list[SharingClient]:
    """`count` workers, each with its own connection."""
    return [SharingClient(backend.another(f"worker-{number}")) for number in range(count)]


async def start(worker: SharingClient, count: int = 400, **rules: object) -> None:
    """Start a crawl of one host with little room."""
    how = {"concurrency_per_host": ROOM, "lease_s": LEASE_S, "max_losses": 99, **rules}
    await worker.client.start(*pages(count), **how)


async def share_evenly(first: SharingClient, second: SharingClient) -> None:
    """Let both ask until each has half of the room."""
    for worker in (first, second, first):
        await worker.ask()
        worker.answer()
        assert_within(ROOM, first, second)
    for worker in (first, second):
        await worker.ask()
        assert_within(ROOM, first, second)
    assert (first.told, second.told) == ({HOST: ROOM // 2}, {HOST: ROOM // 2})


class TestShares:
    async def test_one_that_is_alone_has_all_the_room_and_tasks_ahead(
        self, backend: Backend
    ) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        grant = await worker.ask()
        assert grant.shares == {HOST: ROOM}
        assert len(grant.leases) == PLENTY
        how = {(lease.shared, lease.paced, lease.crowded, lease.alone) for lease in grant.leases}
        assert how == {(True, False, False, False)}
        assert (await worker.client.stats()).leased == PLENTY
        worker.answer(count=3)
        grant = await worker.ask()
        assert grant.shares == {HOST: ROOM}
        assert len(grant.leases) == ROOM + 3, "what was sent is not ahead any more"

    async def test_what_waits_to_be_saved_takes_no_room(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await share_evenly(first, second)
        first.answer()  # Its requests are answered, but not finished.
        said = first.holdings()
        assert said[HOST].in_flight == ROOM // 2, "others were sent at once"
        grant = await first.client.ask(9, said)
        assert grant.shares == {HOST: ROOM // 2}

    async def test_who_wants_no_more_than_there_is_room_for_shares_nothing(
        self, backend: Backend
    ) -> None:
        client = backend.client()
        await client.start(*pages(9), concurrency_per_host=ROOM)
        grant = await client.ask(ROOM)
        assert (len(grant.leases), grant.shares) == (ROOM, {})
        assert not any(lease.shared for lease in grant.leases)

    async def test_nor_if_there_are_no_more_tasks_than_that(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(ROOM), concurrency_per_host=ROOM)
        grant = await client.ask(99)
        assert (len(grant.leases), grant.shares) == (ROOM, {})

    async def test_a_second_one_has_half_once_the_first_has_made_room(
        self, backend: Backend
    ) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        assert not (await second.ask()).leases
        assert not second.told
        assert (await first.ask()).shares == {HOST: ROOM // 2}
        assert first.holdings()[HOST].in_flight == ROOM, "those end by themselves"
        assert not (await second.ask()).leases
        first.answer(count=ROOM // 2)
        assert not (await second.ask()).leases, "nobody has said so yet"
        await first.ask()
        assert_within(ROOM, first, second)
        grant = await second.ask()
        assert grant.shares == {HOST: ROOM // 2}
        assert len(grant.leases) == ROOM // 2 * AHEAD_PER_SHARE
        assert_within(ROOM, first, second)

    async def test_one_that_wants_no_more_gives_its_share_back(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await share_evenly(first, second)
        await first.give_up()
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_one_whose_tasks_have_run_out_too(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, PLENTY)
        assert len((await first.ask()).leases) == PLENTY
        for _ in range(AHEAD_PER_SHARE):
            first.answer()
        assert (await first.ask()).shares == {HOST: 0}
        await second.client.add(*(entry(f"{HOST}/more/{number}") for number in range(99)))
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_one_that_cannot_take_more_keeps_what_it_has_to_send(
        self, backend: Backend
    ) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        await worker.ask()
        assert (await worker.ask(0)).shares == {HOST: ROOM}
        for _ in range(AHEAD_PER_SHARE):
            worker.answer()
        assert (await worker.ask(0)).shares == {HOST: 0}

    async def test_is_told_of_every_host_it_names(self, backend: Backend) -> None:
        (worker,) = fleet_of(backend, 1)
        await start(worker)
        nothing = Holding(in_flight=0, unsent=0)
        grant = await worker.client.ask(0, {OTHER_HOST: nothing, HOST: nothing})
        assert grant.shares == {OTHER_HOST: 0, HOST: 0}

    @pytest.mark.parametrize("limit", [1, 3])
    async def test_less_room_than_workers_goes_round(self, backend: Backend, limit: int) -> None:
        fleet = fleet_of(backend, 3)
        await start(fleet[0], concurrency_per_host=1)
        served: dict[str, int] = {}
        for _ in range(int(3.5 * TURN_S / 0.1)):
            for worker in fleet:
                worker.answer()
                await worker.end_plain()
                grant = await worker.ask(limit)
                name = worker.client.worker
                served[name] = served.get(name, 0) + len(grant.leases)
                assert_within(1, *fleet)
            await backend.advance(0.1)
        assert min(served.values()) > 0

    async def test_what_cannot_be_divided_goes_round(self, backend: Backend) -> None:
        fleet = fleet_of(backend, 3)
        await start(fleet[0], 999)
        seen: set[tuple[int, ...]] = set()
        for _ in range(40):
            for worker in fleet:
                worker.answer()
                await worker.ask(20)
                assert_within(ROOM, *fleet)
            seen.add(tuple(worker.told.get(HOST, 0) for worker in fleet))
            await backend.advance(0.1)
        assert {(2, 1, 1), (1, 2, 1), (1, 1, 2)} <= seen


class TestGone:
    async def test_its_share_is_void_when_its_lease_time_is_over(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        await backend.advance(LEASE_S * 0.8)
        assert (await second.ask()).leases == []
        await backend.advance(LEASE_S * 0.2 + A_MOMENT_S)
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_renewing_keeps_it(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        lease, *_ = (await first.ask()).leases
        for _ in range(3):
            await backend.advance(LEASE_S * 0.8)
            assert await first.client.renew(lease) == []
        assert (await second.ask()).leases == []
        await backend.advance(LEASE_S + A_MOMENT_S)
        assert (await second.ask()).shares == {HOST: ROOM}

    @pytest.mark.parametrize("meanwhile", ["nothing", "release", "finish", "add"])
    async def test_renewing_does_not_bring_a_void_one_back(
        self, backend: Backend, meanwhile: str
    ) -> None:
        """It stays void, whichever step came since: that may have removed it."""
        first, second = fleet_of(backend, 2)
        await start(first)
        lease, other, *_ = (await first.ask()).leases
        await backend.advance(LEASE_S + A_MOMENT_S)
        match meanwhile:
            case "release":
                await first.client.frontier.release(first.client.crawl, second.client.worker)
            case "finish":
                await first.client.end(other)
            case "add":
                await first.client.add(entry(f"{HOST}/new"))
        assert await first.client.renew(lease) == []
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_whoever_knows_that_it_is_dead_takes_its_tasks_and_its_room(
        self, backend: Backend
    ) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, 20)
        await first.ask()
        frontier, crawl = second.client.frontier, second.client.crawl
        assert await frontier.holders(crawl) == ["worker-0"]
        assert await frontier.release(crawl, "worker-0") == 20
        assert await frontier.holders(crawl) == []
        assert (await second.client.stats()).waiting == 20
        grant = await second.ask()
        assert (len(grant.leases), grant.shares) == (20, {HOST: ROOM})

    async def test_also_if_it_has_no_task_left(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        leases = (await first.ask()).leases
        await first.client.finish(*map(outcome, leases))
        frontier, crawl = second.client.frontier, second.client.crawl
        assert await frontier.holders(crawl) == ["worker-0"]
        assert await frontier.release(crawl, "worker-0") == 0
        assert (await second.ask()).shares == {HOST: ROOM}

    async def test_who_has_only_a_share_that_is_void_holds_nothing(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        leases = (await first.ask()).leases
        await second.ask()
        frontier, crawl = first.client.frontier, first.client.crawl
        await first.client.finish(*map(outcome, leases))
        assert await frontier.holders(crawl) == ["worker-0", "worker-1"]
        await backend.advance(WANT_S + A_MOMENT_S)
        assert await frontier.holders(crawl) == ["worker-0"], "the other one only waited"
        await backend.advance(LEASE_S - WANT_S)
        assert await frontier.holders(crawl) == []

    async def test_one_that_waited_in_vain_is_forgotten_soon(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask()
        await second.ask()
        await backend.advance(WANT_S + A_MOMENT_S)
        assert (await first.ask()).shares == {HOST: ROOM}

    async def test_leases_that_expired_leave_no_count_behind(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, 40)
        await first.ask()
        await backend.advance(LEASE_S + A_MOMENT_S)
        assert len(await second.client.lease(1)) == 1
        stats = await second.client.stats()
        assert (stats.leased, stats.lost) == (1, 32)
        await backend.advance(LEASE_S + A_MOMENT_S)
        third = SharingClient(backend.another("third"))
        assert (await third.ask()).shares == {HOST: ROOM}


class TestPlainAndShared:
    async def test_are_never_more_than_the_room(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask(ROOM - 1)
        assert len(first.plain) == ROOM - 1
        assert (await second.ask()).shares == {HOST: 1}
        assert_within(ROOM, first, second)
        await first.ask()
        assert not first.told
        await first.end_plain()
        for worker in (first, second, first):
            await worker.ask()
            assert_within(ROOM, first, second)
        assert (first.told, second.told) == ({HOST: ROOM // 2}, {HOST: ROOM // 2})

    async def test_leases_one_by_one_do_not_keep_others_out(self, backend: Backend) -> None:
        """Otherwise a worker that leases again what it has just finished would keep the room."""
        first, second = fleet_of(backend, 2)
        await start(first)
        await first.ask(ROOM)
        await second.ask()
        for _ in range(2 * ROOM):
            first.answer(count=1)
            plain, first.plain = first.plain[:1], first.plain[1:]
            await first.client.finish(*map(outcome, plain))
            await first.ask(1)
            await second.ask()
            assert_within(ROOM, first, second)
        assert second.told == {HOST: ROOM // 2}

    async def test_a_suspect_needs_room_of_its_own(self, backend: Backend) -> None:
        first, second = fleet_of(backend, 2)
        await start(first, 1)
        for _ in range(2):
            await first.client.lease_one()
            await first.client.frontier.release(first.client.crawl, first.client.worker)
        await first.client.add(*(entry(f"{HOST}/more/{number}") for number in range(PLENTY)))
        assert len((await first.ask()).leases) == PLENTY
        assert (await second.ask()).leases == [], "all the room is the first one's"
        for _ in range(AHEAD_PER_SHARE):
            first.answer()
        await first.ask(0)
        (lease,) = (await second.ask()).leases
        assert (lease.alone, lease.shared) == (True, False)


class TestFleet:
    @pytest.mark.parametrize("room", [1, 3, 16])
    async def test_whatever_they_do_there_is_room_and_all_is_done(
        self, backend: Backend, room: int
    ) -> None:
        """Five workers ask, send and finish at random. Some die, and others replace them."""
        chance = random.Random(room)
        fleet = fleet_of(backend, 5)
        dead: list[tuple[SharingClient, float]] = []
        await start(fleet[0], PAGES, concurrency_per_host=room)
        await fleet[0].client.control(Control.SEAL)
        now, born = 0.0, len(fleet)
        for _ in range(3000):
            number = chance.randrange(len(fleet))
            worker = fleet[number]
            worker.answer(count=chance.choice([0, 1, 2, None]))
            if chance.random() < 0.7:
                await worker.end_plain()
            state = (await worker.ask(chance.choice([0, 1, 4, 30, 99]))).state
            if state.over:
                break
            if chance.random() < 0.01:
                dead.append((worker, now + LEASE_S))
                born += 1
                fleet[number] = SharingClient(backend.client(f"worker-{born}"))
            step_s = chance.choice([0.01, 0.1, 0.6])
            await backend.advance(step_s)
            now += step_s
            await self.renew_all(fleet)
            dead = [(gone, until) for gone, until in dead if until > now]
            assert_within(room, *fleet, *(gone for gone, _ in dead))
        stats = await fleet[0].client.stats()
        assert (stats.state, stats.done) == (CrawlState.FINISHED, PAGES)

    async def renew_all(self, fleet: list[SharingClient]) -> None:
        for worker in fleet:
            held = [*worker.plain, *worker.sent.get(HOST, ()), *worker.unsent.get(HOST, ())]
            assert await worker.client.renew(*held) == []
