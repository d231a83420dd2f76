"""The target that bans does what it is told, or the tests that hang on it would show nothing."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from math import inf

import pytest

from support.banning_site import BLOCKS, OWN_ADDRESS, Ban, BanningSite, Limit
from support.sites import serving
from support.until import LIMIT_S

HERE, THERE = "127.0.0.11", "127.0.0.21"


@pytest.fixture
def site() -> Iterator[BanningSite]:
    with serving(BanningSite(3, hosts=2)) as site:
        yield site


def get(site: BanningSite, source: str, path: str = "/1", host: int = 0) -> tuple[int, str, str]:
    """The status, the headers and the body that a source gets."""
    address = site.addresses[host]
    asking = http.client.HTTPConnection(
        address, site.port, LIMIT_S, source_address=(source, 0) if source else None
    )
    try:
        asking.request("GET", path)
        answer = asking.getresponse()
        return answer.status, str(answer.headers).lower(), answer.read().decode()
    finally:
        asking.close()


def test_who_comes_directly_is_seen_at_every_host(site: BanningSite) -> None:
    for host in (0, 1):
        get(site, "", host=host)
    assert {seen.source for seen in site.log} == {OWN_ADDRESS}
    assert [seen.host for seen in site.log] == site.hosts


@pytest.mark.parametrize("ban", BLOCKS)
def test_one_source_is_banned_at_one_host(site: BanningSite, ban: Ban) -> None:
    page = get(site, HERE)
    site.ban(HERE, ban, host=site.hosts[0])
    assert get(site, HERE)[2] != page[2]
    assert get(site, HERE, host=1)[2] == get(site, THERE)[2] == page[2]
    site.lift(HERE)
    assert get(site, HERE)[2] == page[2]
    assert [seen.ban for seen in site.log] == [None, ban, None, None, None]
    assert [seen.source for seen in site.log] == [HERE, HERE, HERE, THERE, HERE]


def test_a_connection_is_reset(site: BanningSite) -> None:
    site.ban(HERE, Ban.RESET)
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        get(site, HERE)
    assert get(site, THERE)[0] == 200


def test_a_source_that_asks_for_too_much(site: BanningSite) -> None:
    site.limit = Limit(3, Ban.TOO_MANY)
    assert [get(site, HERE)[0] for _ in range(5)] == [200, 200, 200, 429, 429]
    assert get(site, THERE)[0] == get(site, HERE, host=1)[0] == 200


def test_all_are_forbidden_and_pages_are_gone(site: BanningSite) -> None:
    site.forbids_after = 0
    assert {get(site, source)[0] for source in (HERE, THERE)} == {403}
    site.forbids_after, site.has_pages = inf, False
    assert (get(site, HERE)[0], get(site, HERE, "/")[0]) == (404, 200)
