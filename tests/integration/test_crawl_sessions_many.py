"""Many accounts: more of them are faster, until the host's rate is what limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.redis_chaos import assert_rate_holds
from support.redis_servers import RedisServer
from support.session_crawls import SessionFolder, assert_all_found, assert_honest
from support.session_site import SessionSite
from support.sites import serving

pytestmark = [pytest.mark.alone, pytest.mark.rare]
TAKES_S = 0.2


@pytest.fixture(params=["sqlite", "redis"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, redis_server: RedisServer
) -> SessionFolder:
    return SessionFolder(tmp_path, redis_server.url if request.param == "redis" else "")


def pages_per_s(site: SessionSite) -> float:
    """The speed at which products were read after the last login."""
    last_login = max(seen.at for seen in site.door.log if seen.method == "POST")
    moments = [seen.at for seen in site.door.seen("/product") if seen.at > last_login]
    return (len(moments) - 1) / (moments[-1] - moments[0])


def crawl(folder: SessionFolder, accounts: int, products: int, rate: str) -> SessionSite:
    users = {f"user{number}": "x" for number in range(accounts)}
    with serving(SessionSite(users, products, takes_s=TAKES_S)) as site:
        folder.put_group(site)
        folder.put_shop(site, rate=rate, concurrency_per_host=1000)
        ended = folder.shoal("crawl", "shop.py", "--workers", "2", "--concurrency", "200")
        assert ended.code == 0, ended
        assert_honest(site)
        assert_all_found(folder, site)
    return site


@pytest.mark.parametrize(("accounts", "products"), [(1, 15), (10, 150)])
def test_an_account_more_is_a_request_more_at_a_time(
    folder: SessionFolder, accounts: int, products: int
) -> None:
    """The site takes 0.2 s for a request: one account reads 5 pages per second."""
    speed = pages_per_s(crawl(folder, accounts, products, "none"))
    print(f"{accounts} accounts: {speed:.1f} pages/s")
    assert 2.5 * accounts < speed < 5.5 * accounts


def test_two_hundred_accounts(folder: SessionFolder) -> None:
    """Far more than ten, though neither this machine nor this site is made for 1,000 per second."""
    speed = pages_per_s(crawl(folder, 200, 2000, "none"))
    print(f"200 accounts: {speed:.1f} pages/s")
    assert speed > 100


def test_the_rate_of_the_host_is_the_limit(folder: SessionFolder) -> None:
    """Whatever the accounts are. Of 200 only those log in that are of use at that rate."""
    site = crawl(folder, 200, 100, "20/s")
    assert_rate_holds(site.hits, 20)
    logins = len(site.door.logins)
    print(f"{logins} logins, {pages_per_s(site):.1f} pages/s")
    assert logins <= 20
    assert pages_per_s(site) > 10
