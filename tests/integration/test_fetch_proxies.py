"""Requests by real proxies: tinyproxy, microsocks, a gateway, addresses of this machine. What the
host sees is what counts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from shoal.core.proxies import ProxyAddress
from shoal.core.task import Task
from shoal.errors import TooLate
from shoal.fetch.port import Fetcher, Request, Response, Route
from support.dns_server import NameServer
from support.fetching import fetching
from support.onlooker import Onlooker
from support.proxies import Gateway, MicroSocks, TinyProxy
from support.redis_servers import TlsFiles

# The test's own servers may have a connection left that a proxy has not closed when the loop ends.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collected"),
]

CANARY = "c4n4ry"
SOURCES = {
    "http": "127.0.0.11",
    "http login": "127.0.0.21",
    "socks5": "127.0.0.31",
    "socks5 login": "127.0.0.41",
    "bind": "127.0.0.51",
}
BY_PROXY = [name for name in SOURCES if name != "bind"]


@pytest.fixture(scope="module")
def exits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ProxyAddress]]:
    folder = tmp_path_factory.mktemp("proxies")
    login = {"user": f"user-{CANARY}", "password": f"word-{CANARY}"}
    with ExitStack() as stack:
        yield {
            "http": stack.enter_context(TinyProxy(folder, SOURCES["http"])).address,
            "http login": stack.enter_context(
                TinyProxy(folder, SOURCES["http login"], **login)
            ).address,
            "socks5": stack.enter_context(MicroSocks(folder, SOURCES["socks5"])).address,
            "socks5 login": stack.enter_context(
                MicroSocks(folder, SOURCES["socks5 login"], **login)
            ).address,
            "bind": ProxyAddress("bind", SOURCES["bind"]),
        }


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(Path(tmp_path_factory.mktemp("tls")))


@pytest.fixture
async def host() -> AsyncIterator[Onlooker]:
    async with Onlooker() as host:
        yield host


@pytest.fixture
async def secure(tls: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Onlooker]:
    monkeypatch.setenv("SSL_CERT_FILE", str(tls.authority))
    async with Onlooker(tls) as host:
        yield host


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as fetcher:
        yield fetcher


async def get(fetcher: Fetcher, proxy: ProxyAddress, url: str, **changes: Any) -> Response:
    """By an exit that is asked for by its pool."""
    task = {name: changes.pop(name) for name in ("method", "headers", "body") if name in changes}
    send_by = changes.pop("send_by", float("inf"))
    route = Route(**{"name": "dc-1", "proxy": proxy, **changes})
    return await fetcher.fetch(Request(Task(url=url, proxy_pool="dc", **task), send_by, route))


# What the host sees


@pytest.mark.parametrize("tunnels_all", [False, True])
@pytest.mark.parametrize("name", SOURCES)
async def test_plain_http(
    fetcher: Fetcher,
    host: Onlooker,
    exits: dict[str, ProxyAddress],
    name: str,
    tunnels_all: bool,
) -> None:
    response = await get(fetcher, exits[name], host.url("/a?b=c%20d"), tunnels_all=tunnels_all)
    assert response.body.decode() == f"to {SOURCES[name]}"
    (seen,) = host.seen
    assert (seen.source, seen.path) == (SOURCES[name], "/a?b=c%20d")
    assert seen.headers["Host"] == f"127.0.0.1:{host.port}"


@pytest.mark.parametrize("name", SOURCES)
async def test_https(
    fetcher: Fetcher, secure: Onlooker, exits: dict[str, ProxyAddress], name: str
) -> None:
    url = secure.url("/a", host="localhost")
    for _ in range(3):
        response = await get(fetcher, exits[name], url)
        assert response.status == 200
    assert secure.sources == [SOURCES[name]] * 3
    assert secure.connections == 1


@pytest.mark.parametrize("tunnels_all", [False, True])
@pytest.mark.parametrize("name", BY_PROXY)
async def test_nothing_of_the_login_reaches_the_host(
    fetcher: Fetcher,
    host: Onlooker,
    exits: dict[str, ProxyAddress],
    name: str,
    tunnels_all: bool,
) -> None:
    for _ in range(2):
        response = await get(fetcher, exits[name], host.url(), tunnels_all=tunnels_all)
    assert CANARY not in repr(host.seen)
    assert not [key for key in host.seen[0].headers if key.lower().startswith("proxy-")]
    assert CANARY not in repr(response)
    assert response.transfer.address == ""


async def test_a_login_that_nobody_asked_for_stays_with_the_proxy(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress]
) -> None:
    """tinyproxy without a password passes it on to the host, as any header it does not know."""
    proxy = exits["http"]
    known = ProxyAddress("http", proxy.host, proxy.port, f"user-{CANARY}", CANARY)
    for _ in range(3):
        await get(fetcher, known, host.url())
    assert host.sources == [SOURCES["http"]] * 3
    assert "roxy" not in repr(host.seen)


@pytest.mark.parametrize("name", SOURCES)
async def test_methods_bodies_and_headers_arrive(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress], name: str
) -> None:
    body = "a body " * 10_000
    await get(
        fetcher, exits[name], host.url("/x"), method="POST", body=body, headers={"X-Own": "1"}
    )
    response = await get(fetcher, exits[name], host.url("/y"), method="HEAD")
    assert response.body == b""
    post, head = host.seen
    assert (post.method, post.body, post.headers["X-Own"]) == ("POST", body, "1")
    assert (head.method, head.path) == ("HEAD", "/y")


@pytest.mark.parametrize("name", ["http", "socks5"])
async def test_names_are_looked_up_by_the_proxy(
    host: Onlooker,
    exits: dict[str, ProxyAddress],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where private addresses are allowed, there is nothing to check. `localhost` is in the files
    of the proxy's machine, and unknown to our name server."""
    async with NameServer({}) as names:
        names.is_used_by(monkeypatch)
        async with fetching() as fetcher:
            for tunnels_all in (False, True):
                await get(fetcher, exits[name], host.url(host="localhost"), tunnels_all=tunnels_all)
        assert "localhost" not in names.asked
    assert [seen.headers["Host"] for seen in host.seen] == [f"localhost:{host.port}"] * 2


