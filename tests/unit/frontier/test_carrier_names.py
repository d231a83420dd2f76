"""Which carrier a crawl is with, as its record has it."""

from __future__ import annotations

import pytest

from shoal.frontier.broker.carriers import open_carrier


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("amqp://queue-host", "amqp://queue-host:5672/%2F"),
        ("amqp://user:secret@Queue-Host:5672/%2F?queues=classic", "amqp://queue-host:5672/%2F"),
        ("amqps://user:p@ss@queue-host/shop", "amqps://queue-host:5671/shop"),
        ("amqp://[::1]/Shop", "amqp://[::1]:5672/Shop"),
    ],
)
async def test_one_broker_has_one_name_without_a_login(address: str, name: str) -> None:
    carrier = open_carrier(address)
    assert carrier.name == name
    await carrier.close()
