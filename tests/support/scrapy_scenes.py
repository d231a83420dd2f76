"""The setup of most tests of Scrapy projects: a site, a queue on Redis, and a project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from support.processes import Ended, Folder
from support.redis_chaos import DURABLE
from support.redis_servers import RedisServer
from support.scrapy_projects import ADDON, VERSIONS, Project
from support.scrapy_site import TroubleSite
from support.scrapy_spiders import THINGS
from support.sites import serving
from support.until import until_now


class Scene(NamedTuple):
    """A site, a server and a project. The project's spider starts at the site's front page."""

    site: TroubleSite
    server: RedisServer
    project: Project

    def dead(self) -> list[dict[str, Any]]:
        """The dead tasks of the crawl `things`, listed by the command that users run."""
        found: list[dict[str, Any]] = self.shoal("dead", "list", "things", "--json").json()
        return found

    def retry_the_dead(self) -> None:
        """Retry the dead tasks by the command that users run."""
        self.shoal("dead", "retry", "things")

    def shoal(self, *command: str) -> Ended:
        """Run a Shoal command in the project's folder, with the queue as an option."""
        ended = self.project.commands.shoal(*command, "--frontier", self.server.url)
        assert ended.code == 0, ended
        return ended


@contextmanager
def scene(
    path: Path,
    links: Sequence[str],
    spiders: str = THINGS,
    settings: Mapping[str, object] | None = None,
    *,
    version: str = "newest",
    site_of: Callable[[Sequence[str]], TroubleSite] = TroubleSite,
    **more: Any,
) -> Iterator[Scene]:
    """Open a site whose front page has these links, start Redis, and write a project that uses
    both."""
    with (
        RedisServer(path / "redis", *DURABLE) as server,
        serving(site_of(links)) as site,
    ):
        own = {**ADDON, "REDIS_URL": server.url, **(settings or {})}
        more |= {"sites": [site.url], "scrapy": VERSIONS[version]}
        yield Scene(site, server, Project(path / "machine", spiders, own, **more))


def wait_for_beats(queue: Folder, crawl: str, workers: int, beats: int = 3) -> None:
    """Wait until every worker of a crawl has sent `beats` more heartbeats."""
    for _ in range(beats):
        before = {pulse.worker: pulse.at for pulse in queue.workers(crawl)}
        until_now("signs of life", partial(_beat_after, queue, crawl, before, workers))


def _beat_after(queue: Folder, crawl: str, seen: Mapping[str, float], workers: int) -> bool:
    later = [pulse for pulse in queue.workers(crawl) if pulse.at > seen.get(pulse.worker, 0.0)]
    return len(later) == workers
