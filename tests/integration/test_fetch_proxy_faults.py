"""Whose fault it is that a request by an exit did not get to the host."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.core.exits import Blame
from shoal.core.proxies import ProxyAddress
from shoal.core.task import Task
from shoal.errors import ExitFault, FetchError, OwnFault
from shoal.fetch.http import client, exits
from shoal.fetch.http.tunnels.connect import MAX_HEAD_BYTES
from shoal.fetch.port import Fetcher, Request, Route
from shoal.runtime import patience
from support.bad_proxies import Endless, Forger, Trickster
from support.dns_server import SILENT, NameServer
from support.fetching import fetching
from support.onlooker import Onlooker
from support.proxies import MicroSocks, TinyProxy
from support.redis_servers import TlsFiles
from support.server_process import free_port

# The test's own servers may have a connection left that a proxy has not closed when the loop ends.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collected"),
]

CANARY = "c4n4ry"
NOBODY_THERE = "http://127.0.0.1:1/"
OK = b"HTTP/1.1 200 OK\r\n\r\n"
WELCOME, LET_IN = b"\x05\x00", b"\x01\x00"


@pytest.fixture
async def host() -> AsyncIterator[Onlooker]:
    async with Onlooker() as host:
        yield host


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    async with fetching() as fetcher:
        yield fetcher


async def fault(
    fetcher: Fetcher, proxy: ProxyAddress, url: str, name: str = "dc-1", **route: Any
) -> ExitFault:
    """What comes of a request."""
    with pytest.raises(ExitFault) as caught:
        await fetcher.fetch(
            Request(Task(url=url, proxy_pool="dc"), route=Route(name, proxy, **route))
        )
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)
    return caught.value


# The exit's


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_proxy_that_is_gone(fetcher: Fetcher, host: Onlooker, scheme: Any) -> None:
    error = await fault(fetcher, ProxyAddress(scheme, "127.0.0.1", free_port()), host.url())
    assert (error.blame, str(error)) == (Blame.EXIT, "proxy: connection refused")
    assert error.wire_bytes == 0


@pytest.mark.parametrize("answer", [[], SILENT])
async def test_a_proxy_whose_name_is_not_found(
    host: Onlooker, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.fetch.http.dns.LOOKUP_S", 0.2)
    async with NameServer({"proxy.example": answer}) as names:
        names.is_used_by(monkeypatch)
        async with fetching() as fetcher:
            error = await fault(fetcher, ProxyAddress("http", "proxy.example", 80), host.url())
    assert error.blame == Blame.EXIT
    assert str(error).startswith("proxy: DNS: ")


@pytest.mark.parametrize("tunnels_all", [False, True])
@pytest.mark.parametrize("kind", [TinyProxy, MicroSocks])
@pytest.mark.parametrize("login", [("", ""), ("user", "wrong"), ("who", "word")])
async def test_a_proxy_that_does_not_let_us_in(
    fetcher: Fetcher,
    host: Onlooker,
    tmp_path: Path,
    kind: type[TinyProxy | MicroSocks],
    login: tuple[str, str],
    tunnels_all: bool,
) -> None:
    with kind(tmp_path, "127.0.0.11", user="user", password="word") as real:
        proxy = ProxyAddress(real.scheme, "127.0.0.1", real.port, *login)
        error = await fault(fetcher, proxy, host.url(), tunnels_all=tunnels_all)
    assert error.blame == Blame.EXIT
    assert error.wire_bytes > 0
    assert host.seen == []


async def test_a_login_too_long_for_socks(fetcher: Fetcher, host: Onlooker) -> None:
    with Trickster(WELCOME, scheme="socks5") as proxy:
        long = ProxyAddress("socks5", "127.0.0.1", proxy.port, "user", CANARY * 50)
        assert (await fault(fetcher, long, host.url())).blame == Blame.EXIT
    assert CANARY.encode() not in proxy.heard


GARBAGE = [
    Trickster(b"SSH-2.0-OpenSSH_9.2\r\n"),
    Trickster(b"HTTP/1.1 2000 what\r\n\r\n"),
    Trickster(b"HTTP/1.1 200\x00\r\n\r\n"),
    Trickster(OK + b"unasked"),
    Trickster(b"\x05\x00"),
    Endless(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n"),
    Endless(b"", b"H"),
    Trickster(b"HTTP/1.1 200 OK\r\n\r\n", scheme="socks5"),
    Trickster(b"\x04\x00", scheme="socks5"),
    Trickster(b"\x05\x07", scheme="socks5"),
    Trickster(WELCOME, b"\x04\x00\x00\x01" + bytes(6), scheme="socks5"),
    Trickster(WELCOME, b"\x05\x00\x00\x09" + bytes(6), scheme="socks5"),
    Endless(b"", b"\x00" * 1000, scheme="socks5"),
]


@pytest.mark.parametrize("proxy", GARBAGE)
async def test_garbage(fetcher: Fetcher, host: Onlooker, proxy: Trickster | Endless) -> None:
    with proxy:
        error = await fault(fetcher, proxy.address, host.url(), tunnels_all=True)
    assert (error.blame, str(error)) == (Blame.EXIT, "the proxy does not answer as one")
    assert 0 < error.wire_bytes < MAX_HEAD_BYTES + 1000


@pytest.mark.parametrize("status", [400, 401, 402, 403, 405, 407, 429, 302])
async def test_connect_is_refused(fetcher: Fetcher, host: Onlooker, status: int) -> None:
    with Trickster(b"HTTP/1.1 %d No\r\nContent-Length: 2\r\n\r\nno" % status) as proxy:
        error = await fault(fetcher, proxy.address, host.url(), tunnels_all=True)
    assert error.blame == Blame.EXIT
    assert f"HTTP {status}" in str(error)


async def test_a_login_is_asked_for_instead_of_the_page(fetcher: Fetcher, host: Onlooker) -> None:
    answer = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
    with Trickster(answer) as proxy:
        error = await fault(fetcher, proxy.address, host.url())
    assert error.blame == Blame.EXIT
    assert error.wire_bytes == len(proxy.heard) + len(answer)


@pytest.mark.parametrize("reply", [2, 7, 200])
async def test_socks_is_refused(fetcher: Fetcher, host: Onlooker, reply: int) -> None:
    answer = bytes([5, reply, 0, 1]) + bytes(6)
    with Trickster(WELCOME, answer, scheme="socks5") as proxy:
        assert (await fault(fetcher, proxy.address, host.url())).blame == Blame.EXIT


@pytest.mark.parametrize("pieces", [(), (WELCOME,)])
async def test_socks_without_an_end(
    host: Onlooker, pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it knows where to, its silence is its own; after that, the host may be the cause."""
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_S", 0.2)
    with Trickster(*pieces, scheme="socks5") as proxy:
        async with fetching() as fetcher:
            error = await fault(fetcher, proxy.address, host.url())
    assert error.blame == (Blame.PAIR if pieces else Blame.EXIT)
    assert str(error).endswith("within 0.2 s")


