"""What is said where the packages of a broker are not installed; and nobody loads them unasked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.until import LIMIT_S

_WITHOUT = "import sys; sys.modules[{package!r}] = None"
_FEED = "from shoal.feeds import open_source; open_source({address!r})"
_CARRY = "from shoal.frontier.broker.carriers import open_carrier; open_carrier({address!r})"
_PUBLISH = "from shoal.publish import open_publisher; open_publisher({address!r}, 'shop')"
_CALL = """
import asyncio
from shoal.feeds import open_source
asyncio.run(open_source({address!r}).waiting())
"""


def said(*lines: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=LIMIT_S
    )
    return done.stderr + done.stdout


@pytest.mark.parametrize(
    ("package", "action", "address", "extra"),
    [
        ("aiormq", _FEED, "amqp://h/q", "amqp"),
        ("aiormq", _CARRY, "amqp://h", "amqp"),
        ("redis", _FEED, "redis://h?key=q", "redis"),
        ("redis", _CARRY, "redis://h", "redis"),
        ("aiormq", _PUBLISH, "amqp://h", "amqp"),
        ("redis", _PUBLISH, "redis-stream://h?key=q", "redis"),
        ("aiobotocore", _CALL, "sqs://eu-west-1/q", "sqs"),
    ],
)
def test_the_extra_is_named(package: str, action: str, address: str, extra: str) -> None:
    lines = _WITHOUT.format(package=package), action.format(address=address)
    assert f"needs an extra: pip install 'shoal[{extra}]'" in said(*lines)


def test_a_crawl_without_a_broker_does_not_pay() -> None:
    """Neither by time nor by memory: nothing of theirs is imported."""
    theirs = "('aiormq', 'botocore', 'aiobotocore', 'shoal.publish')"
    show = f"print(*(name for name in {theirs} if name in sys.modules))"
    ours = "import sys, shoal.cli.commands.crawl, shoal.fleet.child, shoal.frontier"
    assert said(ours, show) == "\n"
