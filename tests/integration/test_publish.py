"""`--publish` as its users run it, on real brokers."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from shoal.demo.shop import Shop
from shoal.worker.leasing import HELD_PER_SLOT
from support.processes import Folder
from support.publishing import SqsRig, told
from support.rabbitmq_servers import PASSWORD, RabbitServer
from support.redis_servers import RedisServer
from support.shops import CRAWL, assert_found_everything, shop_urls
from support.sites import Site, serving
from support.small_site import THINGS, put_spider, small_site
from support.sqs_servers import SqsServer
from support.tcp_proxy import TcpProxy
from support.until import until_now

_numbers = itertools.count()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(small_site()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, site)
    return folder


@pytest.fixture
def name() -> str:
    """A crawl's: queues stay."""
    return f"small{next(_numbers)}"


class Broker:
    """Where a crawl publishes, and where that is read."""

    def __init__(
        self, address: str, reading: Mapping[str, str], env: Mapping[str, str] | None = None
    ) -> None:
        self.address = address
        self.reading = reading
        self.env = dict(env or {})


@pytest.fixture(
    params=[
        "rabbitmq",
        pytest.param("sqs", marks=pytest.mark.rare),
        pytest.param("stream", marks=pytest.mark.rare),
        pytest.param("list", marks=pytest.mark.rare),
    ]
)
async def broker(
    request: pytest.FixtureRequest, name: str, monkeypatch: pytest.MonkeyPatch
) -> Broker:
    if request.param == "rabbitmq":
        rabbit: RabbitServer = request.getfixturevalue("rabbitmq_server")
        address = rabbit.url.removesuffix("/%2F")
        return Broker(address, {c: f"{address}/shoal.{name}.{c}" for c in CHANNELS})
    if request.param == "sqs":
        sqs: SqsServer = request.getfixturevalue("sqs_server")
        for variable, value in sqs.environment.items():
            monkeypatch.setenv(variable, value)
        with TcpProxy(sqs.port) as network:
            rig = SqsRig(network)
            await rig.make()
        address = f"sqs://us-east-1/{rig.crawl}"
        reading = {"items": address, **{c: f"{address}-{c}" for c in CHANNELS[1:]}}
        return Broker(address, reading, sqs.environment)
    server: RedisServer = request.getfixturevalue("redis_server")
    keys = {"items": "shop", "dead": "shop:dead", "finished": "shop:finished"}
    reading = {c: f"{server.url}?key={key}&type={request.param}" for c, key in keys.items()}
    scheme = "redis-stream" if request.param == "stream" else "redis"
    return Broker(f"{scheme}://127.0.0.1:{server.port}?key=shop", reading)


CHANNELS = ("items", "dead", "finished")


def test_items_deaths_and_the_end(folder: Folder, broker: Broker, name: str) -> None:
    options = ("--publish", broker.address, "--name", name, "--workers", "2")
    ended = folder.process("crawl", "small.py", *options, env=broker.env)
    assert ended.code == 3, ended
    assert PASSWORD not in ended.err
    items = {item["_id"]: item for item in told(broker.reading["items"])}
    own = ("_type", "_crawl", "_id")
    stored = sorted(folder.export(name), key=str)
    assert (
        sorted(({k: v for k, v in i.items() if k not in own} for i in items.values()), key=str)
        == stored
    )
    assert sorted(item["path"] for item in items.values() if "path" in item) == THINGS
    assert {(item["_type"], item["_crawl"]) for item in items.values()} == {("item", name)}
    thing = next(item for item in items.values() if item.get("path") == "/a")
    assert thing["_id"].startswith(f"{name}:Thing:/a:1")
    deaths = told(broker.reading["dead"])
    assert [(death["_type"], death["reason"]) for death in deaths] == [
        ("dead", "ValueError: a broken page")
    ]
    assert deaths[0]["url"].endswith("/broken")
    # Two workers may see the end at the same moment: both tell of it, by one id.
    ((_, end),) = {end["_id"]: end for end in told(broker.reading["finished"])}.items()
    assert (end["_type"], end["_crawl"], end["state"]) == ("finished", name, "finished")
    assert (end["counters"]["items"], end["counters"]["dead"]) == (len(stored), 1)


