"""An echo: what it answers, what is understood of the answers of others, and who cannot hang it."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from shoal.exits import echo
from shoal.exits.echo import Echo, echo_at, read_echo
from support.fetching import fetching, request
from support.until import in_time


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"address": "192.0.2.1", "headers": {"Via": "x"}}', Echo("192.0.2.1", {"via": "x"})),
        (b'{"origin": "198.51.100.1, 192.0.2.1"}', Echo("192.0.2.1")),
        (b'{"ip": "2001:db8::1"}', Echo("2001:db8::1")),
        (b" 192.0.2.1\n", Echo("192.0.2.1")),
        (b'"192.0.2.1"', Echo("192.0.2.1")),
        (b'{"address": "nowhere", "ip": "192.0.2.1"}', Echo("192.0.2.1")),
        (b'{"headers": {}}', None),
        (b"<html>log in</html>", None),
        (b"\xff\xfe", None),
        (b"[]", None),
        (b"", None),
    ],
)
def test_answers_are_understood(body: bytes, expected: Echo | None) -> None:
    assert read_echo(body) == expected


async def test_it_tells_where_a_request_came_from() -> None:
    async with echo_at("127.0.0.1", 0) as url, fetching() as fetcher:
        response = await fetcher.fetch(request(f"{url}any?path", headers={"Accept": "x/y"}))
    told = read_echo(response.body)
    assert told is not None
    assert told.address == "127.0.0.1"
    assert told.headers is not None
    assert told.headers["accept"] == "x/y"


async def test_nobody_can_hang_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo, "TIMEOUT_S", 0.05)
    async with echo_at("127.0.0.1", 0) as url:
        place = urlsplit(url)
        for said in (b"", b"GET / HTTP/1.1\r\n", b"x" * (2 * echo.MAX_HEAD_BYTES)):
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(said)
            try:
                answer = await in_time("the end of the connection", reader.read())
            except ConnectionResetError:
                answer = b""
            assert not answer or answer.startswith(b"HTTP/1.1 400 ")
            writer.close()