async def test_an_address_that_is_not_of_this_machine(fetcher: Fetcher, host: Onlooker) -> None:
    error = await fault(fetcher, ProxyAddress("bind", "192.0.2.1"), host.url())
    assert error.blame == Blame.EXIT


# The pair's


@pytest.mark.parametrize("tunnels_all", [False, True])
@pytest.mark.parametrize("url", [NOBODY_THERE, "http://no-such-name.invalid/"])
@pytest.mark.parametrize("kind", [TinyProxy, MicroSocks])
async def test_a_host_that_cannot_be_reached(
    fetcher: Fetcher,
    tmp_path: Path,
    url: str,
    kind: type[TinyProxy | MicroSocks],
    tunnels_all: bool,
) -> None:
    with kind(tmp_path, "127.0.0.11") as proxy:
        error = await fault(fetcher, proxy.address, url, tunnels_all=tunnels_all)
    assert error.blame == Blame.PAIR


@pytest.mark.parametrize("status", [404, 500, 502, 503, 504])
async def test_connect_fails(fetcher: Fetcher, host: Onlooker, status: int) -> None:
    with Trickster(b"HTTP/1.1 %d No\r\n\r\n" % status) as proxy:
        error = await fault(fetcher, proxy.address, host.url(), tunnels_all=True)
    assert error.blame == Blame.PAIR


