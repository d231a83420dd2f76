"""The [[feed]] tables of shoal.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal import config
from shoal.errors import ConfigError
from shoal.feeds.tables import Feed, load_feeds

SECRET = "amqp://me:hush@rabbit/urls"


def in_file(folder: Path, text: str) -> Path:
    (folder / "shoal.toml").write_text(text)
    return folder


def test_feeds_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URLS_QUEUE", "redis://:hush@queue-host?key=urls")
    folder = in_file(
        tmp_path,
        f'[[feed]]\ncrawl = "shop"\naddress = "{SECRET}"\n'
        '[[feed]]\ncrawl = "shop"\naddress = "env:URLS_QUEUE"\n',
    )
    assert load_feeds(folder) == [
        Feed(crawl="shop", address=SECRET),
        Feed(crawl="shop", address="redis://:hush@queue-host?key=urls"),
    ]
    assert config.load(folder=folder) == config.Settings(), "they are no settings"


def test_no_file_no_feeds(tmp_path: Path) -> None:
    assert load_feeds(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[feed]", "write [[feed]], with two brackets"),
        ("[[feed]]", "feed 1: crawl is missing"),
        ('[[feed]]\ncrawl = ""\naddress = "sqs://r/q"', "feed 1: crawl must be text, not empty"),
        ('[[feed]]\ncrawl = 7\naddress = "sqs://r/q"', "feed 1: crawl must be text"),
        (
            '[[feed]]\ncrawl = "shop"\nadress = "x"',
            "feed 1: no key 'adress'; did you mean address?",
        ),
        (
            '[[feed]]\ncrawl = "shop"\naddress = "kafka://h:hush@x/q"',
            "feed 1: address: no feed for",
        ),
        (
            '[[feed]]\ncrawl = "shop"\naddress = "amqp://u:hush@h"',
            "feed 1: address: amqp://u:***@h",
        ),
        (
            '[[feed]]\ncrawl = "shop"\naddress = "env:NOT_SET_ANYWHERE"',
            "feed 1: address: the variable 'NOT_SET_ANYWHERE' is not set",
        ),
        (
            f'[[feed]]\ncrawl = "a"\naddress = "{SECRET}"\n'
            f'[[feed]]\ncrawl = "b"\naddress = "{SECRET}"',
            "feed 2: address: feed 1 takes from the same queue",
        ),
        ("feed = 3", "write [[feed]], with two brackets"),
        ("feed = [3]", "feed 1: Expected `object`"),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_feeds(in_file(tmp_path, text))
    said = str(raised.value)
    assert said.startswith("shoal.toml: ")
    assert why in said
    assert "hush" not in said
    assert "\n" not in said
