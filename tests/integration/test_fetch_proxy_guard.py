"""What exits must never do: lead into private networks, be gone round, or be seen by hosts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import Any

import msgspec
import pytest

from shoal.core.proxies import ProxyAddress
from shoal.core.task import Task
from shoal.errors import ExitFault, FetchError, Refused, UnknownHost
from shoal.fetch import guard
from shoal.fetch.http import exits
from shoal.fetch.port import DIRECT, Fetcher, Request, Route
from support.bad_proxies import Trickster
from support.dns_server import NameServer
from support.fetching import fetching
from support.onlooker import Onlooker
from support.own_proxies import Ask, OwnProxy, asked, pass_on

# The test's own servers may have a connection left that a proxy has not closed when the loop ends.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collected"),
]

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1::1"
NAMES = {
    "shop.example": [PUBLIC],
    "both.example": [PUBLIC_6, PUBLIC, "10.0.0.1"],
    "six.example": [PUBLIC_6],
    "inside.example": ["10.0.0.1", "127.0.0.1"],
}
WELCOME = b"\x05\x00"
REFUSED = b"\x05\x05\x00\x01" + bytes(6)


class Told(OwnProxy):
    """Notes what it is asked for, and goes to one place instead."""

    def __init__(self, host: Onlooker) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self._port = host.port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ask = await asked(reader)
        self.asked.append((ask.method, ask.target))
        place = f"127.0.0.1:{self._port}"
        if ask.method != "CONNECT":
            path = ask.target.removeprefix("http://").partition("/")[2]
            place = f"http://{place}/{path}"
        await pass_on(Ask(ask.method, place, ask.lines), reader, writer, "127.0.0.11")


@pytest.fixture
async def host() -> AsyncIterator[Onlooker]:
    async with Onlooker() as host:
        yield host


@pytest.fixture(autouse=True)
async def names(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NameServer]:
    async with NameServer(NAMES) as names:
        names.is_used_by(monkeypatch)
        yield names


@pytest.fixture
async def guarded(names: NameServer) -> AsyncIterator[Fetcher]:
    async with fetching(allow_private=False) as fetcher:
        yield fetcher


@pytest.fixture
def out_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxies of this machine count as some of the internet."""
    monkeypatch.setattr(exits, "is_public", lambda address: True)


def by(proxy: ProxyAddress, url: str, **route: Any) -> Request:
    return Request(Task(url=url, proxy_pool="dc"), route=Route("dc-1", proxy, **route))


# The guard


async def test_a_proxy_of_our_network_is_given_addresses_that_were_checked(
    guarded: Fetcher, host: Onlooker
) -> None:
    with Told(host) as proxy:
        for name in ("shop.example", "both.example"):
            await guarded.fetch(by(proxy.address, f"http://{name}:8080/a"))
        assert proxy.asked == [("CONNECT", f"{PUBLIC}:8080")] * 2
        assert [seen.headers["Host"] for seen in host.seen] == [
            "shop.example:8080",
            "both.example:8080",
        ]


async def test_an_address_of_the_newer_kind(guarded: Fetcher, host: Onlooker) -> None:
    with Told(host) as proxy:
        await guarded.fetch(by(proxy.address, "http://six.example/"))
        assert proxy.asked == [("CONNECT", f"[{PUBLIC_6}]:80")]


@pytest.mark.usefixtures("out_there")
async def test_a_proxy_out_there_is_given_the_name(guarded: Fetcher, host: Onlooker) -> None:
    with Told(host) as proxy:
        await guarded.fetch(by(proxy.address, "http://shop.example/a?b#c"))
        await guarded.fetch(by(proxy.address, "http://shop.example/a", tunnels_all=True))
        assert proxy.asked == [
            ("GET", "http://shop.example/a?b"),
            ("CONNECT", "shop.example:80"),
        ]
        assert [seen.path for seen in host.seen] == ["/a?b", "/a"]


@pytest.mark.parametrize(
    ("host_name", "sent"),
    [
        ("shop.example", b"\x01" + ip_address(PUBLIC).packed),
        ("six.example", b"\x04" + ip_address(PUBLIC_6).packed),
    ],
)
async def test_socks_of_our_network(guarded: Fetcher, host_name: str, sent: bytes) -> None:
    with Trickster(WELCOME, REFUSED, scheme="socks5") as proxy, pytest.raises(ExitFault):
        await guarded.fetch(by(proxy.address, f"https://{host_name}/"))
    assert proxy.heard == b"\x05\x01\x00" + b"\x05\x01\x00" + sent + b"\x01\xbb"


@pytest.mark.usefixtures("out_there")
async def test_socks_out_there(guarded: Fetcher) -> None:
    with Trickster(WELCOME, REFUSED, scheme="socks5") as proxy, pytest.raises(ExitFault):
        await guarded.fetch(by(proxy.address, "https://shop.example/"))
    assert proxy.heard.endswith(b"\x05\x01\x00\x03\x0cshop.example\x01\xbb")


