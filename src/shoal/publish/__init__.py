"""Publishes a crawl's items, dead tasks and end through a broker, for other programs: RabbitMQ, SQS
or Redis, behind one port."""

from __future__ import annotations

from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier.port import QueriesAndNotes
from shoal.publish.formats import Format
from shoal.publish.port import Channel, Publisher
from shoal.publish.publications import Publications

_STREAMS = ("redis-stream", "rediss-stream")
_LISTS = ("redis", "rediss", "redis+sentinel", "redis+cluster")


def open_publications(
    settings: Settings, address: str, crawl: str, frontier: QueriesAndNotes
) -> Publications:
    """What publishes a crawl to an address. Connects only with the first call. Raises
    ConfigError."""
    form = _format(settings, address)
    return Publications(crawl, open_publisher(address, crawl), form, frontier)


async def check_publisher(settings: Settings, address: str, crawl: str | None) -> None:
    """Check that a crawl can publish to an address; without `crawl`, that future crawls can.
    Raises ConfigError."""
    _format(settings, address)
    publisher = open_publisher(address, crawl or "")
    try:
        await publisher.check(makes=crawl is not None)
    finally:
        await publisher.close()


def open_publisher(address: str, crawl: str) -> Publisher:
    """The publisher at an address. Connects only with the first call. Raises ConfigError."""
    scheme = address.partition(":")[0]
    if scheme in ("amqp", "amqps"):
        return _amqp(address, crawl)
    if scheme == "sqs":
        from shoal.publish.sqs import SqsPublisher

        return SqsPublisher(address)
    if scheme in (*_STREAMS, *_LISTS):
        return _redis(address)
    raise ConfigError(
        f"cannot publish to {masked(address)!r} (supported: amqp://host, amqp://host/exchange,"
        " amqp://host/vhost/exchange, sqs://region/queue, redis-stream://host?key=stream,"
        " redis://host?key=list)"
    )


def _format(settings: Settings, address: str) -> Format:
    name, scheme = settings.publish_format, address.partition(":")[0]
    if name == "celery" and scheme in _STREAMS:
        raise ConfigError("Celery reads lists, not streams: write redis:// for redis-stream://")
    if name == "messenger" and scheme in _LISTS:
        raise ConfigError("Messenger reads streams, not lists: write redis-stream:// for redis://")
    names = {
        Channel.ITEMS: settings.publish_item,
        Channel.DEAD: settings.publish_dead,
        Channel.FINISHED: settings.publish_finished,
    }
    return Format(name, names)


def _amqp(address: str, crawl: str) -> Publisher:
    try:
        from shoal.publish.amqp import AmqpPublisher
    except ModuleNotFoundError as error:
        if error.name != "aiormq":
            raise
        raise MissingExtra("publishing to amqp://", "amqp") from None
    return AmqpPublisher(address, crawl)


def _redis(address: str) -> Publisher:
    try:
        from shoal.publish.redis import RedisPublisher
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("publishing to redis", "redis") from None
    return RedisPublisher(address)
