"""The carriers: RabbitMQ, SQS, and Redis itself."""

from __future__ import annotations

from collections.abc import Collection

from shoal.core.addresses import masked
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier.broker.carrier import Carrier

AMQP_SCHEMES = ("amqp", "amqps")


def open_carrier(address: str, more_options: Collection[str] = ()) -> Carrier:
    """The carrier at an address. Connects only with the first call. The address may also have
    `more_options`, which are ignored. Raises ConfigError."""
    scheme = address.partition(":")[0]
    if scheme in AMQP_SCHEMES:
        return _rabbit(address, more_options)
    if scheme == "sqs":
        from shoal.frontier.broker.carriers.sqs import SqsCarrier

        return SqsCarrier(address, more_options)
    if scheme.startswith("redis"):
        return _redis(address, more_options)
    raise ConfigError(
        f"no carrier for {masked(address)!r} (supported: amqp://host/vhost, amqps://host/vhost,"
        " sqs://region/prefix, redis://host)"
    )


def _rabbit(address: str, more_options: Collection[str]) -> Carrier:
    try:
        from shoal.frontier.broker.carriers.rabbit import RabbitCarrier
    except ModuleNotFoundError as error:
        if error.name != "aiormq":
            raise
        raise MissingExtra("an amqp:// address", "amqp") from None
    return RabbitCarrier(address, more_options)


def _redis(address: str, more_options: Collection[str]) -> Carrier:
    try:
        from shoal.frontier.broker.carriers.redis import RedisCarrier
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a redis:// address", "redis") from None
    return RedisCarrier(address, more_options)