@pytest.mark.parametrize("is_out_there", [False, True])
@pytest.mark.parametrize("scheme", ["http", "socks5", "bind"])
@pytest.mark.parametrize("place", ["inside.example", "10.0.0.1", "[::1]", "0x7f.1", "localhost"])
async def test_private_hosts_are_refused_by_every_exit(
    guarded: Fetcher,
    place: str,
    scheme: Any,
    is_out_there: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also by those out there: what they would find under the name is nobody's to ask for."""
    if is_out_there:
        monkeypatch.setattr(exits, "is_public", lambda address: True)
    with Trickster(WELCOME, scheme="http") as proxy:
        exit_ = ProxyAddress(scheme, "127.0.0.1", 0 if scheme == "bind" else proxy.port)
        for start in ("http", "https"):
            with pytest.raises(FetchError) as caught:
                await guarded.fetch(by(exit_, f"{start}://{place}/"))
            assert isinstance(caught.value, Refused) or "name not found" in str(caught.value)
            assert not isinstance(caught.value, ExitFault)
        assert proxy.connections == 0


async def test_a_name_that_nobody_knows_is_not_asked_for(guarded: Fetcher) -> None:
    """What cannot be checked is not let through."""
    with Trickster() as proxy:
        with pytest.raises(FetchError, match=r"^DNS: name not found$") as caught:
            await guarded.fetch(by(proxy.address, "http://unknown.example/"))
        assert (type(caught.value), proxy.connections) == (UnknownHost, 0)


async def test_an_own_address_goes_only_where_was_checked(
    guarded: Fetcher, host: Onlooker, monkeypatch: pytest.MonkeyPatch, names: NameServer
) -> None:
    names.names = {"shop.example": ["10.0.0.1", "127.0.0.1"]}
    monkeypatch.setattr(guard, "is_public", lambda address: address == "127.0.0.1")
    exit_ = ProxyAddress("bind", "127.0.0.51")
    response = await guarded.fetch(by(exit_, f"http://shop.example:{host.port}/"))
    assert (response.transfer.address, host.sources) == ("127.0.0.1", ["127.0.0.51"])


# No exit, no request


async def test_a_task_with_a_pool_never_leaves_directly(host: Onlooker) -> None:
    async with fetching() as fetcher:
        task = Task(url=host.url(), proxy_pool="dc")
        for route in (DIRECT, Route("dc-1"), Route("direct")):
            with pytest.raises(Refused, match=r"^no exit of pool 'dc' was given for it$"):
                await fetcher.fetch(Request(task, route=route))
        assert host.seen == []
        allowed = Route("direct", allows_direct=True)
        assert (await fetcher.fetch(Request(task, route=allowed))).status == 200
    assert host.sources == ["127.0.0.1"]


async def test_what_was_sent_directly_before_is_no_way_for_an_exit(host: Onlooker) -> None:
    """A connection that is kept belongs to its route."""
    async with fetching() as fetcher:
        await fetcher.fetch(Request(Task(url=host.url())))
        await fetcher.fetch(by(ProxyAddress("bind", "127.0.0.51"), host.url()))
        await fetcher.fetch(Request(Task(url=host.url())))
    assert host.sources == ["127.0.0.1", "127.0.0.51", "127.0.0.1"]


# Secrets


@pytest.mark.parametrize(
    "name", ["Proxy-Authorization", "proxy-connection", "PROXY-AUTHENTICATE", "Proxy-X"]
)
async def test_headers_for_proxies_are_refused(host: Onlooker, name: str) -> None:
    async with fetching() as fetcher:
        task = Task(url=host.url(), headers={name: "Basic Zm9v"})
        with pytest.raises(Refused, match="cannot be set") as caught:
            await fetcher.fetch(Request(task))
    assert "Zm9v" not in str(caught.value)
    assert host.seen == []


async def test_nothing_of_an_exit_is_shown(
    host: Onlooker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("shoal"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    words = []
    for answer in (b"HTTP/1.1 407 No\r\n\r\n", b"garbage", b"HTTP/1.1 502 No\r\n\r\n"):
        for scheme in ("http", "socks5"):
            with Trickster(answer, closes=True) as proxy:
                secret = msgspec.structs.replace(
                    proxy.address, scheme=scheme, user="user-c4n4ry", password="word-c4n4ry"
                )
                async with fetching() as fetcher:
                    request = by(secret, host.url(), tunnels_all=True)
                    with pytest.raises(ExitFault) as caught:
                        await fetcher.fetch(request)
                error: BaseException | None = caught.value
                while error is not None:
                    words.append(repr(error))
                    error = error.__cause__ or error.__context__
                words += [repr(request), str(request.route)]
    assert "c4n4ry" not in repr(words) + caplog.text