async def test_a_proxy_may_be_a_name(
    host: Onlooker, exits: dict[str, ProxyAddress], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with NameServer({"proxy.example": ["127.0.0.1"]}) as names:
        names.is_used_by(monkeypatch)
        async with fetching() as fetcher:
            proxy = ProxyAddress("http", "proxy.example", exits["http"].port)
            await get(fetcher, proxy, host.url())
    assert host.sources == [SOURCES["http"]]


# Connections


@pytest.mark.parametrize("name", ["http", "socks5", "bind"])
async def test_connections_are_kept_on_a_route_unless_it_says_otherwise(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress], name: str
) -> None:
    for _ in range(3):
        await get(fetcher, exits[name], host.url(), tunnels_all=True)
    assert host.connections == 1
    await get(fetcher, exits[name], host.url(), tunnels_all=True, name="another")
    assert host.connections == 2
    for _ in range(3):
        await get(fetcher, exits[name], host.url(), tunnels_all=True, keeps_connections=False)
    assert host.connections == 5


async def test_a_proxy_that_closes_without_a_word_loses_no_request(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress]
) -> None:
    """tinyproxy closes the connection after each answer, and does not say so. If connections were
    kept, a few of a thousand requests would go down with one."""
    for _ in range(300):
        assert (await get(fetcher, exits["http"], host.url())).status == 200


async def test_a_gateway_gives_each_session_its_own_address(
    fetcher: Fetcher, host: Onlooker
) -> None:
    with Gateway(3) as gateway:
        for session in ("a", "b", "a", "c"):
            await get(fetcher, gateway.session(session), host.url(), name=f"res-1-{session}")
        assert host.sources == [gateway.source_of(name) for name in ("a", "b", "a", "c")]
        assert len(set(host.sources)) == 3


async def test_without_a_session_each_connection_is_another_visitor(
    fetcher: Fetcher, host: Onlooker
) -> None:
    with Gateway(5) as gateway:
        for _ in range(5):
            await get(
                fetcher,
                gateway.session(),
                host.url(),
                keeps_connections=False,
                tunnels_all=True,
            )
    assert sorted(host.sources) == sorted(gateway.sources)


@pytest.mark.parametrize("name", ["http", "socks5"])
async def test_a_permission_may_lapse_during_the_handshake(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress], name: str
) -> None:
    """Nothing is sent then, and the tunnel is there for the next try."""
    late = {"send_by": time.monotonic(), "tunnels_all": True}
    with pytest.raises(TooLate):
        await get(fetcher, exits[name], host.url(), **late)
    assert host.seen == []
    response = await get(fetcher, exits[name], host.url(), **late)
    assert response.status == 200


# What goes over the wire


async def test_the_handshake_is_counted_with_the_first_request(
    fetcher: Fetcher, host: Onlooker, exits: dict[str, ProxyAddress]
) -> None:
    first, second = [
        (await get(fetcher, exits["socks5 login"], host.url())).transfer for _ in range(2)
    ]
    login = 3 + len(f"user-{CANARY}word-{CANARY}")
    assert first.sent_bytes - second.sent_bytes == 4 + login + 10
    assert first.received_bytes - second.received_bytes == 2 + 2 + 10


async def test_a_tunnel_is_counted_with_the_first_request(
    fetcher: Fetcher, secure: Onlooker, exits: dict[str, ProxyAddress]
) -> None:
    first, second = [(await get(fetcher, exits["http"], secure.url())).transfer for _ in range(2)]
    place = f"127.0.0.1:{secure.port}"
    asked = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"
    assert first.sent_bytes - second.sent_bytes == len(asked)
    assert first.received_bytes > second.received_bytes
