"""Which pool a request of a project leaves by, and what an error by an exit says."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.http import Response
from twisted.internet import error as twisted_errors

from shoal.config import Rules
from shoal.core.exits import Blame
from shoal.scrapy.wire.pools import Pools
from shoal.scrapy.wire.tagged import Unserialisable
from shoal.scrapy.worker.answers import ExitFailed, blame_of, block_in, fault_of

URL = "https://shop.example/p/1"
FOR_ALL = Pools(Rules(pools=("dc", "res"), proxy_pool="dc"))
FOR_SOME = Pools(Rules(pools=("dc",)))


@pytest.mark.parametrize(
    ("meta", "for_all", "for_some"),
    [
        ({}, "dc", None),
        ({"proxy_pool": "dc"}, "dc", "dc"),
        ({"proxy_pool": "direct"}, "direct", None),
        ({"proxy": "http://own.example:3128"}, "direct", None),
        ({"proxy": None}, "dc", None),
        ({"proxy": "http://of.environment:1", "_scheme_proxy": True}, "dc", None),
    ],
)
def test_the_pool_of_a_request(
    meta: dict[str, Any], for_all: str | None, for_some: str | None
) -> None:
    request = Request(URL, meta=meta)
    assert FOR_ALL.pool_of(request, "https") == for_all
    assert FOR_SOME.pool_of(request, "https") == for_some
    assert Pools().pool_of(request, "https") is None


def test_what_cannot_leave_by_an_exit_does_not_leave() -> None:
    with pytest.raises(Unserialisable, match="is ftp:, which leaves by no exit"):
        FOR_ALL.pool_of(Request("ftp://shop.example/1"), "ftp")
    with pytest.raises(Unserialisable, match="names no pool of the crawl: 'no'"):
        FOR_ALL.pool_of(Request(URL, meta={"proxy_pool": "no"}), "https")
    assert FOR_ALL.pool_of(Request("data:,x"), "data") == "direct"


def _made(error: Any, *arguments: str) -> Any:
    """Twisted's errors have no types."""
    return error(*arguments)


def tunnel(status: int) -> TunnelError:
    text = {"status": status, "reason": b"x"}
    return TunnelError(f"Could not open CONNECT tunnel with proxy 192.0.2.7:3128 [{text!r}]")


@pytest.mark.parametrize(
    ("error", "is_exits", "blame"),
    [
        (tunnel(407), True, None),
        (tunnel(502), False, Blame.PAIR),
        (TunnelError("... with proxy 192.0.2.7:3128 [b'what']"), True, None),
        (_made(twisted_errors.ConnectionRefusedError, "192.0.2.7"), True, None),
        (_made(twisted_errors.DNSLookupError, "192.0.2.7"), True, None),
        (_made(twisted_errors.TCPTimedOutError, "192.0.2.7"), True, None),
        (_made(twisted_errors.TimeoutError), False, Blame.PAIR),
        (_made(twisted_errors.ConnectionLost), False, Blame.PAIR),
        (ValueError(), False, Blame.NOBODY),
    ],
)
def test_who_is_to_blame(error: Exception, is_exits: bool, blame: Blame | None) -> None:
    told = fault_of(error)
    assert "192.0.2.7" not in str(told)
    assert isinstance(told, ExitFailed) is is_exits
    if blame is not None:
        assert blame_of(told) is blame


def test_what_a_project_wants_to_see_is_no_block() -> None:
    request, forbidden = Request(URL), Response(URL, status=403)
    assert block_in(request, forbidden, ()) is not None
    assert block_in(request, forbidden, {403}) is None
    assert block_in(request, forbidden, None) is None
    challenge = Response(URL, headers={"cf-mitigated": "challenge"}, body=b"x" * 100)
    assert block_in(request, challenge, {403}) is not None
