"""Feeds: tasks that other programs send through a broker. Imports seeds, the frontier, drivers."""

from __future__ import annotations

from shoal.core.addresses import masked, parse_address
from shoal.errors import ConfigError, MissingExtra
from shoal.feeds.port import Source

STREAM, LIST = "stream", "list"


def open_source(address: str) -> Source:
    """The source at an address. Connects only with the first call. Raises ConfigError."""
    scheme = address.partition(":")[0]
    if scheme in ("amqp", "amqps"):
        return _amqp(address)
    if scheme == "sqs":
        from shoal.feeds.sqs import SqsSource

        return SqsSource(address)
    if scheme in ("redis", "rediss", "redis+sentinel", "redis+cluster"):
        return _redis(address)
    raise ConfigError(
        f"no feed for {masked(address)!r} (supported: amqp://host/queue, amqp://host/vhost/queue,"
        " sqs://region/queue, redis://host?key=list, redis://host?key=stream&type=stream)"
    )


def _amqp(address: str) -> Source:
    try:
        from shoal.feeds.amqp import AmqpSource
    except ModuleNotFoundError as error:
        if error.name != "aiormq":
            raise
        raise MissingExtra("an amqp:// feed", "amqp") from None
    return AmqpSource(address)


def _redis(address: str) -> Source:
    try:
        from shoal.drivers.redis.link import DEFAULT_PORT, SENTINEL_PORT, RedisLink, check
        from shoal.feeds.redis_list import RedisListSource
        from shoal.feeds.redis_stream import RedisStreamSource
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("a redis:// feed", "redis") from None
    is_sentinel = address.startswith("redis+sentinel:")
    where = parse_address(address, SENTINEL_PORT if is_sentinel else DEFAULT_PORT)
    check(where, ("key", "type"))
    key, kind = where.options.get("key"), where.options.get("type", LIST)
    if not key:
        raise ConfigError(f"{where.shown}: which list or stream? add ?key=name")
    if kind not in (LIST, STREAM):
        raise ConfigError(f"{where.shown}: type is {LIST} or {STREAM}")
    link = RedisLink(where)
    return RedisStreamSource(link, key) if kind == STREAM else RedisListSource(link, key)
