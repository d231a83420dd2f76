"""`shoal scrapy migrate`: what scrapy-redis leaves in Redis, moved into a frontier."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
import scrapy
from scrapy import Request
from scrapy.http import FormRequest, JsonRequest
from scrapy.utils.request import RequestFingerprinter
from w3lib.url import canonicalize_url

from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.frontier import frontier_at
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Ask, Entry, Lease, TaskState
from shoal.scrapy.fingerprinters import OldScrapyRedisFingerprinter, ScrapyRedisFingerprinter
from shoal.scrapy.migration.migrate import UNKNOWN, Migrated, Migration
from shoal.scrapy.migration.oldqueue import OldKeys
from shoal.scrapy.wire.fingerprint import Fingerprinter, short_fingerprint
from shoal.scrapy.wire.requests import Requests
from support.frontiers import open_rules, outcome
from support.processes import Ended, Folder
from support.redis_servers import RedisServer
from support.server_process import free_port

QUEUE, DUPEFILTER = "shop:requests", "shop:dupefilter"
CRAWL = "shop"


class Shop(scrapy.Spider):
    name = "shop"

    def product(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


SPIDER = Shop()
CODEC = Requests(SPIDER, ScrapyRedisFingerprinter(), None)


class Touch:
    """Pickled, it makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._path}",)


class ScrapyRedis:
    """What scrapy-redis does to its keys."""

    def __init__(self, client: redis.Redis, fingerprint: Callable[[Request], str]) -> None:
        self._client = client
        self._fingerprint = fingerprint

    def push(self, *requests: Request, as_list: bool = False) -> None:
        """Queue requests: in a sorted set, or in a list, the newest in front."""
        for request in requests:
            if not request.dont_filter:
                self.see(request)
            raw = pickle.dumps(request.to_dict(spider=SPIDER), protocol=-1)
            if as_list:
                self._client.lpush(QUEUE, raw)
            else:
                self._client.zadd(QUEUE, {raw: -request.priority})

    def see(self, *requests: Request) -> None:
        """Note that requests were seen."""
        for request in requests:
            self._client.sadd(DUPEFILTER, self._fingerprint(request))