@pytest.mark.parametrize("reply", [1, 3, 4, 5, 6, 8])
async def test_socks_fails(fetcher: Fetcher, host: Onlooker, reply: int) -> None:
    answer = bytes([5, reply, 0, 1]) + bytes(6)
    with Trickster(WELCOME, answer, scheme="socks5") as proxy:
        assert (await fault(fetcher, proxy.address, host.url())).blame == Blame.PAIR


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_who_hangs_up_may_have_been_hung_up_on(
    fetcher: Fetcher, host: Onlooker, scheme: Any
) -> None:
    pieces = (b"",) if scheme == "http" else (WELCOME, b"")
    with Trickster(*pieces, scheme=scheme, closes=True) as proxy:
        error = await fault(fetcher, proxy.address, host.url(), tunnels_all=True)
    assert error.blame == Blame.PAIR


async def test_a_tunnel_that_takes_for_ever(
    host: Onlooker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_S", 0.2)
    with Trickster() as proxy:
        async with fetching() as fetcher:
            error = await fault(fetcher, proxy.address, host.url(), tunnels_all=True)
    assert error.blame == Blame.PAIR
    assert str(error) == "the proxy did not reach the host within 0.2 s"


async def test_an_exit_that_has_worked_and_forbids_one_host(
    fetcher: Fetcher, host: Onlooker, tmp_path: Path
) -> None:
    """It is not at fault then: another host can still be reached by it."""
    refusal = b"HTTP/1.1 403 No\r\n\r\n"
    with TinyProxy(tmp_path, "127.0.0.11") as real, Trickster(refusal) as proxy:
        good = Route("dc-1", real.address, tunnels_all=True)
        await fetcher.fetch(Request(Task(url=host.url()), route=good))
        error = await fault(fetcher, proxy.address, host.url("/b"), tunnels_all=True)
        other = await fault(fetcher, proxy.address, host.url(), name="dc-2", tunnels_all=True)
    assert (error.blame, other.blame) == (Blame.PAIR, Blame.EXIT)


async def test_a_host_that_an_own_address_cannot_reach(fetcher: Fetcher) -> None:
    error = await fault(fetcher, ProxyAddress("bind", "127.0.0.11"), NOBODY_THERE)
    assert (error.blame, str(error)) == (Blame.PAIR, "connection refused")
    error = await fault(fetcher, ProxyAddress("bind", "::1"), NOBODY_THERE)
    assert error.blame == Blame.PAIR


# Certificates


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(Path(tmp_path_factory.mktemp("forged")))


@pytest.fixture
async def secure(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Onlooker]:
    files = TlsFiles(Path(tmp_path_factory.mktemp("tls")))
    monkeypatch.setenv("SSL_CERT_FILE", str(files.authority))
    async with Onlooker(files) as host:
        yield host


async def test_a_forged_certificate(fetcher: Fetcher, secure: Onlooker, forged: TlsFiles) -> None:
    with Forger(forged) as proxy:
        error = await fault(fetcher, proxy.address, secure.url())
        assert error.blame == Blame.FORGED
        assert "certificate verify failed" in str(error)
        assert (proxy.read, secure.seen) == (b"", [])


async def test_a_certificate_that_was_right_by_another_exit(
    fetcher: Fetcher, secure: Onlooker, forged: TlsFiles, tmp_path: Path
) -> None:
    """Two exits that forge do not make it the host's own."""
    with Forger(forged) as forger, TinyProxy(tmp_path, "127.0.0.11") as honest:
        task = Task(url=secure.url())
        await fetcher.fetch(Request(task, route=Route("dc-1", honest.address)))
        for name in ("dc-2", "dc-3"):
            assert (await fault(fetcher, forger.address, task.url, name)).blame == Blame.FORGED


async def test_a_host_whose_own_certificate_is_wrong(
    fetcher: Fetcher, secure: Onlooker, forged: TlsFiles, tmp_path: Path
) -> None:
    """One link to such a host must not put all exits out."""
    async with Onlooker(forged) as wrong:
        with TinyProxy(tmp_path, "127.0.0.11") as proxy:
            first = Route("dc-1", proxy.address)
            await fetcher.fetch(Request(Task(url=secure.url()), route=first))
            assert (await fault(fetcher, proxy.address, wrong.url())).blame == Blame.PAIR
            second = Route("dc-2", proxy.address)
            with pytest.raises(FetchError, match="certificate verify failed") as caught:
                await fetcher.fetch(Request(Task(url=wrong.url()), route=second))
            assert not isinstance(caught.value, ExitFault)


# Nobody's, the host's, and our own


@pytest.mark.parametrize("status", [401, 403, 404, 502, 503])
async def test_what_the_host_may_have_said_is_an_answer(
    fetcher: Fetcher, host: Onlooker, status: int
) -> None:
    with Trickster(b"HTTP/1.1 %d Hm\r\nContent-Length: 2\r\n\r\nhm" % status) as proxy:
        route = Route("dc-1", proxy.address)
        response = await fetcher.fetch(Request(Task(url=host.url()), route=route))
    assert (response.status, response.body) == (status, b"hm")


@pytest.mark.parametrize("closes", [False, True])
async def test_a_host_that_does_not_answer_in_a_tunnel(closes: bool) -> None:
    with Trickster(OK, b"", closes=closes) as proxy:
        async with fetching(timeout_s=0.5) as fetcher:
            route = Route("dc-1", proxy.address, tunnels_all=True)
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch(Request(Task(url=NOBODY_THERE), route=route))
    words = "server closed the connection" if closes else "timed out after 0.5 s"
    assert (type(caught.value), str(caught.value)) == (FetchError, words)
    assert caught.value.wire_bytes == len(proxy.heard) + len(OK)


async def test_tls_that_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_S", 0.3)
    with Trickster(OK) as proxy:
        async with fetching() as fetcher:
            route = Route("dc-1", proxy.address)
            with pytest.raises(FetchError, match=r"^no connection within 0.3 s$") as caught:
                await fetcher.fetch(Request(Task(url="https://shop.example/"), route=route))
    assert type(caught.value) is FetchError


@pytest.mark.parametrize("scheme", ["http", "socks5", "bind"])
@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOBUFS])
async def test_our_own_machine_cannot(
    host: Onlooker, scheme: Any, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "OWN_FAULT_PAUSE_S", 0.0)

    async def fail(*_: object, **__: object) -> socket.socket:
        raise OSError(code, "as the system says")

    monkeypatch.setattr(exits, "start_connection", fail)
    async with fetching() as fetcher:
        route = Route("dc-1", ProxyAddress(scheme, "127.0.0.1", 8080))
        with pytest.raises(OwnFault):
            await fetcher.fetch(Request(Task(url=host.url()), route=route))


async def test_a_fetch_that_is_cancelled_leaves_no_socket(host: Onlooker) -> None:
    with Trickster() as proxy:
        async with fetching() as fetcher:
            route = Route("dc-1", proxy.address, tunnels_all=True)
            fetch = asyncio.ensure_future(fetcher.fetch(Request(Task(url=host.url()), route=route)))
            await proxy.hears(b"CONNECT")
            fetch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await fetch
            await proxy.is_left()
