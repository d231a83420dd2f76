"""The carrier contract on servers that speak SQS's protocol, and what can go wrong with queues."""

from __future__ import annotations

import base64
import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from contract.carrier_suite import CarrierContract, blocks_of, fetched, finish, some_block
from shoal.drivers.sqs import SqsLink, sqs_address
from shoal.errors import ConfigError, StorageBusy
from shoal.frontier.broker.carrier import Carrier, shared_lane
from shoal.frontier.broker.carriers import open_carrier, sqs
from shoal.frontier.broker.carriers.sqs import KEPT_S, SqsCarrier
from support.sites import Site, serving
from support.sqs_servers import Moto, SqsServer, StrictMoto
from support.tcp_proxy import TcpProxy

ADDRESS = "sqs://us-east-1/shoal"
_numbers = itertools.count()


@pytest.fixture
def lane() -> str:
    return shared_lane("shop", next(_numbers))


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsServer]:
    with Moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """These servers need no waiting to find what they have."""
    monkeypatch.setattr(sqs, "POLL_S", 0)


def use(server: SqsServer, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    for name, value in {**server.environment, **more}.items():
        monkeypatch.setenv(name, value)


class SqsRig:
    """Carriers whose connections go by a network that can fail."""

    in_order = False

    def __init__(self, network: TcpProxy, many: int) -> None:
        self.network = network
        self.many = many
        self.opened: list[SqsCarrier] = []

    def connect(self) -> Carrier:
        self.opened.append(SqsCarrier(ADDRESS, held_s=2))
        return self.opened[-1]

    async def put(self, lane: str, body: bytes) -> None:
        """As text: of what begins as a block, the text that stands for it."""
        text = base64.b64encode(body) if body.startswith(b"S1") else body or b" "
        await self._call("send_message", lane, MessageBody=text.decode())

    async def purge(self, lane: str) -> None:
        await self._call("purge_queue", lane)

    async def _call(self, operation: str, lane: str, **params: Any) -> None:
        await call(self.opened[0].queue_name(lane), operation, **params)


async def call(name: str, operation: str, **params: Any) -> Any:
    """Do by hand what an operator may do."""
    link = SqsLink(sqs_address(ADDRESS))
    try:
        if operation == "create_queue":
            return await link.call(operation, QueueName=name, **params)
        url = (await link.call("get_queue_url", QueueName=name))["QueueUrl"]
        return await link.call(operation, QueueUrl=url, **params)
    finally:
        await link.close()


@pytest.fixture
async def rig(
    server: SqsServer, many: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqsRig]:
    with TcpProxy(server.port) as network:
        use(server, monkeypatch, AWS_ENDPOINT_URL=f"http://127.0.0.1:{network.port}")
        rig = SqsRig(network, many)
        yield rig
        for carrier in rig.opened:
            await carrier.close()


class TestMinistack(CarrierContract):
    @pytest.fixture
    def server(self, sqs_server: SqsServer) -> SqsServer:
        return sqs_server

    @pytest.fixture
    def many(self) -> int:
        return 300


@pytest.mark.rare
class TestMoto(CarrierContract):
    @pytest.fixture
    def server(self, moto: SqsServer) -> SqsServer:
        return moto

    @pytest.fixture
    def many(self) -> int:
        return 30  # It takes half a second for ten.


@pytest.fixture(params=["ministack", "moto"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SqsServer:
    name = {"ministack": "sqs_server"}.get(request.param, request.param)
    server: SqsServer = request.getfixturevalue(name)
    use(server, monkeypatch)
    return server


@pytest.fixture
async def carrier(either: SqsServer) -> AsyncIterator[SqsCarrier]:
    carrier = SqsCarrier(ADDRESS)
    yield carrier
    await carrier.close()


class TestQueues:
    async def test_messages_are_kept_as_long_as_can_be(
        self, carrier: SqsCarrier, lane: str
    ) -> None:
        await carrier.declare(lane)
        assert await kept(carrier, lane) == KEPT_S

    async def test_also_in_a_queue_that_was_made_by_hand(
        self, carrier: SqsCarrier, lane: str
    ) -> None:
        name = carrier.queue_name(lane)
        await call(name, "create_queue", Attributes={"MessageRetentionPeriod": "3600"})
        await carrier.declare(lane)
        assert await kept(carrier, lane) == KEPT_S

    async def test_deleted_by_hand(self, carrier: SqsCarrier, lane: str) -> None:
        await carrier.publish([some_block(lane)])
        held = await fetched(carrier, lane, 1)
        await call(carrier.queue_name(lane), "delete_queue")
        assert await carrier.count(lane) == 0
        assert await carrier.fetch(lane, 1) == []
        await finish(carrier, held)
        await carrier.publish([block := some_block(lane)])
        assert blocks_of(await fetched(carrier, lane, 1)) == [block]

    async def test_requests_are_counted(self, carrier: SqsCarrier, lane: str) -> None:
        await carrier.declare(lane)
        before = carrier.requests
        await carrier.publish([some_block(lane) for _ in range(25)])
        assert carrier.requests == before + 3
        found = await fetched(carrier, lane, 10)
        assert carrier.requests == before + 4
        await finish(carrier, found)
        assert carrier.requests == before + 5

    async def test_large_ones_are_billed_as_several(self, carrier: SqsCarrier, lane: str) -> None:
        await carrier.declare(lane)
        before = carrier.requests
        await carrier.publish([some_block(lane, os.urandom(75_000))])
        assert carrier.requests == before + 2, "100,000 characters are more than 64 KB"
        await fetched(carrier, lane, 1)
        assert carrier.requests == before + 4


async def kept(carrier: SqsCarrier, lane: str) -> int:
    name = "MessageRetentionPeriod"
    answer = await call(carrier.queue_name(lane), "get_queue_attributes", AttributeNames=[name])
    return int(answer["Attributes"][name])


async def _page(path: str) -> web.Response:
    return web.Response(text="welcome")


class TestSetUpWrong:
    @pytest.mark.parametrize(
        ("address", "why"),
        [
            ("sqs://key:hush@eu-west-1/x", "the login is no part of it"),
            ("sqs://eu-west-1", "write sqs://region/name"),
            ("sqs://eu-west-1/a/b", "write sqs://region/name"),
            ("sqs://h1,h2/x", "write sqs://region/name"),
            ("sqs://eu-west-1/a b", "a prefix is"),
            ("sqs://eu-west-1/x?fifo=yes", "no such option: fifo"),
        ],
    )
    def test_no_such_address(self, address: str, why: str) -> None:
        with pytest.raises(ConfigError, match=why) as raised:
            open_carrier(address)
        assert "hush" not in str(raised.value)

    async def test_no_login(
        self, sqs_server: SqsServer, monkeypatch: pytest.MonkeyPatch, lane: str
    ) -> None:
        use(sqs_server, monkeypatch)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("HOME", "/nonexistent")
        carrier = SqsCarrier(ADDRESS)
        with pytest.raises(ConfigError, match="Unable to locate credentials"):
            await carrier.declare(lane)
        await carrier.close()

    @pytest.mark.rare
    async def test_a_wrong_login(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane: str
    ) -> None:
        with StrictMoto(tmp_path) as server:
            use(server, monkeypatch)
            carrier = SqsCarrier(ADDRESS)
            with pytest.raises(ConfigError, match="check the login") as raised:
                await carrier.publish([some_block(lane)])
            assert "InvalidClientTokenId" in str(raised.value)
            await carrier.close()

    @pytest.mark.parametrize(
        ("environment", "why"),
        [
            ({"AWS_PROFILE": "nobody"}, r"profile \(nobody\) could not be found"),
            ({"AWS_ENDPOINT_URL": "nowhere"}, "Invalid endpoint: nowhere"),
            ({"AWS_ENDPOINT_URL": "{site}"}, "what answers is not SQS"),
        ],
    )
    async def test_what_the_environment_says(
        self,
        sqs_server: SqsServer,
        monkeypatch: pytest.MonkeyPatch,
        environment: dict[str, str],
        why: str,
    ) -> None:
        with serving(Site(_page)) as site:
            use(
                sqs_server,
                monkeypatch,
                **{k: v.format(site=site.url) for k, v in environment.items()},
            )
            carrier = SqsCarrier(ADDRESS)
            with pytest.raises(ConfigError, match=why):
                await carrier.count(shared_lane("shop", 0))
            await carrier.close()

    async def test_nobody_there(
        self, sqs_server: SqsServer, monkeypatch: pytest.MonkeyPatch, lane: str
    ) -> None:
        use(sqs_server, monkeypatch, AWS_ENDPOINT_URL="http://127.0.0.1:9")
        carrier = SqsCarrier(ADDRESS)
        with pytest.raises(StorageBusy, match=r"127\.0\.0\.1:9"):
            await carrier.declare(lane)
        await carrier.close()
