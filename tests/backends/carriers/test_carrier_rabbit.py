"""The carrier contract on RabbitMQ, and what can go wrong with a broker."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator

import pytest

from contract.carrier_suite import (
    CarrierContract,
    blocks_of,
    by_id,
    fetched,
    finish,
    is_empty,
    some_block,
)
from shoal.config import Rules
from shoal.drivers.amqp import link as amqp_link
from shoal.drivers.amqp.link import AmqpLink, Message, amqp_address
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier import frontier_at
from shoal.frontier.broker.blocks import lane_of
from shoal.frontier.broker.carrier import Block, Carrier, host_lane
from shoal.frontier.broker.carriers import open_carrier
from shoal.frontier.broker.carriers.rabbit import KINDS
from shoal.frontier.values import Ask
from support.frontiers import HOST, pages
from support.rabbitmq_servers import PASSWORD, VHOST, WRITER, RabbitServer
from support.redis_servers import RedisServer
from support.tcp_proxy import TcpProxy
from support.until import until

_numbers = itertools.count()


@pytest.fixture
def server(rabbitmq_server: RabbitServer) -> RabbitServer:
    return rabbitmq_server


@pytest.fixture
def lane() -> str:
    return host_lane(f"crawl{next(_numbers)}", "shop.example", 0)


class RabbitRig:
    """Carriers whose connections go by a network that can fail."""

    in_order = True
    many = 3000

    def __init__(self, server: RabbitServer, kind: str, network: TcpProxy) -> None:
        self.network = network
        self._kind = kind
        self._server = server
        self.opened: list[Carrier] = []

    def connect(self) -> Carrier:
        address = self._server.url.replace(f":{self._server.port}/", f":{self.network.port}/")
        self.opened.append(open_carrier(f"{address}?queues={self._kind}"))
        return self.opened[-1]

    async def put(self, lane: str, body: bytes) -> None:
        link = AmqpLink(amqp_address(self._server.url))
        await link.publish([Message(key=lane, body=body, id=os.urandom(4).hex())])
        await link.close()

    async def purge(self, lane: str) -> None:
        self._server.ctl("purge_queue", lane)


@pytest.fixture
async def rig(server: RabbitServer, kind: str) -> AsyncIterator[RabbitRig]:
    with TcpProxy(server.port) as network:
        rig = RabbitRig(server, kind, network)
        yield rig
        for carrier in rig.opened:
            await carrier.close()


class TestQuorum(CarrierContract):
    @pytest.fixture
    def kind(self) -> str:
        return "quorum"


@pytest.mark.rare
class TestClassic(CarrierContract):
    @pytest.fixture
    def kind(self) -> str:
        return "classic"


@pytest.fixture
async def carrier(server: RabbitServer) -> AsyncIterator[Carrier]:
    carrier = open_carrier(server.url)
    yield carrier
    await carrier.close()


async def says(address: str, *, published: Block | None = None, lane: str = "lane") -> str:
    """What a carrier says that cannot work as it is set up."""
    carrier = open_carrier(address)
    try:
        with pytest.raises(ConfigError) as raised:
            await (carrier.publish([published]) if published else carrier.declare(lane))
        assert "\n" not in str(raised.value)
        assert PASSWORD not in str(raised.value)
        return str(raised.value)
    finally:
        await carrier.close()


class TestWhatOperatorsSee:
    async def test_names_and_tasks(self, server: RabbitServer, carrier: Carrier, lane: str) -> None:
        await carrier.declare(lane)
        await carrier.publish([some_block(lane, b"1", b"2", b"3")])
        assert [lane, "quorum", "true"] in server.queues("name", "type", "durable")
        link = AmqpLink(amqp_address(server.url))
        (taken,) = await link.get(lane, 1)
        assert taken.properties.headers == {"tasks": 3}
        assert taken.properties.delivery_mode == 2
        assert taken.properties.message_type == "shoal.block"
        await link.close()

    async def test_one_message_for_each_url(
        self, server: RabbitServer, redis_server: RedisServer, carrier: Carrier
    ) -> None:
        async with frontier_at(f"{server.url}?window=2&block=1", redis_server.url) as frontier:
            await frontier.start("single", Rules())
            await frontier.add("single", pages(9))
            await frontier.lease("single", Ask("worker", 0))

            async def are_there() -> bool:
                lane = lane_of("single", HOST, 0, is_own=False)
                return await carrier.count(lane) == 7

            await until("a message for each", are_there)
            assert (await frontier.stats("single")).outside == 7
            await frontier.forget("single")

    async def test_a_virtual_host(self, server: RabbitServer, lane: str) -> None:
        carrier = open_carrier(server.url_of("test", vhost=VHOST))
        await carrier.declare(lane)
        await carrier.close()
        assert [lane] in server.queues("name", vhost=VHOST)
        assert [lane] not in server.queues("name")

    async def test_tls(self, server: RabbitServer, lane: str) -> None:
        carrier = open_carrier(server.tls_url)
        await carrier.publish([block := some_block(lane)])
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]
        await carrier.close()


class TestSetUpWrong:
    async def test_a_wrong_password(self, server: RabbitServer) -> None:
        assert "login is refused" in await says(server.url_of("test", "wrong"))

    async def test_no_such_virtual_host(self, server: RabbitServer) -> None:
        assert "no virtual host 'nowhere'" in await says(server.url_of("test", vhost="nowhere"))
        assert f"no virtual host {VHOST!r}" in await says(server.url_of(WRITER, vhost=VHOST))

    async def test_no_right_to_declare(
        self, server: RabbitServer, carrier: Carrier, lane: str
    ) -> None:
        """Who may only read and write works with the lanes that others have made."""
        writer = server.url_of(WRITER)
        assert f"access to queue '{lane}'" in await says(writer, lane=lane)
        assert f"access to queue '{lane}'" in await says(writer, published=some_block(lane))
        await carrier.declare(lane)
        theirs = open_carrier(writer)
        await theirs.publish([block := some_block(lane)])
        found = await fetched(theirs, lane, 1)
        assert blocks_of(found) == [block]
        await finish(theirs, found)
        await theirs.close()

    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_queue_declared_otherwise(
        self, server: RabbitServer, kind: str, lane: str
    ) -> None:
        link = AmqpLink(amqp_address(server.url))
        await link.declare(lane, {"x-queue-type": kind, "x-max-length": 5})
        await link.close()
        said = await says(f"{server.url}?queues={kind}", lane=lane)
        assert "inequivalent arg" in said
        assert lane in said

    async def test_a_certificate_nobody_trusts(self, server: RabbitServer) -> None:
        assert "certificate" in await says(server.tls_url.partition("?")[0])

    @pytest.mark.parametrize(
        ("address", "why"),
        [
            ("amqp://h/v?queues=mirrored", "queues is one of"),
            ("amqp://h/v?ca=x", "unknown option ca"),
            ("amqp://h/a/b", "%2F"),
            ("amqp://h1,h2/v", "one host"),
        ],
    )
    def test_no_such_address(self, address: str, why: str) -> None:
        with pytest.raises(ConfigError, match=why):
            open_carrier(address)

    async def test_no_such_file_of_certificates(self) -> None:
        assert "no certificates in" in await says("amqps://127.0.0.1:1/?ca=/nowhere.pem")


@pytest.mark.rare
class TestTrouble:
    @pytest.mark.parametrize("kind", KINDS)
    async def test_confirmed_blocks_survive_a_kill(
        self, server: RabbitServer, kind: str, lane: str
    ) -> None:
        where = f"{server.url}?queues={kind}"
        first = open_carrier(where)
        await first.declare(lane)
        await first.close()
        # RabbitMQ writes queues to its disk a little later than messages: one that has just been
        # declared may be gone after a kill, with all that is in it.
        server.restart()
        carrier = open_carrier(where)
        blocks = [some_block(lane) for _ in range(1000)]
        await carrier.publish(blocks)
        held = await fetched(carrier, lane, 10)
        await finish(carrier, held[:5])
        server.kill()
        with pytest.raises(StorageBusy):
            await carrier.fetch(lane, 1)
        server.start()
        # What was acknowledged may come again: nobody confirms an acknowledgement.
        found = dict[int, Block]()

        async def all_found() -> bool:
            deliveries = await carrier.fetch(lane, 100)
            found.update((one.block.id, one.block) for one in deliveries)
            await finish(carrier, deliveries)
            return len(found) >= 995 and await is_empty(carrier, lane)

        await until("all blocks", all_found)
        assert set(found) >= {block.id for block in blocks} - {d.block.id for d in held[:5]}
        await carrier.close()

    async def test_a_restart_in_order(
        self, server: RabbitServer, carrier: Carrier, lane: str
    ) -> None:
        blocks = [some_block(lane) for _ in range(5)]
        await carrier.publish(blocks)
        server.restart()
        with pytest.raises(StorageBusy):
            await carrier.count(lane)
        assert by_id(blocks_of(await fetched(carrier, lane, 5))) == by_id(blocks)

    async def test_a_lane_deleted_by_hand(
        self, server: RabbitServer, carrier: Carrier, lane: str
    ) -> None:
        await carrier.publish([some_block(lane)])
        held = await fetched(carrier, lane, 1)
        server.ctl("delete_queue", lane)
        assert await carrier.count(lane) == 0
        assert await carrier.fetch(lane, 1) == []
        await finish(carrier, held)
        await carrier.publish([block := some_block(lane)])
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]

    async def test_a_deleted_lane_takes_no_other_with_it(
        self, server: RabbitServer, carrier: Carrier, lane: str
    ) -> None:
        """Blocks that are held stay held when another lane's error closes a channel."""
        await carrier.publish([some_block(lane)])
        held = await fetched(carrier, lane, 1)
        assert await carrier.fetch("nowhere", 1) == []
        other = open_carrier(server.url)
        assert await other.fetch(lane, 1) == []
        await finish(carrier, held)
        await other.close()

    async def test_a_queue_that_is_full(
        self, server: RabbitServer, carrier: Carrier, lane: str
    ) -> None:
        """An operator's limit is backpressure. By default RabbitMQ would throw away the oldest."""
        await carrier.declare(lane)
        rule = '{"max-length": 3}'
        server.ctl("set_policy", "--apply-to", "queues", "short", f"^{lane}$", rule)
        blocks = list[Block]()

        async def fill() -> None:
            for _ in range(200):
                block = some_block(lane)
                await carrier.publish([block])
                blocks.append(block)

        with pytest.raises(StorageBusy, match="as full as it may be"):
            await fill()
        server.ctl("clear_policy", "short")
        assert len(blocks) >= 3
        found = await fetched(carrier, lane, len(blocks))
        assert {block.id for block in blocks} <= {block.id for block in blocks_of(found)}

    async def test_an_alarm(
        self, server: RabbitServer, carrier: Carrier, lane: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Short of memory or disk, RabbitMQ takes nothing, and gives what it has."""
        monkeypatch.setattr(amqp_link, "ANSWER_S", 1.0)
        await carrier.publish([first := some_block(lane)])
        server.ctl("set_vm_memory_high_watermark", "0.0000001")
        second = some_block(lane)
        for _ in range(2):
            with pytest.raises(StorageBusy, match="short of memory or disk"):
                await carrier.publish([second])
        found = await fetched(carrier, lane, 1)
        assert blocks_of(found) == [first]
        await finish(carrier, found)
        server.ctl("set_vm_memory_high_watermark", "0.4")

        async def is_taken() -> bool:
            try:
                await carrier.publish([second])
            except StorageBusy:
                return False
            return True

        await until("the alarm to be over", is_taken)
        again = {block.id for block in blocks_of(await fetched(carrier, lane, 1))}
        assert again == {second.id}

    async def test_a_broker_that_does_not_answer(
        self, server: RabbitServer, carrier: Carrier, lane: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(amqp_link, "ANSWER_S", 0.5)
        await carrier.publish([block := some_block(lane)])
        server.pause()
        try:
            with pytest.raises(StorageBusy, match="no answer"):
                await carrier.count(lane)
        finally:
            server.resume()
        await asyncio.sleep(0)
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]