@pytest.mark.rare
def test_the_end_is_told_once_by_a_fleet(
    folder: Folder, redis_server: RedisServer, name: str
) -> None:
    """Also if workers come later, and again when it has ended again."""
    address = f"redis-stream://127.0.0.1:{redis_server.port}?key=out"
    settings = {"SHOAL_PUBLISH": address, "SHOAL_NAME": name}
    assert folder.process("crawl", "small.py", "--workers", "3", env=settings).code == 3
    later = folder.process("worker", "small.py", "--until-finished", env=settings)
    assert later.code == 0, later
    ends = told(f"{redis_server.url}?key=out:finished&type=stream")
    assert {end["_id"] for end in ends} == {ends[0]["_id"]}
    assert folder.process("crawl", "small.py", env=settings).code == 3
    (end,) = told(f"{redis_server.url}?key=out:finished&type=stream")
    assert end["_id"] != ends[0]["_id"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("kafka://u:hush@h/q", "cannot publish to 'kafka://u:***@h/q'"),
        ("{rabbit}/nobodys", "no exchange 'nobodys' in vhost '/': declare it first"),
        ("{wrong}", "the login is refused (user, password)"),
        ("amqp://u:hush@127.0.0.1:1", "cannot be reached: amqp://u:***@127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_said_before_work_begins(
    folder: Folder, site: Site, rabbitmq_server: RabbitServer, address: str, said: str
) -> None:
    rabbit = rabbitmq_server.url.removesuffix("/%2F")
    wrong = rabbitmq_server.url_of("test", "hush").removesuffix("/%2F")
    given = address.format(rabbit=rabbit, wrong=wrong)
    of_schedules = ("worker",)  # Without a target.
    for command in (("crawl", "small.py"), of_schedules):
        ended = folder.call(*command, "--publish", given)
        assert ended.code == 2, ended
        assert said in ended.err
        assert ended.err.count("\n") == 1, ended.err
        assert "hush" not in ended.err
        assert PASSWORD not in ended.err
    assert site.hits == []


@pytest.mark.rare
def test_workers_of_schedules_look_and_make_nothing(
    folder: Folder, rabbitmq_server: RabbitServer
) -> None:
    before = rabbitmq_server.queues("name")
    address = rabbitmq_server.url.removesuffix("/%2F")
    with folder.running("worker", "--publish", address, "--alive-file", "alive") as worker:
        until_now("its first sign of life", lambda: (folder.path / "alive").exists())
        worker.send(signal.SIGTERM)
        assert worker.wait().code == 0
    assert rabbitmq_server.queues("name") == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--publish-format", "celery"), "Celery reads lists, not streams"),
        (("--publish-item", "shop.item"), "plain messages have no name"),
        (("--publish-format", "pickle"), "'pickle' is none of plain, celery, messenger"),
    ],
)
def test_formats_that_do_not_fit(folder: Folder, options: tuple[str, ...], said: str) -> None:
    ended = folder.call("crawl", "small.py", "--publish", "redis-stream://h?key=x", *options)
    assert (ended.code, said in ended.err) == (2, True), ended


@pytest.mark.rare
def test_what_is_too_large_is_noted(
    folder: Folder, site: Site, redis_server: RedisServer, name: str
) -> None:
    """It is stored, and not published; the others are."""
    folder.write("large.py", LARGE.format(source=(folder.path / "small.py").read_text("utf-8")))
    address = f"redis-stream://127.0.0.1:{redis_server.port}?key=out"
    ended = folder.process("crawl", "large.py:Large", "--publish", address, "--name", name)
    assert ended.code == 3, ended
    assert "too large to be published: " in ended.err
    items = [item["path"] for item in told(f"{redis_server.url}?key=out&type=stream")]
    assert sorted(items) == [path for path in THINGS if path != "/b"]
    assert len(folder.export(name)) == len(THINGS)
    explained = folder.shoal("explain", name, f"{site.url}b", "--json").json()
    (rejected,) = explained["rejected"]
    assert rejected["reason"].startswith("too large to be published: ")
    assert folder.stats(name).rejected == 1


LARGE = """
{source}

class Large(Small):
    def parse(self, page):
        path = urlsplit(page.url).path
        if path == "/broken":
            raise ValueError("broken")
        yield {{"path": path, "text": "x" * (17 * 2**20 if path == "/b" else 10)}}
        yield from page.follow_all("a")
"""


