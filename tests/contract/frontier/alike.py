"""Limits for pages that are alike: which links are kept out, for the whole fleet."""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.config import Rules
from shoal.core.shapes import Trap
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.facts import MOST_SHAPES
from shoal.frontier.values import Entry, TaskState, Verdict
from support.frontiers import CRAWL, HOST, Backend, Client, outcome, pages

PER_SHAPE: dict[str, Any] = {"max_pages_per_shape": 3}
PER_HOST: dict[str, Any] = {"max_pages_per_host": 3}


def links(*addresses: str, **rules: Any) -> list[Entry]:
    """The entries of links on a page, admitted under these rules."""
    door = Admission(Rules(**rules))
    return [door.admit(Task(url=f"http://{address}"), found_on=HOST) for address in addresses]


def days(*numbers: int, **rules: Any) -> list[Entry]:
    """Links to pages of a calendar."""
    return links(*(f"{HOST}/day/{number}" for number in numbers), **rules)


async def lead_to(client: Client, *found: Entry) -> None:
    """Finish the next task, with these links as follow-ups."""
    await client.end(await client.lease_one(), follow_ups=list(found))


async def traps(client: Client) -> list[Trap]:
    """The shapes of which links were kept out."""
    return await client.frontier.traps(CRAWL, 9)


class TestLinksAlike:
    async def test_only_so_many_of_a_shape(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(3), **PER_SHAPE)
        await lead_to(client, *days(1, 2, **PER_SHAPE))
        assert await traps(client) == []
        more = days(2, 3, 4, 5, **PER_SHAPE)
        await lead_to(client, *more, *links(f"{HOST}/about", **PER_SHAPE))
        stats = await client.stats()
        assert (stats.added, stats.duplicates, stats.filtered) == (3 + 4, 1, 2)
        assert await traps(client) == [Trap(HOST, "/day/N", 2)]
        assert await client.state(more[1]) is TaskState.WAITING
        assert await client.frontier.find(CRAWL, more[2]) is None
        await lead_to(client, *days(3, 9, **PER_SHAPE))
        assert await traps(client) == [Trap(HOST, "/day/N", 3)]

    async def test_only_so_many_of_a_host(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), **PER_HOST)
        await lead_to(client, *links(f"{HOST}/a", f"{HOST}/b", "b.example/a", **PER_HOST))
        found = [f"{HOST}/{name}" for name in "cde"]
        await lead_to(client, *links(*found, "b.example/b", **PER_HOST))
        stats = await client.stats()
        assert (stats.added, stats.filtered) == (2 + 5, 2)
        assert await traps(client) == [Trap(HOST, "", 2)]

    async def test_the_limit_that_is_reached_first_is_told(self, backend: Backend) -> None:
        both = {"max_pages_per_host": 5, "max_pages_per_shape": 3}
        client = backend.client()
        await client.start(*pages(1), **both)
        others = [f"{HOST}/x/{name}" for name in "abcd"]
        await lead_to(client, *days(*range(5), **both), *links(*others, **both))
        assert await traps(client) == [Trap(HOST, "", 2), Trap(HOST, "/day/N", 2)]

    async def test_seeds_are_taken_and_not_counted(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(9), **PER_SHAPE)
        assert (await client.stats()).added == 9
        await lead_to(client, *links(*(f"{HOST}/{n}" for n in range(20, 23)), **PER_SHAPE))
        assert (await client.stats()).added == 12
        assert (await client.add(*pages(15))).added == 6

    async def test_the_same_link_twice_counts_once(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1), **PER_SHAPE)
        await lead_to(client, *days(1, 1, 1, 2, 2, 3, **PER_SHAPE))
        assert (await client.stats()).added == 4
        assert await traps(client) == []

    async def test_a_try_that_is_no_longer_owned_counts_nothing(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(2), **PER_SHAPE)
        lease = await client.lease_one()
        ended = outcome(lease, Verdict.DONE, follow_ups=days(1, 2, **PER_SHAPE))
        assert await client.finish(ended) == []
        assert await client.finish(ended) == [lease]
        await lead_to(client, *days(3, **PER_SHAPE))
        assert (await client.stats()).added == 2 + 3

    async def test_the_fleet_counts_together(self, backend: Backend) -> None:
        clients = [backend.client(f"w{number}") for number in range(4)]
        await clients[0].start(*pages(4), **PER_SHAPE)
        leases = [await client.lease_one() for client in clients]
        ends = [
            client.finish(outcome(lease, follow_ups=days(10 * n, 10 * n + 1, **PER_SHAPE)))
            for n, (client, lease) in enumerate(zip(clients, leases, strict=True))
        ]
        await asyncio.gather(*ends)
        assert (await clients[0].stats()).added == 4 + 3
        assert await traps(clients[0]) == [Trap(HOST, "/day/N", 5)]

    async def test_shapes_that_were_met_once_make_room(self, backend: Backend) -> None:
        """A site may have a unique name for every page. That must not hide a calendar."""
        client = backend.client()
        await client.start(*pages(3), **PER_SHAPE)
        await lead_to(client, *days(1, 2, **PER_SHAPE))
        slugs = [f"{HOST}/{_word(number)}" for number in range(MOST_SHAPES + 50)]
        await lead_to(client, *links(*slugs, **PER_SHAPE))
        await lead_to(client, *days(3, 4, **PER_SHAPE))
        assert (await client.stats()).added == 3 + len(slugs) + 3
        assert await traps(client) == [Trap(HOST, "/day/N", 1)]

    async def test_one_started_over_has_counted_nothing(self, backend: Backend) -> None:
        client = backend.client()
        for _ in range(2):
            await client.start(*pages(1), **PER_SHAPE)
            await lead_to(client, *days(*range(5), **PER_SHAPE))
            assert await traps(client) == [Trap(HOST, "/day/N", 2)]
            await client.frontier.forget(CRAWL)

    async def test_without_limits_nothing_is_counted(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        assert all(link.shape is None for link in days(1))
        await lead_to(client, *days(*range(50)))
        assert (await client.stats()).added == 51
        assert await traps(client) == []


def _word(number: int) -> str:
    """A name without digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
