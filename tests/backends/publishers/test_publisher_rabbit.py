"""The publisher contract on RabbitMQ, and what can be wrong with exchanges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiormq import connect

from contract.publisher_suite import PublisherContract, message, numbers, read
from shoal.drivers.amqp import link as amqp_link
from shoal.errors import ConfigError, StorageBusy
from shoal.publish import open_publisher
from shoal.publish.port import Channel
from support.publishing import RabbitRig
from support.rabbitmq_servers import PASSWORD, VHOST, WRITER, RabbitServer
from support.tcp_proxy import TcpProxy
from support.until import until


@pytest.fixture
async def rig(rabbitmq_server: RabbitServer) -> AsyncIterator[RabbitRig]:
    with TcpProxy(rabbitmq_server.port) as network:
        rig = RabbitRig(rabbitmq_server, network)
        yield rig
        await rig.close()


class TestRabbit(PublisherContract):
    @pytest.mark.rare
    async def test_an_alarm(
        self, rig: RabbitRig, rabbitmq_server: RabbitServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Short of memory or disk, RabbitMQ takes nothing: the worker is told so, and waits."""
        monkeypatch.setattr(amqp_link, "ANSWER_S", 1.0)
        publisher = rig.connect()
        await publisher.publish([message(1)])
        rabbitmq_server.ctl("set_vm_memory_high_watermark", "0.0000001")
        try:
            for _ in range(2):
                with pytest.raises(StorageBusy, match="short of memory or disk"):
                    await publisher.publish([message(2)])
        finally:
            rabbitmq_server.ctl("set_vm_memory_high_watermark", "0.4")

        async def is_taken() -> bool:
            try:
                await publisher.publish([message(2)])
            except StorageBusy:
                return False
            return True

        await until("the alarm to be over", is_taken)
        assert set(numbers(await read(rig, Channel.ITEMS, 2))) == {1, 2}


class TestExchange:
    """An exchange of somebody's."""

    async def test_keys_and_the_queue_of_the_dead(
        self, rig: RabbitRig, rabbitmq_server: RabbitServer
    ) -> None:
        broker = await connect(rabbitmq_server.url)
        channel = await broker.channel()
        name = f"events-{rig.crawl}"
        await channel.exchange_declare(name, exchange_type="topic", durable=True)
        publisher = rig.connected(f"{rabbitmq_server.url.removesuffix('%2F')}{name}")
        await publisher.check()
        with pytest.raises(StorageBusy, match="no queue is bound to it for"):
            await publisher.publish([message(1)])
        await channel.queue_declare(name, durable=True)
        await channel.queue_bind(name, name, routing_key=f"shoal.{rig.crawl}.items")
        # Nobody listens to the others, which is nobody's fault.
        await publisher.publish(
            [message(2), message(3, Channel.DEAD), message(4, Channel.FINISHED)]
        )
        found = await channel.basic_get(name, no_ack=True)
        properties = found.header.properties
        assert (properties.message_id, properties.delivery_mode) == ("shop:item:2:1.0", 2)
        assert numbers(await read(rig, Channel.DEAD, 1)) == [3]
        await channel.exchange_delete(name)
        with pytest.raises(ConfigError, match=f"no exchange '{name}'"):
            await publisher.publish([message(5)])
        await broker.close()

    async def test_what_is_known_at_the_start(
        self, rig: RabbitRig, rabbitmq_server: RabbitServer
    ) -> None:
        url = rabbitmq_server.url.removesuffix("%2F")
        for address, why in (
            (f"{url}none", "no exchange 'none'.*: declare it first"),
            (rabbitmq_server.url_of("test", "wrong").removesuffix("/%2F"), "the login is refused"),
            (rabbitmq_server.url_of(WRITER).removesuffix("/%2F"), "access to queue .* refused"),
            (f"{url}nowhere/amq.topic", "there is no virtual host 'nowhere'"),
        ):
            publisher = rig.connected(address)
            with pytest.raises(ConfigError, match=why) as raised:
                await publisher.check()
            assert "wrong" not in str(raised.value)
            assert PASSWORD not in str(raised.value)
            assert "\n" not in str(raised.value)

    async def test_a_virtual_host_and_the_default_exchange(
        self, rig: RabbitRig, rabbitmq_server: RabbitServer
    ) -> None:
        publisher = rig.connected(f"{rabbitmq_server.url_of('test', vhost=VHOST)}/amq.default")
        await publisher.check()
        await publisher.publish([message(1)])
        broker = await connect(rabbitmq_server.url_of("test", vhost=VHOST))
        channel = await broker.channel()
        found = await channel.basic_get(f"shoal.{rig.crawl}.items", no_ack=True)
        assert b'"number": 1' in found.body
        await broker.close()

    async def test_queues_that_are_there_are_taken_as_they_are(
        self, rig: RabbitRig, rabbitmq_server: RabbitServer
    ) -> None:
        broker = await connect(rabbitmq_server.url)
        channel = await broker.channel()
        quorum: dict[str, Any] = {"x-queue-type": "quorum"}
        name = f"shoal.{rig.crawl}.items"
        await channel.queue_declare(name, durable=True, arguments=quorum)
        publisher = rig.connect()
        await publisher.check()
        await publisher.publish([message(1)])
        await broker.close()
        assert numbers(await read(rig, Channel.ITEMS, 1)) == [1]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("kafka://u:hush@h/q", "cannot publish to"),
        ("amqp://u:hush@h/a/b/c", "write amqp://host, amqp://host/exchange"),
        ("redis-stream://u:hush@h", "add \\?key=name"),
        ("redis-stream://h?key=x&max=0", "max is a number of messages"),
        ("redis://h?key=x&type=stream", "unknown option type"),
        ("sqs://eu-west-1", "write sqs://region/name"),
        ("sqs://eu-west-1/a.fifo", "FIFO"),
    ],
)
def test_no_such_publisher(address: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        open_publisher(address, "shop")
    assert "hush" not in str(raised.value)
