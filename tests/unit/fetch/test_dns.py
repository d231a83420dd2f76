"""Name lookups, with a name server of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from shoal.errors import FetchError
from shoal.fetch.http import dns
from shoal.fetch.http.dns import AddressInfo, Resolver
from support.dns_server import BROKEN, SILENT, NameServer
from support.until import until

HANGING = 100


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    names: dict[str, object] = {
        "a.example": ["1.1.1.1"],
        "b.example": ["1.1.1.2", "2606:4700::1"],
        "inside.example": ["10.0.0.1"],
        "xn--bcher-kva.example": ["1.1.1.3"],
        "broken.example": BROKEN,
    }
    names |= {f"hangs-{number}.example": SILENT for number in range(HANGING)}
    async with NameServer(names) as server:
        yield server


@asynccontextmanager
async def resolving(server: NameServer | None = None) -> AsyncIterator[Resolver]:
    resolver = Resolver([server.address] if server else [])
    try:
        yield resolver
    finally:
        await resolver.close()


@pytest.fixture
async def resolver(server: NameServer) -> AsyncIterator[Resolver]:
    async with resolving(server) as resolver:
        yield resolver


def addresses(found: list[AddressInfo]) -> set[str]:
    return {info[4][0] for info in found}


async def test_resolves(resolver: Resolver) -> None:
    found = await resolver.resolve("b.example", 80)
    assert addresses(found) == {"1.1.1.2", "2606:4700::1"}
    assert {info[4][1] for info in found} == {80}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST"])
async def test_this_machine(host: str) -> None:
    async with resolving() as resolver:
        assert addresses(await resolver.resolve(host, 80)) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "2606:4700:4700::1111"])
async def test_an_address_is_its_own_answer(
    resolver: Resolver, server: NameServer, host: str
) -> None:
    assert addresses(await resolver.resolve(host, 80)) == {host}
    assert server.asked == []


async def test_an_international_name(resolver: Resolver) -> None:
    assert addresses(await resolver.resolve("xn--bcher-kva.example", 80)) == {"1.1.1.3"}


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("nothing.example", "DNS: name not found"),
        ("broken.example", "DNS: dns server returned general failure"),
        ("a..b", "DNS: misformatted domain name"),
        (f"{'x' * 64}.example", "DNS: misformatted domain name"),
    ],
)
async def test_names_without_addresses(resolver: Resolver, host: str, reason: str) -> None:
    with pytest.raises(FetchError) as caught:
        await resolver.resolve(host, 80)
    assert str(caught.value) == reason


async def test_an_answer_is_shared_and_remembered_for_a_time(
    resolver: Resolver, server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = [resolver.resolve("a.example", 80) for _ in range(5)]
    assert [addresses(found) for found in await asyncio.gather(*asking)] == [{"1.1.1.1"}] * 5
    await resolver.resolve("a.example", 80)
    assert server.asked == ["a.example"] * 2  # Once for each kind of address.
    monkeypatch.setattr(dns, "monotonic", lambda: 1e12)
    await resolver.resolve("a.example", 80)
    assert len(server.asked) > 2


async def test_a_failure_is_not_remembered(server: NameServer) -> None:
    async with resolving(server) as resolver:
        with pytest.raises(FetchError):
            await resolver.resolve("broken.example", 80)
        asked = len(server.asked)
        with pytest.raises(FetchError):
            await resolver.resolve("broken.example", 80)
        assert len(server.asked) > asked


async def test_who_gives_up_takes_the_answer_from_nobody(
    resolver: Resolver, server: NameServer
) -> None:
    first, second = (asyncio.create_task(resolver.resolve("a.example", 80)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert addresses(await second) == {"1.1.1.1"}


async def test_names_that_hang_delay_nobody_else(resolver: Resolver, server: NameServer) -> None:
    """Far more of them than there could be threads."""
    names = [f"hangs-{number}.example" for number in range(HANGING)]
    hanging = [asyncio.create_task(resolver.resolve(name, 80)) for name in names]
    await until("all names to be asked for", lambda: set(names) <= set(server.asked))
    assert addresses(await resolver.resolve("a.example", 80)) == {"1.1.1.1"}
    assert addresses(await resolver.resolve("b.example", 80))
    assert not any(task.done() for task in hanging)
    for task in hanging:
        task.cancel()
    await asyncio.wait(hanging)


async def test_a_look_up_has_a_deadline_of_its_own(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns, "LOOKUP_S", 0.05)
    with pytest.raises(FetchError, match=r"^DNS: no answer within 0.05 s$") as caught:
        await resolver.resolve("hangs-1.example", 80)
    assert caught.value.retryable
    assert not isinstance(caught.value.__cause__, TimeoutError)  # The host is not slow.


@pytest.mark.rare
async def test_a_deadline_is_not_shortened_by_others(resolver: Resolver) -> None:
    """c-ares must not give up before we do, however quick the name server was so far."""
    for name in ("a.example", "b.example", "xn--bcher-kva.example"):
        await resolver.resolve(name, 80)
    with pytest.raises(FetchError, match=r"^DNS: no answer within 5 s$"):
        await resolver.resolve("hangs-1.example", 80)