def since_0_8(request: Request) -> str:
    identity = {"method": request.method, "url": canonicalize_url(request.url)}
    identity["body"] = request.body.hex()
    return hashlib.sha1(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def up_to_0_7(request: Request) -> str:
    parts = request.method.encode(), canonicalize_url(request.url).encode(), request.body
    return hashlib.sha1(b"".join(parts)).hexdigest()


def of_scrapy(request: Request) -> str:
    return RequestFingerprinter().fingerprint(request).hex()


def of_the_project(request: Request) -> str:
    return hashlib.sha1(request.url[::-1].encode()).hexdigest()


def products(count: int) -> list[Request]:
    return [
        Request(f"https://shop.example/p/{n}?b=1&a={n}", SPIDER.product, meta={"depth": 2})
        for n in range(count)
    ]


def done_before(count: int) -> list[Request]:
    return [Request(f"https://shop.example/done/{n}") for n in range(count)]


def of_all_kinds() -> list[Request]:
    return [
        Request(
            "https://shop.example/p/ü",
            SPIDER.product,
            errback=SPIDER.failed,
            headers={"Accept": ["a", "b"]},
            cookies={"a": "b"},
            meta={"depth": 3, "place": (1, b"\xff")},
            cb_kwargs={"page": {1, 2}},
            flags=["x"],
            priority=5,
        ),
        JsonRequest("https://shop.example/api", data={"b": 1}, callback=SPIDER.product),
        FormRequest("https://shop.example/login", formdata={"q": "ü"}, priority=-7),
        Request("https://shop.example/start", dont_filter=True),
        Request("https://shop.example/bytes", method="PUT", body=b"\xff\x00"),
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def client(server: RedisServer) -> redis.Redis:
    client = server.client()
    client.flushall()
    return client


@pytest.fixture
def old(client: redis.Redis) -> ScrapyRedis:
    return ScrapyRedis(client, since_0_8)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def migrate(folder: Folder, server: RedisServer, *more: str) -> Ended:
    return folder.shoal("scrapy", "migrate", "shop", "--from", server.url, *more)


def taken(address: str) -> list[Task]:
    """All that a worker gets, in its order."""

    async def take() -> list[Task]:
        async with frontier_at(address) as frontier:
            await frontier.start(CRAWL, open_rules(concurrency_per_host=10_000))
            leases = list[Lease]()
            while more := (await frontier.lease(CRAWL, Ask("worker", 1000))).leases:
                leases += more
                await frontier.finish(CRAWL, [outcome(lease) for lease in more])
            return [lease.task for lease in leases]

    return asyncio.run(take())


def known(address: str, requests: Sequence[Request], fingerprinter: Fingerprinter) -> list[bool]:
    """Which of these requests a crawl would not queue again."""

    async def ask() -> list[bool]:
        async with frontier_at(address) as frontier:
            return [await _is_known(frontier, request, fingerprinter) for request in requests]

    return asyncio.run(ask())


async def _is_known(frontier: Frontier, request: Request, fingerprinter: Fingerprinter) -> bool:
    fingerprint = short_fingerprint(fingerprinter.fingerprint(request))
    entry = Entry(fingerprint, CODEC.encode(request))
    return await frontier.find(CRAWL, entry) is not None


def in_folder(folder: Folder) -> str:
    return f"sqlite:///{folder.path}/shoal.db"


def as_dicts(requests: Sequence[Request]) -> list[dict[str, Any]]:
    by_url = sorted(requests, key=lambda request: request.url)
    return [request.to_dict(spider=SPIDER) for request in by_url]


@pytest.mark.parametrize("as_list", [False, True], ids=["sorted set", "list"])
def test_requests_arrive_as_they_were(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis, as_list: bool
) -> None:
    requests = [*of_all_kinds(), *products(3)]
    old.push(*requests, as_list=as_list)
    ended = migrate(folder, server)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("shop: 8 requests and 7 fingerprints moved, 0 known already\n")
    assert client.keys() == []
    tasks = taken(in_folder(folder))
    assert [task.priority for task in tasks] == [5, 0, 0, 0, 0, 0, 0, -7]
    assert as_dicts([CODEC.decode(task) for task in tasks]) == as_dicts(requests)
    if as_list:
        assert [task.url for task in tasks[-4:-1]] == [request.url for request in products(3)]


def test_from_one_redis_to_another(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
) -> None:
    old.push(*products(1200))
    old.see(*done_before(2500))
    frontier = server.url.removesuffix("0") + "1"
    ended = migrate(folder, server, "--frontier", frontier, "--name", CRAWL)
    assert ended.code == 0
    assert client.keys() == []
    identity = ScrapyRedisFingerprinter()
    assert all(known(frontier, [*products(1200), *done_before(2500)][::300], identity))
    assert not any(known(frontier, [Request("https://shop.example/new")], identity))
    assert len(taken(frontier)) == 1200


@pytest.mark.parametrize(
    ("made", "named", "fingerprinter"),
    [
        (since_0_8, "shoal.scrapy.fingerprinters.ScrapyRedisFingerprinter", None),
        (up_to_0_7, "shoal.scrapy.fingerprinters.OldScrapyRedisFingerprinter", None),
        (of_scrapy, "scrapy.utils.request.RequestFingerprinter", None),
        (of_the_project, UNKNOWN, RequestFingerprinter()),
    ],
)
def test_the_kind_of_fingerprints_is_found_out(
    folder: Folder,
    server: RedisServer,
    client: redis.Redis,
    made: Callable[[Request], str],
    named: str,
    fingerprinter: Fingerprinter | None,
) -> None:
    kinds: list[Fingerprinter] = [ScrapyRedisFingerprinter(), OldScrapyRedisFingerprinter()]
    fingerprinter = fingerprinter or next(
        (kind for kind in kinds if named.endswith(f".{type(kind).__name__}")),
        RequestFingerprinter(),
    )
    project = ScrapyRedis(client, made)
    project.push(Request("https://shop.example/", dont_filter=True), *products(3))
    project.see(*done_before(2))
    told = migrate(folder, server, "--json").json()
    assert told["fingerprinter"] == named
    address = in_folder(folder)
    assert all(known(address, products(3), fingerprinter))
    assert all(known(address, done_before(2), fingerprinter)) == (named != UNKNOWN)


def test_the_setting_that_the_project_needs_is_named(
    folder: Folder, server: RedisServer, old: ScrapyRedis
) -> None:
    old.push(*products(1))
    setting = 'REQUEST_FINGERPRINTER_CLASS = "shoal.scrapy.fingerprinters.ScrapyRedisFingerprinter"'
    assert setting in migrate(folder, server).out.splitlines()


def test_without_a_dupefilter(folder: Folder, server: RedisServer, client: redis.Redis) -> None:
    ScrapyRedis(client, of_scrapy).push(Request("https://shop.example/", dont_filter=True))
    ended = migrate(folder, server)
    assert ended.out == "shop: 1 request and 0 fingerprints moved, 0 known already\n"


def test_without_a_queue(folder: Folder, server: RedisServer, old: ScrapyRedis) -> None:
    old.see(*done_before(3))
    assert migrate(folder, server).out.startswith("shop: 0 requests and 3 fingerprints moved")
    assert all(known(in_folder(folder), done_before(3), ScrapyRedisFingerprinter()))


def test_the_same_request_twice_is_two(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
) -> None:
    again = Request("https://shop.example/again", dont_filter=True)
    old.push(again, *products(600), again, as_list=True)
    assert migrate(folder, server, "--json").json()["requests"] == 602
    assert [task.url for task in taken(in_folder(folder))].count(again.url) == 2


def test_copying_leaves_all_where_it_is(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
) -> None:
    old.push(*products(700))
    old.see(*done_before(10))
    for requests, duplicates in ((700, 0), (0, 700)):
        told = migrate(folder, server, "--keep", "--json").json()
        assert (told["requests"], told["duplicates"]) == (requests, duplicates)
    assert (client.zcard(QUEUE), client.scard(DUPEFILTER)) == (700, 710)


@pytest.mark.parametrize("as_list", [False, True], ids=["sorted set", "list"])
def test_what_cannot_be_read_stays_and_is_reported(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis, as_list: bool
) -> None:
    made = folder.path / "made"
    item = {"url": "https://a.example/", "meta": {"item": Touch(made)}}
    bad = [
        pickle.dumps(Touch(made)),
        pickle.dumps(item),
        pickle.dumps([1]),
        pickle.dumps({"url": 7}),
        pickle.dumps({"url": "no-scheme"}),
        pickle.dumps({"url": "https://a.example/\ud800"}),
        pickle.dumps({"url": "https://a.example/", "priority": "high"}),
        pickle.dumps({"url": "https://a.example/", "callback": 7}),
        pickle.dumps({"url": "https://a.example/", "errback": [7]}),
        pickle.dumps({"url": "https://a.example/", "headers": 7}),
        pickle.dumps({"url": "https://a.example/", "meta": [7]}),
        b"\x1b[31mnoise",
    ]
    for raw in bad:
        old.push(*products(100), as_list=as_list)
        if as_list:
            client.lpush(QUEUE, raw)
        else:
            client.zadd(QUEUE, {raw: 0})
    ended = migrate(folder, server)
    assert ended.code == 3
    assert "12 could not be read, and are still in shop:requests:\n" in ended.err
    assert "    2 x a pickle that wants posix.system\n" in ended.err
    assert "\x1b" not in ended.err
    left = client.lrange(QUEUE, 0, -1) if as_list else client.zrange(QUEUE, 0, -1)
    assert isinstance(left, list)
    assert sorted(left) == sorted(bad)
    assert not made.exists()
    assert len(taken(in_folder(folder))) == 100
    again = migrate(folder, server, "--json")
    assert (again.code, again.json()["unreadable"]) == (3, 12)


class Stopped(Exception):
    """We were killed here."""


class FrailKeys(OldKeys):
    """Is killed at a given call to Redis, before or after it is carried out."""

    def __init__(self, address: str, calls: int, *, after: bool) -> None:
        super().__init__(address, QUEUE, DUPEFILTER)
        self._calls = calls
        self._after = after

    async def _ask(self, *commands: Any) -> list[Any]:
        self._calls -= 1
        if self._calls == 0 and not self._after:
            raise Stopped
        answer = await super()._ask(*commands)
        if self._calls == 0:
            raise Stopped
        return answer


class BusyKeys(OldKeys):
    """While the dupefilter is read, a worker of scrapy-redis queues one more."""

    def __init__(self, address: str, busy: Callable[[], None]) -> None:
        super().__init__(address, QUEUE, DUPEFILTER)
        self._busy = busy

    async def scan(self) -> AsyncIterator[list[bytes]]:
        self._busy()
        async for members in super().scan():
            yield members


@contextmanager
def quietly(_noun: str, _total: int) -> Iterator[Callable[[str, int], None]]:
    yield lambda stage, count: None


async def run(keys: OldKeys, path: Path) -> Migrated:
    frontier = SqliteFrontier(path)
    try:
        return await Migration(keys, frontier, CRAWL, keep=False, progress=quietly).run()
    finally:
        await frontier.close()
        await keys.close()


@pytest.mark.parametrize("after", [False, True], ids=["before a call", "after a call"])
@pytest.mark.parametrize("as_list", [False, True], ids=["sorted set", "list"])
async def test_stopped_anywhere_it_goes_on(
    tmp_path: Path,
    server: RedisServer,
    client: redis.Redis,
    old: ScrapyRedis,
    monkeypatch: pytest.MonkeyPatch,
    as_list: bool,
    after: bool,
) -> None:
    monkeypatch.setattr("shoal.scrapy.migration.migrate.BATCH", 3)
    again = Request("https://shop.example/again", dont_filter=True)
    requests = [*products(5), again, *of_all_kinds()]
    calls, stops = 0, True
    while stops:
        calls += 1
        client.flushall()
        old.push(*requests, as_list=as_list)
        old.see(*done_before(3))
        path = tmp_path / f"{calls}.db"
        stops = False
        try:
            await run(FrailKeys(server.url, calls, after=after), path)
        except Stopped:
            stops = True
            with suppress(ConfigError):  # It may have been stopped when all was done.
                await run(OldKeys(server.url, QUEUE, DUPEFILTER), path)
        assert client.keys() == []
        frontier = SqliteFrontier(path)
        assert (await frontier.stats(CRAWL)).added == len(requests)
        for request in done_before(3):
            assert await _is_known(frontier, request, ScrapyRedisFingerprinter())
        await frontier.close()
    assert calls > 12


async def test_what_a_worker_queues_meanwhile_is_not_lost(
    tmp_path: Path, server: RedisServer, client: redis.Redis, old: ScrapyRedis
) -> None:
    old.push(*products(3))
    late = Request("https://shop.example/late")
    path = tmp_path / "shoal.db"
    migrated = await run(BusyKeys(server.url, lambda: old.push(late)), path)
    assert (migrated.requests, migrated.unreadable) == (4, 0)
    assert client.keys() == []
    tasks = await asyncio.to_thread(taken, f"sqlite:///{path}")
    assert late.url in [task.url for task in tasks]


async def test_what_was_seen_is_done(tmp_path: Path, server: RedisServer, old: ScrapyRedis) -> None:
    old.see(*done_before(1))
    path = tmp_path / "shoal.db"
    await run(OldKeys(server.url, QUEUE, DUPEFILTER), path)
    frontier = SqliteFrontier(path)
    (request,) = done_before(1)
    record = await frontier.find(CRAWL, Entry(CODEC.fingerprint(request), CODEC.encode(request)))
    assert record is not None
    assert record.state is TaskState.DONE
    stats = await frontier.stats(CRAWL)
    assert (stats.added, stats.done) == (0, 0)
    await frontier.close()


def test_a_server_that_no_frontier_could_be_on(
    folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
) -> None:
    old.push(*products(2))
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert migrate(folder, server).code == 0
    finally:
        client.config_set("maxmemory-policy", "noeviction")


class TestErrors:
    def assert_one_line(self, ended: Ended, says: str) -> None:
        assert ended.code == 2, ended
        assert ended.err.startswith("shoal: ")
        assert ended.err.count("\n") == 1, ended.err
        assert says in ended.err

    def test_no_such_keys(self, folder: Folder, server: RedisServer, client: redis.Redis) -> None:
        ended = migrate(folder, server)
        self.assert_one_line(ended, "there is neither 'shop:requests' nor 'shop:dupefilter'")

    def test_nobody_there(self, folder: Folder, server: RedisServer, old: ScrapyRedis) -> None:
        away = f"redis://127.0.0.1:{free_port()}"
        ended = folder.shoal("scrapy", "migrate", "shop", "--from", away)
        self.assert_one_line(ended, "cannot be reached")
        old.push(*products(1))
        self.assert_one_line(migrate(folder, server, "--frontier", away), "cannot be reached")

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--from", "shop.example"], "--from wants a redis:// address, not 'shop.example'"),
            (["--from", "sqlite:///shoal.db"], "--from wants a redis:// address"),
            (["--from", "postgresql://me:s3cret@h/x"], "not 'postgresql://me:***@h/x'"),
            (["--frontier", "gopher://x"], "no frontier for 'gopher"),
            (["--queue-key", "%(crawl)s"], "not a key: '%(crawl)s'"),
            (["--queue-key", "a-hash"], "'a-hash' is a hash, not a queue"),
            (["--dupefilter-key", "a-hash"], "'a-hash' is a hash, not a set"),
        ],
    )
    def test_wrong_options(
        self,
        folder: Folder,
        server: RedisServer,
        client: redis.Redis,
        old: ScrapyRedis,
        options: list[str],
        says: str,
    ) -> None:
        old.push(*products(1))
        client.hset("a-hash", "a", "b")
        self.assert_one_line(migrate(folder, server, *options), says)
        assert client.zcard(QUEUE) == 1

    def test_a_cancelled_crawl(
        self, folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
    ) -> None:
        assert folder.shoal("seed", CRAWL, "http://a.example/").code == 0
        assert folder.shoal("cancel", CRAWL).code == 0
        old.push(*products(1))
        self.assert_one_line(migrate(folder, server), "was cancelled")
        assert client.zcard(QUEUE) == 1

    def test_keys_of_other_names(
        self, folder: Folder, server: RedisServer, client: redis.Redis, old: ScrapyRedis
    ) -> None:
        old.push(*products(2))
        client.rename(QUEUE, "q:shop")
        client.rename(DUPEFILTER, "seen")
        keys = ("--queue-key", "q:%(spider)s", "--dupefilter-key", "seen", "--json")
        told = migrate(folder, server, *keys).json()
        assert (told["requests"], told["fingerprints"]) == (2, 2)