class TestABrokerThatIsAway:
    def test_is_waited_for(self, folder: Folder, redis_server: RedisServer, name: str) -> None:
        with TcpProxy(redis_server.port) as network:
            address = f"redis-stream://127.0.0.1:{network.port}?key=out&max=1"
            with folder.running("crawl", "small.py", "--publish", address, "--name", name) as crawl:
                until_now("the stream to be full", lambda: "is full: 1 messages wait" in crawl.err)
                network.cut()
                assert folder.stats(name).done <= 1
                network.heal()
                seen = list[str]()

                def has_all() -> bool:
                    """One at a time is let through: batches of several, once there is room."""
                    seen.extend(i["_key"] for i in told(f"{redis_server.url}?key=out&type=stream"))
                    return crawl.has_ended()

                until_now("the end of the crawl", has_all)
                ended = crawl.wait()
        has_all()
        assert ended.code == 3, ended
        assert set(seen) == {item["_key"] for item in folder.export(name)}

    def test_a_drain_gives_tasks_back(
        self, folder: Folder, redis_server: RedisServer, name: str
    ) -> None:
        """And those who go on publish what was stored, and not told."""
        with TcpProxy(redis_server.port) as network:
            address = f"redis-stream://127.0.0.1:{network.port}?key=out"
            options = ("--publish", f"{address}&max=1", "--name", name)
            with folder.running("crawl", "small.py", *options) as crawl:
                until_now("the stream to be full", lambda: "waiting for the broker" in crawl.err)
                network.freeze()
                crawl.send(signal.SIGTERM)
                ended = crawl.wait()
            assert ended.code == 1, ended
            assert "what it was not told will come again" in ended.err
            stats = folder.stats(name)
            assert (stats.leased, stats.state) == (0, "running")
            network.heal()
            again = folder.process("crawl", "small.py", "--publish", address, "--name", name)
        assert again.code == 3, again
        items = told(f"{redis_server.url}?key=out&type=stream")
        assert {i["_key"] for i in items} == {item["_key"] for item in folder.export(name)}


@pytest.mark.rare
def test_who_does_not_publish_imports_nothing_of_it(folder: Folder) -> None:
    folder.write("spy.py", SPY.format(source=(folder.path / "small.py").read_text("utf-8")))
    ended = folder.process("crawl", "spy.py:Spy")
    assert ended.code == 0, ended
    assert (folder.path / "imported").read_text("utf-8") == ""


SPY = """
import sys
from pathlib import Path
{source}

class Spy(Small):
    def parse(self, page):
        names = [n for n in sys.modules if n.startswith(("shoal.publish", "shoal.feeds", "aiormq"))]
        Path("imported").write_text(" ".join(names))
"""


@pytest.mark.rare
@pytest.mark.alone
def test_a_rabbitmq_that_stands_still(tmp_path: Path) -> None:
    """Work comes to a stand and stays in bounds; a drain ends; who goes on finds and tells all."""
    with (
        RabbitServer(tmp_path / "rabbit") as rabbit,
        serving(Shop(hosts=3, products=150)) as shop,
    ):
        address = rabbit.url.removesuffix("/%2F")
        folder = Folder(tmp_path, {"SHOAL_PUBLISH": address, **shop_urls(shop)})
        with folder.running(*CRAWL, "--workers", "2", "--concurrency", "4") as crawl:
            until_now("some pages", lambda: len(shop.log) > 30)
            rabbit.pause()
            until_now("workers that wait", lambda: "waiting for the broker" in crawl.err)
            stats = folder.stats("shop")
            assert 0 < stats.leased <= 2 * 4 * HELD_PER_SLOT
            crawl.send(signal.SIGTERM)
            ended = crawl.wait()
        assert ended.code == 1, ended
        assert PASSWORD not in ended.err
        assert folder.stats("shop").leased == 0
        rabbit.resume()
        again = folder.process(*CRAWL)
        assert again.code == 3, again
        assert_found_everything(folder, shop)
        items = {(i["_key"], i["_scraped_at"]) for i in told(f"{address}/shoal.shop.items")}
        assert {(i["_key"], i["_scraped_at"]) for i in folder.export("shop")} <= items
