"""Crawls through exits, as users run them: a folder with pools, a spider, and real proxies."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from shoal.core.exits import Exit, LaneState, PoolState
from support.banning_site import Arrival, BanningSite
from support.links import paths_of
from support.processes import Folder
from support.proxies import MicroSocks, ProxyServer, TinyProxy, sources
from support.redis_chaos import assert_adds_up

CLOCKS = Path(__file__).parent / "clocks"

SPIDER = """
from shoal import Spider

class Links(Spider):
    start_urls = {urls!r}
    allow_private = True
    rate = "none"
{settings}
    def parse(self, page):
        yield {{"url": page.url}}
        yield from page.follow_all("a")
"""


class ExitFolder(Folder):
    """A folder whose commands use exits and have a clock of their own."""

    def __init__(self, path: Path, frontier: str = "", **env: str) -> None:
        """`frontier` is an address; by default, the frontier is a file in the folder."""
        self._clock = path / "clock"
        modules = os.pathsep.join(filter(None, [str(CLOCKS), os.environ.get("PYTHONPATH")]))
        clock = {"PYTHONPATH": modules, "TEST_CLOCK_FILE": str(self._clock)}
        given = {"SHOAL_FRONTIER": frontier} if frontier else {}
        super().__init__(path, {**clock, **given, **env})
        self._tables: dict[str, Mapping[str, Any]] = {}
        self._later_s = 0.0
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        """Move the clock of all commands forward, including running ones."""
        self._later_s += seconds
        new = self._clock.with_suffix(".new")
        new.write_text(str(self._later_s))
        new.replace(self._clock)

    def put_pool(self, name: str, exits: Sequence[str], **settings: Any) -> None:
        """Write a pool with the addresses of its exits."""
        self.write(f"{name}.txt", "".join(f"{address}\n" for address in exits))
        self.put_table(f"proxies.{name}", {"from": f"file:{name}.txt", **settings})

    def put_gateway(self, name: str, endpoint: str, **settings: Any) -> None:
        """Write a pool of sessions at a gateway."""
        self.put_table(f"proxies.{name}", {"endpoint": endpoint, **settings})

    def put_table(self, name: str, values: Mapping[str, Any]) -> None:
        """Write a table of shoal.toml."""
        self._tables[name] = values
        self.write("shoal.toml", "\n".join(map(_table, self._tables.items())))

    def put_spider(self, urls: Sequence[str], name: str = "links", **settings: Any) -> None:
        """Write a spider that starts at these URLs. It uses pool `dc`, unless `settings` differ."""
        values = {"proxy_pool": "dc", "name": name, **settings}
        lines = "".join(f"    {key} = {value!r}\n" for key, value in values.items())
        self.write(f"{name}.py", SPIDER.format(urls=list(urls), settings=lines))

    async def exits(self, pool: str = "dc") -> list[Exit]:
        """The exits of a pool, as the frontier knows them."""
        return await self.ask_frontier(lambda frontier: frontier.exits(pool))

    def exits_now(self, pool: str = "dc") -> list[Exit]:
        """The exits of a pool, for callers without an event loop."""
        return asyncio.run(self.exits(pool))

    async def pools(self) -> dict[str, PoolState]:
        """The states of all pools, by name."""
        found = await self.ask_frontier(lambda frontier: frontier.pools())
        return {state.rules.name: state for state in found}

    async def lanes(self, crawl: str = "links") -> list[LaneState]:
        """The lanes in which tasks wait."""
        return await self.ask_frontier(lambda frontier: frontier.lanes(crawl, 100))


def _table(named: tuple[str, Mapping[str, Any]]) -> str:
    name, values = named
    lines = [f"{key} = {_toml(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return '"' + value + '"'
    return repr(value)


@contextmanager
def proxies(folder: Path, count: int, **login: str) -> Iterator[list[ProxyServer]]:
    """Run `count` proxies, of both kinds in turn."""
    with ExitStack() as stack:
        kinds = (TinyProxy, MicroSocks)
        yield [
            stack.enter_context(kinds[number % 2](folder / "proxies", source, **login))
            for number, source in enumerate(sources(count))
        ]


def bound(count: int, first: int = 0) -> list[str]:
    """Addresses of `count` exits that need no proxy: they are addresses of this machine."""
    return [f"bind://{source}" for source in sources(first + count)[first:]]


def source_of(exit_: str) -> str:
    """The source address that a site sees for an exit that is an address of this machine."""
    return exit_.removeprefix("bind://")


def assert_complete(folder: Folder, site: BanningSite, pages: int, crawl: str = "links") -> None:
    """Assert that the crawl is finished and has stored every page of every host exactly once."""
    stats = folder.stats(crawl)
    assert_adds_up(stats)
    total = len(site.hosts) * (pages + 1)
    assert (stats.state, stats.done, stats.leased) == ("finished", total, 0), stats
    expected = Counter(url + path[1:] for url in site.urls for path in paths_of(pages))
    assert Counter(item["url"] for item in folder.export(crawl)) == expected


def pages_of(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The requests for pages, without those for robots.txt."""
    return [seen for seen in arrivals if seen.path != "/robots.txt"]
