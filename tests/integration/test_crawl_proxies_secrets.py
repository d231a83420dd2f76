"""What nobody may learn by a crawl that goes by exits: logins of proxies, and private hosts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.banning_site import BanningSite, assert_only_by
from support.exit_crawls import ExitFolder, assert_complete
from support.proxies import MicroSocks, ProxyServer, TinyProxy
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.sites import serving

PAGES = 12
USER, PASSWORD = "canaryuser4711", "canarypass0815"
CANARIES = [
    *(text.encode() for text in (USER, PASSWORD, "canaryuser", "canarypass", "wrongcanary")),
    b64encode(f"{USER}:{PASSWORD}".encode()),
    b64encode(f"{USER}:{PASSWORD}".encode()).rstrip(b"="),
]


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
def frontier(request: pytest.FixtureRequest, redis_server: RedisServer) -> str:
    return redis_server.url if request.param == "redis" else ""


@pytest.fixture
def folder(tmp_path: Path, frontier: str) -> ExitFolder:
    return ExitFolder(tmp_path, frontier)


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProxyServer]]:
    """Proxies of both kinds that let in who has the login."""
    path = tmp_path_factory.mktemp("proxies")
    with ExitStack() as stack:
        made = [
            TinyProxy(path, "127.0.0.11", user=USER, password=PASSWORD),
            MicroSocks(path, "127.0.0.21", user=USER, password=PASSWORD),
        ]
        yield [stack.enter_context(server) for server in made]


def stored(folder: ExitFolder, redis_server: RedisServer) -> dict[str, bytes]:
    """All that the crawl has left behind, by where it is."""
    found = {str(path): path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    with redis_server.client() as client:
        client.config_set("rdbcompression", "no")
        for key in client.keys("*"):
            found[f"Redis {key!r}"] = key + (client.dump(key) or b"")
    return found


def assert_no_canary(texts: dict[str, bytes]) -> None:
    for place, text in texts.items():
        for canary in CANARIES:
            assert canary not in text, (place, canary)


def test_nobody_learns_the_logins_of_proxies(
    folder: ExitFolder, servers: list[ProxyServer], redis_server: RedisServer
) -> None:
    """Some are wrong: what is said of them says nothing of the login either."""
    wrong = [f"http://wrongcanary1:{PASSWORD}@127.0.0.1:{servers[0].port}"]
    wrong += [f"socks5://{USER}:wrongcanary2@127.0.0.1:{servers[1].port}"]
    wrong += [f"http://{USER}:{PASSWORD}@127.0.0.1:9"]
    exits = [*(server.url for server in servers), *wrong]
    secret = {"PROXY_LIST": "\n".join(exits)}
    folder.write("shoal.toml", '[proxies.dc]\nfrom = "env:PROXY_LIST"\n')
    with serving(BanningSite(PAGES)) as site:
        folder.put_spider(site.urls, archive="file:///pages")
        ended = folder.shoal("crawl", "links.py", "--workers", "2", "--json-logs", env=secret)
        commands = (
            *(("status", "links"), ("status", "links", "--json"), ("dead", "list", "links")),
            *(
                ("explain", "links", site.urls[0]),
                ("proxies", "list"),
                ("proxies", "list", "--json"),
            ),
        )
        said = [ended, *(folder.shoal(*command, env=secret) for command in commands)]
    assert [each.code for each in said] == [0] * len(said), said
    texts = {f"said {n}": (each.out + each.err).encode() for n, each in enumerate(said)}
    texts |= {f"the target {n}": repr(seen).encode() for n, seen in enumerate(site.log)}
    assert_no_canary(texts | stored(folder, redis_server))
    assert_only_by(site, [server.source for server in servers])
    assert_complete(folder, site, PAGES)


def test_private_hosts_are_refused_through_proxies_as_well(
    folder: ExitFolder, servers: list[ProxyServer]
) -> None:
    """By their address, and by a name that leads there; proxies of both kinds would have gone."""
    with serving(BanningSite(PAGES)) as site:
        urls = [f"http://localhost:{site.port}/", site.urls[0]]
        for pool, server in zip(("web", "socks"), servers, strict=True):
            folder.put_pool(pool, [server.url])
            folder.put_spider([], name=pool, proxy_pool=pool, allow_private=False)
            folder.shoal("seed", pool, *urls)
            folder.shoal("crawl", f"{pool}.py", "--no-allow-private")
            stats = folder.stats(pool)
            assert (stats.done, stats.remaining) == (0, 0), stats
            told = folder.shoal("explain", pool, urls[0]).out
            assert "private" in told, told
        assert site.log == []
