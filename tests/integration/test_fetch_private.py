"""Fetching from private addresses: refused in all spellings, unless allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from shoal.errors import FetchError, Refused
from shoal.fetch.port import Fetcher
from support.dns_server import NameServer
from support.fetching import fetching, request
from support.hostile import HostileServer
from support.hostile_pages import OK_BODY


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching(allow_private=False) as fetcher:
        yield fetcher


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.1.",
        "１２７.0.0.1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "me:pw@127.0.0.1",
        "public.example@127.0.0.1",
    ],
)
async def test_private_addresses_are_refused(
    server: HostileServer, fetcher: Fetcher, host: str
) -> None:
    with pytest.raises(Refused, match="is a private address") as caught:
        await fetcher.fetch(request(f"http://{host}:{server.port}/ok"))
    assert not caught.value.retryable
    assert server.connections == []


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST"])
async def test_names_of_private_addresses_are_refused(
    server: HostileServer, fetcher: Fetcher, name: str
) -> None:
    url = f"http://{name}:{server.port}/ok"
    results = await asyncio.gather(
        *(fetcher.fetch(request(url)) for _ in range(3)), return_exceptions=True
    )
    assert [type(result) for result in results] == [Refused] * 3
    assert "is a private address" in str(results[0])
    assert server.connections == []


async def test_one_reading_of_the_host(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some parsers see 127.0.0.1 as the host here, and shop.invalid as a user."""
    async with NameServer({}) as names:
        names.is_used_by(monkeypatch)
        async with fetching(allow_private=False) as fetcher:
            with pytest.raises(FetchError, match=r"^DNS: "):
                await fetcher.fetch(request(f"http://shop.invalid\\@127.0.0.1:{server.port}/ok"))
        assert set(names.asked) == {"shop.invalid"}
    assert server.connections == []


async def test_what_a_name_server_says_is_checked(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = ["127.0.0.1", "168.63.129.16", "192.0.0.192", "::1", "3fff::1"]
    names = {f"n{number}.example": [address] for number, address in enumerate(addresses)}
    async with NameServer(names) as name_server:
        name_server.is_used_by(monkeypatch)
        async with fetching(allow_private=False) as fetcher:
            for name, (address,) in names.items():
                with pytest.raises(Refused, match=f"^{name} is {address}, which is a private"):
                    await fetcher.fetch(request(f"http://{name}:{server.port}/ok"))
    assert server.connections == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_private_addresses_if_allowed(server: HostileServer, host: str) -> None:
    async with fetching(allow_private=True) as fetcher:
        response = await fetcher.fetch(request(f"http://{host}:{server.port}/ok"))
    assert response.body == OK_BODY
