"""Addresses of frontiers: where the state is, and how large a window."""

from __future__ import annotations

import pytest

from shoal.errors import ConfigError
from shoal.frontier import open_frontier
from shoal.frontier.addresses import Place, Sizes, place_of

REDIS = "redis://user:secret@host/1"


@pytest.mark.parametrize(
    ("address", "state", "place"),
    [
        ("sqlite:///a.db?x=1", None, Place("sqlite:///a.db?x=1", "sqlite:///a.db?x=1")),
        (REDIS, None, Place(REDIS, REDIS)),
        (f"{REDIS}?blocks=on", None, Place(REDIS, REDIS, Sizes())),
        (f"{REDIS}?blocks=off&window=3", None, Place(REDIS, REDIS)),
        (
            "rediss://host?ca=/a&blocks=on&block=7&window=9",
            None,
            Place("rediss://host?ca=/a", "rediss://host?ca=/a", Sizes(9, 7)),
        ),
        ("amqp://a:b@host/v", REDIS, Place("amqp://a:b@host/v", REDIS, Sizes())),
        (
            "amqps://host?ca=/a&window=1",
            "redis+sentinel://a,b/s",
            Place("amqps://host?ca=/a", "redis+sentinel://a,b/s", Sizes(window=1)),
        ),
        ("sqs://eu-west-1/x?block=1", REDIS, Place("sqs://eu-west-1/x", REDIS, Sizes(block=1))),
        ("amqp://h/v?moved=on", REDIS, Place("amqp://h/v", REDIS, Sizes(has_moved=True))),
        (
            "redis://:a?window=b@host",
            None,
            Place("redis://:a?window=b@host", "redis://:a?window=b@host"),
        ),
    ],
)
def test_are_read(address: str, state: str | None, place: Place) -> None:
    assert place_of(address, state) == place


@pytest.mark.parametrize(
    ("address", "state", "reason"),
    [
        ("amqp://u:secret@host", None, "--state redis://host"),
        ("amqp://host", "sqlite:///a.db", "--state is one Redis"),
        ("amqp://host", "redis+cluster://u:secret@host", "--state is one Redis"),
        ("amqp://host?blocks=on", REDIS, "blocks is an option of redis://"),
        (REDIS, REDIS, "--state is for a --frontier that is a broker"),
        (f"{REDIS}?blocks=yes", None, "blocks is on or off"),
        (f"{REDIS}?window=3", None, "blocks is on or off"),
        (f"{REDIS}?blocks=on&window=0", None, "window is a number from 1 to 100000"),
        (f"{REDIS}?blocks=on&block=65", None, "block is a number from 1 to 64"),
        (f"{REDIS}?blocks=on&block=²", None, "block is a number from 1 to 64"),
        ("redis+cluster://host?blocks=on", None, "not from a cluster"),
        ("amqp://host?moved=yes", REDIS, "moved is on or off"),
    ],
)
def test_are_refused(address: str, state: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        place_of(address, state)
    assert "secret" not in str(raised.value)


def test_an_unknown_option_is_told_which_ones_there_are() -> None:
    there_are = r"unknown option windw \(there are: block, moved, queues, window\)"
    with pytest.raises(ConfigError, match=there_are):
        open_frontier("amqp://host?windw=1", REDIS)
