"""Odd answers by the thousand, without a network.

Whatever comes, a request ends with an error of ours or with an answer, and never with the answer to
another request. Each case has a seed of its own, which is in the message if it fails.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from shoal.errors import FetchError
from shoal.fetch.http.connection import Reply
from support.odd_answers import NOBODY, Sent, answer_for, pieces_of, sound, strangers_in
from support.processes import seeded_random
from support.wire import Scene

LIMIT = 4096
REQUESTS = 4
"""In one conversation."""


def check(number: int, sent: Sent, ended: Reply | BaseException) -> None:
    """Whatever ended the request, it is ours; and a sound answer is the right one."""
    if not isinstance(ended, Reply):
        assert isinstance(ended, FetchError), ended
        assert not sent.is_sound, (sent, ended)
        assert "\n" not in str(ended)
        return
    assert not strangers_in(ended.headers, ended.body, number, range(REQUESTS))
    assert len(ended.body) <= LIMIT
    if sent.is_sound:
        assert ended.body == sent.body


async def converse(rng: random.Random) -> None:
    """Some requests, one after the other, on a connection for as long as it lasts."""
    scene: Scene | None = None
    for number in range(REQUESTS):
        if scene is None:
            scene = Scene(LIMIT)
        else:
            scene.ask()
        sent = answer_for(rng, number)
        scene.receive(*pieces_of(rng, sent.wire))
        if not scene.answer.done() and (sent.ends_with_connection or not sent.is_sound):
            is_reset = not sent.is_sound and rng.random() < 0.2
            scene.close(ConnectionResetError(104, "x") if is_reset else None)
        assert scene.answer.done(), sent
        check(number, sent, scene.answer.exception() or scene.answer.result())
        if rng.random() < 0.1:  # Something comes while nobody waits.
            scene.receive(sound(rng, NOBODY).wire[: rng.choice((1, 50, None))])
            assert not scene.connection.is_reusable
        if not scene.connection.is_reusable:
            scene = None


def run_cases(conversations: int) -> None:
    seeds = seeded_random("answers")

    async def run() -> None:
        for _ in range(conversations):
            seed = seeds.getrandbits(64)
            try:
                await converse(random.Random(seed))
            except BaseException as error:
                error.add_note(f"the case with the seed {seed}")
                raise

    asyncio.run(run())


def test_a_thousand_answers() -> None:
    run_cases(1000 // REQUESTS)


@pytest.mark.rare
def test_ten_thousand_answers() -> None:
    run_cases(10_000 // REQUESTS)
