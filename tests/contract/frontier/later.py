"""Working beside a later version: its additions to tasks are kept, and data in a form that only it
can read is left alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any

import pytest

from shoal.config import Rules
from shoal.core.task import LaterTask, Task
from shoal.errors import NewerFormat
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, Entry, Lease, Verdict
from support.frontiers import CRAWL, HOST, Backend, entry, open_rules, outcome, pages, pulse

UNKNOWN = {"render": {"wait": [1, None]}, "token": "canary"}


def later(path: str, **fields: Any) -> Entry:
    """The entry of a task as a later version writes it."""
    task = LaterTask(url=f"http://{HOST}/{path}", unknown=UNKNOWN, **fields)
    return Admission(Rules()).admit(task)


def unknown_of(lease: Lease) -> dict[str, Any] | None:
    """The fields of a task that this version does not know. None: there are none."""
    return lease.task.unknown if isinstance(lease.task, LaterTask) else None


class TestFieldsOfALaterVersion:
    async def test_stay_with_a_task_whatever_becomes_of_it(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(later("x", chain="c", meta={"a": 1}), lease_s=10.0)
        verdicts = (Verdict.RETRY, Verdict.RETURNED, Verdict.DEAD)
        for verdict in verdicts:
            lease = await client.lease_one()
            assert unknown_of(lease) == UNKNOWN
            assert lease.task.meta == {"a": 1}
            await client.end(lease, verdict, sent=verdict is not Verdict.RETURNED)
        assert await client.frontier.retry_dead(client.crawl) == 1
        lease = await client.lease_one()  # Its worker dies.
        assert unknown_of(lease) == UNKNOWN
        await backend.advance(11.0)
        assert unknown_of(await backend.another().lease_one()) == UNKNOWN

    async def test_go_along_with_follow_ups_that_have_them(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(*pages(1))
        lease = await client.lease_one()
        follow_ups = [later("target"), entry(f"{HOST}/link")]
        await client.finish(outcome(lease, follow_ups=follow_ups))
        found = {lease.task.url: unknown_of(lease) for lease in await client.lease(2)}
        assert found == {f"http://{HOST}/target": UNKNOWN, f"http://{HOST}/link": None}

    async def test_are_not_shown(self, backend: Backend) -> None:
        client = backend.client()
        await client.start(later("x"))
        lease = await client.lease_one()
        assert type((await client.record(lease)).task) is Task
        await client.end(lease, Verdict.DEAD)
        (dead,) = await client.frontier.dead(client.crawl, 10)
        assert type(dead.task) is Task


ASK = Ask("worker", 5)
CALLS: dict[str, Callable[[Frontier, Lease], Awaitable[object]]] = {
    "stats": lambda at, _: at.stats(CRAWL),
    "start": lambda at, _: at.start(CRAWL, open_rules()),
    "add": lambda at, _: at.add(CRAWL, [entry(f"{HOST}/new")]),
    "remember": lambda at, _: at.remember(CRAWL, [bytes(8)]),
    "lease": lambda at, _: at.lease(CRAWL, ASK),
    "renew": lambda at, lease: at.renew(CRAWL, [lease]),
    "finish": lambda at, lease: at.finish(CRAWL, [outcome(lease)]),
    "exchange": lambda at, lease: at.exchange(CRAWL, [outcome(lease)], ASK),
    "robots": lambda at, _: at.robots(CRAWL, HOST),
    "turn": lambda at, _: at.turn(CRAWL, HOST, None),
    "beat": lambda at, _: at.beat(CRAWL, pulse()),
    "control": lambda at, _: at.control(CRAWL, Control.CANCEL),
    "forget": lambda at, _: at.forget(CRAWL),
    "holders": lambda at, _: at.holders(CRAWL),
    "release": lambda at, lease: at.release(CRAWL, "worker"),
    "retry_dead": lambda at, _: at.retry_dead(CRAWL),
    "purge_dead": lambda at, _: at.purge_dead(CRAWL),
    "find": lambda at, lease: at.find(CRAWL, Entry(lease.fingerprint, lease.task)),
    "find_others": lambda at, _: at.find_others(CRAWL, HOST, lambda _: True, 5),
    "dead": lambda at, _: at.dead(CRAWL, 5),
    "leased": lambda at, _: at.leased(CRAWL, 5),
    "hosts": lambda at, _: at.hosts(CRAWL, 5),
    "workers": lambda at, _: at.workers(CRAWL),
    "lanes": lambda at, _: at.lanes(CRAWL, 5),
    "chains": lambda at, _: at.chains(CRAWL, 5),
    "traps": lambda at, _: at.traps(CRAWL, 5),
}
"""Calls of the methods of a frontier that take a crawl."""
INDIRECT = {"collect", "repair"}
"""Methods that begin with a call of another one, if they have anything to do."""


def calls_of_the_port() -> set[str]:
    """The names of the frontier's methods that take a crawl."""
    methods = {name: getattr(Frontier, name) for name in dir(Frontier) if name[0] != "_"}
    return {
        name
        for name, method in methods.items()
        if callable(method) and "crawl" in signature(method).parameters
    }


class TestFormOfALaterVersion:
    async def test_is_left_alone_by_everybody(self, backend: Backend) -> None:
        assert calls_of_the_port() == CALLS.keys() | INDIRECT
        client = backend.client()
        await client.start(*pages(3))
        dead, lease = await client.lease(2)
        await client.end(dead, Verdict.DEAD)
        before = await client.snapshot()
        async with backend.written_by_newer():
            for frontier in (client.frontier, backend.open_another()):
                for call in CALLS.values():
                    with pytest.raises(NewerFormat, match="was written by a newer shoal") as caught:
                        await call(frontier, lease)
                    assert "\n" not in str(caught.value)
        await backend.reopen()  # The open frontier remembers that the format is too new.
        client = backend.client()
        assert await client.snapshot() == before
        await client.end(lease)
        assert await client.work_off() == 1
