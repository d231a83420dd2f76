"""Whoever can write to Redis can write notes: what they say is never run, and allows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from shoal.config import Rules, Settings
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control
from support.coordinators import NEVER
from support.links import numbered_pages
from support.processes import Folder
from support.redis_servers import RedisServer
from support.sites import Site, serving
from support.until import until_now

RUNS_KEY = "shoal:{coordinator}:notes:runs"
CRAWL = "shop@2026-11-15T03:00"
SPIDER = """
from pathlib import Path

from shoal import Spider

Path({name!r}).touch()

class Shop(Spider):
    rate = "none"
    robots = False
    max_retries = 0
    start_urls = []

    def parse(self, page):
        yield {{"url": page.url}}
"""
"""Leaves a file of this name wherever it is loaded."""


@pytest.fixture
def folder(tmp_path: Path, server: RedisServer, raw: redis.Redis) -> Folder:
    folder = Folder(tmp_path, {"SHOAL_FRONTIER": server.url})
    folder.write("evil.py", SPIDER.format(name="evil-was-run"))
    folder.write("own.py", SPIDER.format(name="own-was-run"))
    return folder


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(1))) as site:
        yield site


def forge(raw: redis.Redis, *, planted: bool, schedule: str = "shop") -> None:
    """As a worker of old would have believed it, and as much as one can wish for."""
    crawl = CRAWL.replace("shop", schedule)
    note = {
        "crawl": crawl,
        "schedule": schedule,
        "targets": ["evil.py"],
        "settings": {"allow_private": True, "results": "sqlite:///elsewhere.db"},
        "spider": {"allow_private": True},
        "slot": 0.0,
        "fired_at": 0.0,
        "planted": planted,
    }
    raw.hset(RUNS_KEY, crawl, msgspec.json.encode(note))


async def begin(frontier: Frontier, url: str) -> None:
    await frontier.start(CRAWL, Rules(rate="none", robots=False, max_retries=0))
    await frontier.add(CRAWL, [Admission(Rules()).admit(Task(url=url))])
    await frontier.control(CRAWL, Control.SEAL)


def own_schedule(folder: Folder) -> None:
    toml = f'[[schedule]]\nname = "shop"\ntarget = "own.py"\ncron = "{NEVER}"\n'
    folder.write("shoal.toml", toml)


def test_a_worker_runs_nothing_that_its_own_file_does_not_name(
    folder: Folder, raw: redis.Redis, site: Site
) -> None:
    asyncio.run(folder.ask_frontier(lambda frontier: begin(frontier, site.url)))
    forge(raw, planted=True)
    with folder.running("worker") as worker:
        said = "left to others: schedules that are not in shoal.toml here: shop"
        until_now("its first look", lambda: said in worker.err or evil_was_run(folder))
        until_now("nobody to work on it", lambda: folder.workers(CRAWL) == [])
        assert worker.err.count("left to others") == 1
    assert not evil_was_run(folder)
    assert site.hits == []


def test_and_allows_itself_nothing_that_its_own_file_does_not(
    folder: Folder, raw: redis.Redis, site: Site
) -> None:
    own_schedule(folder)
    asyncio.run(folder.ask_frontier(lambda frontier: begin(frontier, site.url)))
    forge(raw, planted=True)
    with folder.running("worker"):
        until_now("the page's end", lambda: folder.stats(CRAWL).dead or evil_was_run(folder))
    assert not evil_was_run(folder)
    assert (folder.path / "own-was-run").exists()
    assert site.hits == []
    assert not (folder.path / "elsewhere.db").exists()
    (dead,) = folder.shoal("dead", "list", CRAWL, "--json").json()
    assert "private address" in dead["reason"]


def test_what_a_crawls_record_says_beyond_its_rules_is_not_heard(
    folder: Folder, raw: redis.Redis, site: Site
) -> None:
    """A worker takes the rules of a crawl from there: its rate, not what the worker may reach."""
    asyncio.run(folder.ask_frontier(lambda frontier: begin(frontier, site.url)))
    (record,) = (
        key for key in raw.scan_iter() if raw.type(key) == b"hash" and raw.hexists(key, "rules")
    )
    rules = msgspec.json.decode(raw.hget(record, "rules") or b"{}")
    beyond = {"allow_private": True, "results": "sqlite:///elsewhere.db", "targets": ["evil.py"]}
    raw.hset(record, "rules", msgspec.json.encode(rules | beyond))
    ended = folder.shoal("worker", "own.py", "--name", CRAWL, "--until-finished")
    assert ended.code == 0, ended
    assert (folder.stats(CRAWL).dead, site.hits, evil_was_run(folder)) == (1, [], False)
    assert not (folder.path / "elsewhere.db").exists()


def test_no_rule_widens_what_a_process_may_do() -> None:
    own = {"frontier", "results", "archive", "allow_private", "user_agent", "max_body_bytes"}
    assert own.isdisjoint(Rules.__struct_fields__)
    assert own < set(Settings.__struct_fields__)


def test_a_coordinator_seeds_only_what_its_own_file_names(folder: Folder, raw: redis.Redis) -> None:
    own_schedule(folder)
    forge(raw, planted=False)
    forge(raw, planted=False, schedule="other")
    for name in ("nonsense", b"\xff"):
        raw.hset(RUNS_KEY, name, b"\xff{")
    with folder.running("serve") as coordinator:
        said = "cannot begin: schedule other is not in shoal.toml here"
        until_now("the other's end", lambda: said in coordinator.err or evil_was_run(folder))
        own = folder.path / "own-was-run"
        until_now("its own spider", lambda: own.exists() or evil_was_run(folder))
        assert "is left alone" in coordinator.err
        assert "Traceback" not in coordinator.err
    assert not evil_was_run(folder)


def evil_was_run(folder: Folder) -> bool:
    return (folder.path / "evil-was-run").exists()
