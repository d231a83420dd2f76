"""What a fetch takes of the network, as the server at the other end counts it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from shoal.core.task import Task
from shoal.errors import FetchError
from shoal.fetch.port import DIRECT, Fetcher, Request, Response
from support.dns_server import NameServer
from support.fetching import LIMIT, fetching, request
from support.hostile import HostileServer
from support.hostile_pages import GZIPPED, OK_BODY
from support.until import until

PATHS = ["/ok", "/gzip", "/chunked", "/empty", "/status/404", "/status/204", "/redirect-self"]
"""After each of these the connection is kept."""


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as fetcher:
        yield fetcher


async def agree(server: HostileServer, responses: list[Response]) -> None:
    """Both ends have counted the same. The server counts when the bytes have left."""
    sent = sum(response.transfer.sent_bytes for response in responses)
    received = sum(response.transfer.received_bytes for response in responses)
    await until(
        f"a server that got {sent} bytes and sent {received}",
        lambda: (server.bytes_received, server.bytes_sent) == (sent, received),
    )
    assert sum(response.wire_bytes for response in responses) == sent + received


@pytest.mark.parametrize("path", [*PATHS, "/no-length"])
async def test_all_bytes_are_counted(server: HostileServer, fetcher: Fetcher, path: str) -> None:
    await agree(server, [await fetcher.fetch(request(server.url(path)))])


async def test_on_a_kept_connection_each_has_its_own(
    server: HostileServer, fetcher: Fetcher
) -> None:
    responses: list[Response] = []
    for path in PATHS * 2:
        responses.append(await fetcher.fetch(request(server.url(path))))
        await agree(server, responses)
    assert len(server.connections) == 1
    first, again = responses[0].transfer, responses[len(PATHS)].transfer
    assert (first.sent_bytes, first.received_bytes) == (again.sent_bytes, again.received_bytes)


async def test_what_the_task_sends_counts(server: HostileServer, fetcher: Fetcher) -> None:
    url = server.url("/ok")
    plain = await fetcher.fetch(request(url))
    form = await fetcher.fetch(request(url, method="POST", body="ä" * 1000))
    head = await fetcher.fetch(request(url, method="HEAD", headers={"X-Own": "a" * 500}))
    await agree(server, [plain, form, head])
    assert form.transfer.sent_bytes > plain.transfer.sent_bytes + 2000
    assert head.transfer.sent_bytes > plain.transfer.sent_bytes + 500
    assert head.transfer.received_bytes == plain.transfer.received_bytes - len(OK_BODY)


async def test_compressed_bodies_count_as_they_were_sent(
    server: HostileServer, fetcher: Fetcher
) -> None:
    response = await fetcher.fetch(request(server.url("/gzip")))
    assert response.body == OK_BODY
    heading = response.transfer.received_bytes - len(GZIPPED)
    assert 0 < heading < 200


async def test_failures_cost_too(server: HostileServer, fetcher: Fetcher) -> None:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(request(server.url("/closes-mid-body")))
    count = server.bytes_received + server.bytes_sent
    assert caught.value.wire_bytes == count > 0
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(request(server.url("/endless")))
    assert caught.value.wire_bytes > LIMIT


async def test_what_was_never_sent_costs_nothing(fetcher: Fetcher, unused_tcp_port: int) -> None:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(request(f"http://127.0.0.1:{unused_tcp_port}/"))
    assert caught.value.wire_bytes == 0


async def test_the_address_and_the_route_are_known(
    server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with NameServer({"shop.example": ["127.0.0.1"]}) as names:
        names.is_used_by(monkeypatch)
        async with fetching() as fetcher:
            for _ in range(2):
                response = await fetcher.fetch(request(f"http://shop.example:{server.port}/ok"))
                assert response.transfer.address == "127.0.0.1"
                assert response.transfer.route == DIRECT


async def test_the_parts_of_the_time_are_within_the_whole(
    server: HostileServer, fetcher: Fetcher
) -> None:
    task = Task(url=server.url("/ok"))
    for _ in range(2):
        response = await fetcher.fetch(Request(task))
        transfer = response.transfer
        assert transfer.connect_s > 0
        assert transfer.first_byte_s > 0
        assert transfer.connect_s + transfer.first_byte_s <= response.duration_s
