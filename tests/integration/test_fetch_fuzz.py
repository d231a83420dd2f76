"""Odd answers over a network: many at a time, on connections that are used again."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from shoal.errors import FetchError
from shoal.fetch.port import Fetcher
from shoal.runtime.eventloop import run
from support.fetching import fetching, request
from support.odd_answers import Sent, answer_for, pieces_of, strangers_in
from support.processes import seeded_random

LIMIT = 4096
AT_ONCE = 8
REQUESTS = 10_000
"""More than one connection ever gets."""


class OddServer:
    """Sends an odd answer to each request, which says its number."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def answer(self, number: int) -> Sent:
        """What is sent for a request."""
        return answer_for(random.Random(f"{self._seed} {number}"), number)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        with suppress(OSError, asyncio.IncompleteReadError):
            for _ in range(REQUESTS):
                line = await reader.readuntil(b"\r\n\r\n")
                number = int(line.split()[1].removeprefix(b"/"))
                sent = self.answer(number)
                for piece in pieces_of(random.Random(number), sent.wire):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if sent.ends_with_connection or not sent.is_sound:
                    break
        writer.close()


async def check(fetcher: Fetcher, port: int, server: OddServer, number: int, count: int) -> str:
    """How a request ended: wrong in no way."""
    sent = server.answer(number)
    try:
        response = await fetcher.fetch(request(f"http://127.0.0.1:{port}/{number}"))
    except FetchError as error:
        # A connection may be closed by the server just when it is used again.
        if sent.is_sound and "connection" not in str(error):
            raise
        return "failed"
    assert not strangers_in(response.headers, response.body, number, range(count)), number
    assert not sent.is_sound or response.body == sent.body, number
    return "sound" if sent.is_sound else "odd"


async def check_many(count: int) -> None:
    seed = seeded_random("odd answers").getrandbits(64)
    server = OddServer(seed)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    ends = []
    async with fetching(max_body_bytes=LIMIT) as fetcher:
        for start in range(0, count, AT_ONCE):
            numbers = range(start, start + AT_ONCE)
            ends += await asyncio.gather(
                *(check(fetcher, port, server, number, count) for number in numbers)
            )
    listening.close()
    await listening.wait_closed()
    assert ends.count("sound") > count / 4
    assert ends.count("failed") > count / 10


def test_two_hundred_answers() -> None:
    run(check_many(200))


@pytest.mark.rare
def test_two_thousand_answers() -> None:
    run(check_many(2000))
