"""The shop that the examples of the documentation crawl, and the servers that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from support.docs import Reader
from support.markdown import ROOT
from support.postgres_servers import QUICK, PostgresServer
from support.processes import Folder
from support.redis_servers import RedisServer
from support.s3_servers import Ministack
from support.session_site import SessionSite
from support.sites import serving
from support.slow_crawls import crawling

ABOUT_CRAWLS_UNDER_WAY = ROOT / "docs/guides/advise.md"

PRODUCTS = 21
"""Two pages of catalogue with a broken, a missing and some flaky and moved products, but none that
answers 503: that would slow the host down, and the tests with it."""


@pytest.fixture
def open_shop() -> Iterator[Shop]:
    """A shop that is open. Its pages that fail at first do so for everybody."""
    with serving(Shop(hosts=1, products=PRODUCTS)) as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Shop) -> str:
    """Where the shop is, without a slash at the end."""
    return f"http://127.0.0.1:{open_shop.ports[0]}"


@pytest.fixture(scope="session")
def closed_shop() -> Iterator[SessionSite]:
    """A shop for those who have the accounts of the documentation."""
    # So slow that both accounts are of use.
    with serving(SessionSite({"alice": "wonderland", "bob": "builder"}, takes_s=0.1)) as site:
        yield site


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """The Redis that the documentation calls queue-host."""
    folder = tmp_path_factory.mktemp("redis")
    with RedisServer(folder, "--appendonly", "yes") as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The PostgreSQL that the documentation calls db-host."""
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """A service that has the bucket of the documentation."""
    with Ministack(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def reader(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    shop: str,
    redis: RedisServer,
    postgres: PostgresServer,
    s3: Ministack,
) -> Iterator[Reader]:
    """Somebody with empty servers, and databases that belong to the user `shoal`."""
    redis.client().flushall()
    databases, roles = ("shop", "other"), ("crawler", "shoal")
    postgres.execute(*(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)" for name in databases))
    postgres.execute(*(f"DROP ROLE IF EXISTS {name}" for name in roles))
    postgres.execute("CREATE ROLE shoal LOGIN")
    postgres.execute(*(f"CREATE DATABASE {name} OWNER shoal" for name in databases))
    servers = {"queue-host": redis.port, "db-host": postgres.port}
    page = request.node.callspec.params.get("page") if hasattr(request.node, "callspec") else None
    if page is not None and "rabbit-host" in page.read_text("utf-8"):
        # Few pages are about it, and it takes seconds to start.
        servers["rabbit-host"] = request.getfixturevalue("rabbitmq_server").port
    if page == ABOUT_CRAWLS_UNDER_WAY:
        with crawls_under_way(tmp_path) as shop:
            yield Reader(tmp_path, shop)
        return
    reader = Reader(tmp_path, shop, servers, s3.environment)
    yield reader
    reader.close()


@contextmanager
def crawls_under_way(folder: Path) -> Iterator[str]:
    """Two crawls: `shop`, of one host by several workers, and `news`, of many by one. Gives the
    address of the first host."""
    run = Folder(folder)
    with (
        crawling(run, 1, "--rate", "10/s", "--workers", "4") as site,
        crawling(run, 100, "--rate", "1/s", "--concurrency", "16", name="news"),
    ):
        yield site.url.removesuffix("/")
