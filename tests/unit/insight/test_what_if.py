"""How people ask what would be if: --what-if workers=8,rate=5/s."""

from __future__ import annotations

import pytest

from shoal.core.policy import NO_LIMIT, Rate
from shoal.errors import ConfigError
from shoal.insight.advise.model import Plan
from shoal.insight.advise.what_if import parse_what_if

PLAN = Plan(workers=2, rate=Rate(1, 1.0), room=16, slots=32)


def test_all_that_can_be_changed() -> None:
    text = " workers=8, rate=5/s,concurrency=64,concurrency_per_host=4,exits=2x,stores=1.5 "
    what_if = parse_what_if(text)
    assert what_if.text == text.strip()
    assert what_if.of(PLAN) == Plan(
        workers=8, rate=Rate(5, 1.0), room=4, slots=64, exits=2.0, stores=1.5
    )
    assert parse_what_if("rate=none").of(PLAN).rate == NO_LIMIT


@pytest.mark.parametrize(
    "text",
    [
        *("", "workers", "workers=", "workers=0", "workers=1001", "workers=2.5", "workers=many"),
        *("speed=3", "rate=auto", "rate=0/s", "rate=fast", "exits=-1", "exits=nan", "exits=inf"),
        *("workers=2,", "concurrency=0", "stores=0x", "workers=8;rate=5/s", "robots=no"),
        *("stores=1e-310x", "exits=1e6x"),
        "workers=" + "9" * 5_000,
    ],
)
def test_all_else_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^what-if .*: write") as told:
        parse_what_if(text)
    assert len(str(told.value)) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workers=1001", "what-if 'workers=1001': write, for example, workers=8; at most 1,000"),
        (
            "workers=8,workers=9",
            "what-if 'workers=9': workers is in it twice; write --what-if once",
        ),
    ],
)
def test_it_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as told:
        parse_what_if(text)
    assert str(told.value).startswith(words)
