"""The publisher contract on servers that speak SQS's protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from contract.publisher_suite import PublisherContract, message, numbers, read
from shoal.errors import ConfigError
from shoal.publish.port import Channel
from support.publishing import SqsRig
from support.rarely import first_then_rare
from support.sqs_servers import Moto, SqsServer
from support.tcp_proxy import TcpProxy


@pytest.fixture(params=first_then_rare("ministack", "moto"))
async def rig(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[SqsRig]:
    if request.param == "ministack":
        async for rig in _rig(request.getfixturevalue("sqs_server"), monkeypatch):
            yield rig
    else:
        with Moto(tmp_path_factory.mktemp("moto")) as server:
            async for rig in _rig(server, monkeypatch):
                yield rig


async def _rig(server: SqsServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqsRig]:
    with TcpProxy(server.port) as network:
        address = f"http://127.0.0.1:{network.port}"
        for name, value in {**server.environment, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        rig = SqsRig(network)
        await rig.make()
        yield rig
        network.heal()
        await rig.close()


class TestSqs(PublisherContract):
    async def test_the_size_of_a_request(self, rig: SqsRig) -> None:
        """Ten of them are larger than a request may be."""
        publisher = rig.connect()
        await publisher.publish([message(number, text="x" * 100_000) for number in range(12)])
        assert numbers(await read(rig, Channel.ITEMS, 12)) == list(range(12))


async def test_a_queue_that_is_not_there(rig: SqsRig) -> None:
    publisher = rig.connected("sqs://us-east-1/nobodys")
    with pytest.raises(ConfigError, match="there is no such queue: make it first"):
        await publisher.check()
