"""`shoal feed` as its users run it, with Celery as a real client."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from celery import Celery  # type: ignore[import-untyped]

from shoal.feeds import open_source
from support.feeds import RabbitQueue, RedisQueue
from support.processes import Folder
from support.rabbitmq_servers import PASSWORD, STRANGER, USER, WRITER, RabbitServer
from support.redis_servers import RedisServer
from support.server_process import free_port
from support.until import until_now

LOGIN = "the login is refused (user, password)"
URLS = [f"https://shop.example/p/{number}" for number in range(30)]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(params=["rabbitmq", "redis"])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[Celery, str]]:
    """Celery with a broker, and the address of its queue."""
    if request.param == "rabbitmq":
        rabbit: RabbitServer = request.getfixturevalue("rabbitmq_server")
        url = rabbit.url
        address = f"{rabbit.url.removesuffix('%2F')}celery"
    else:
        server: RedisServer = request.getfixturevalue("redis_server")
        url, address = server.url, f"{server.url}?key=celery"
    app = Celery(broker=url)
    yield app, address
    app.close()


class TestCelery:
    def test_a_real_client(self, broker: tuple[Celery, str], folder: Folder) -> None:
        app, address = broker
        for url in URLS[:10]:
            app.send_task("shoal.seed", args=[url])
        app.send_task("shoal.seed", args=[URLS[10:20]])
        app.send_task("shoal.seed", kwargs={"url": URLS[20], "priority": 5, "meta": {"a": 1}})
        app.send_task("tasks.add", args=[1, 2])
        app.send_task("shoal.seed", args=[URLS[21]], serializer="pickle")
        ended = folder.process("feed", "shop", address, "--until-empty", "--json")
        assert ended.code == 0, ended
        fed = ended.json()
        assert (fed["crawl"], fed["added"], fed["rejected"], fed["waiting"]) == ("shop", 21, 2, 0)
        record = folder.find("shop", URLS[20])
        assert record is not None
        assert (record.task.priority, record.task.meta) == (5, {"a": 1})


async def filled(queue: RabbitQueue | RedisQueue, bodies: list[bytes]) -> None:
    await queue.send(bodies)
    await queue.close()


def sent(queue: RabbitQueue | RedisQueue, count: int) -> None:
    numbers = range(count)
    asyncio.run(filled(queue, [b"https://shop.example/p/%d" % number for number in numbers]))


def waiting_in(queue: RabbitQueue) -> int:
    async def count() -> int:
        source = open_source(queue.address)
        try:
            return await source.waiting()
        finally:
            await source.close()

    return asyncio.run(count())


def test_killed_and_run_again(folder: Folder, rabbitmq_server: RabbitServer) -> None:
    """Nothing is lost, and nothing is added twice."""
    queue = RabbitQueue(rabbitmq_server)
    sent(queue, 4000)

    def has_begun() -> bool:
        try:
            return folder.stats("shop").added > 0
        except Exception:
            return False

    with folder.running("feed", "shop", queue.address) as feeder:
        until_now("the first tasks", has_begun)
        feeder.send(signal.SIGKILL)
        feeder.wait()
    ended = folder.process("feed", "shop", queue.address, "--until-empty")
    assert ended.code == 0, ended
    assert re.search(r"shop: [\d,]+ added, [\d,]+ known already, 0 rejected from amqp", ended.out)
    assert folder.stats("shop").added == 4000


def test_a_signal_ends_it(folder: Folder, redis_server: RedisServer) -> None:
    queue = RedisQueue(redis_server, "list")
    sent(queue, 5)
    with folder.running("feed", "shop", queue.address) as feeder:
        until_now("the queue to be empty", lambda: redis_server.cli("DBSIZE") == "0")
        feeder.send(signal.SIGTERM)
        ended = feeder.wait()
    assert ended.code == 0, ended
    assert ended.out == f"shop: 5 added, 0 known already, 0 rejected from {queue.address}\n"


def test_status_shows_it_while_it_runs(folder: Folder, redis_server: RedisServer) -> None:
    queue = RedisQueue(redis_server, "list")
    sent(queue, 5)

    def feeds() -> list[Any]:
        ended = folder.call("status", "shop", "--json")
        return list(ended.json()["feeds"]) if ended.code == 0 else []

    with folder.running("feed", "shop", queue.address) as feeder:
        until_now("its news", lambda: [feed["added"] for feed in feeds()] == [5])
        (feed,) = feeds()
        assert (feed["address"], feed["held_up"]) == (queue.address, "")
        assert feed["last_at"] is not None
        assert f"feed {queue.address}: 5 added" in folder.call("status", "shop").out
        feeder.send(signal.SIGTERM)
        assert feeder.wait().code == 0
    assert feeds() == []


class TestWrongUse:
    def test_no_such_queue(self, folder: Folder, rabbitmq_server: RabbitServer) -> None:
        address = f"{rabbitmq_server.url.removesuffix('%2F')}nowhere"
        ended = folder.shoal("feed", "shop", address)
        assert ended.code == 2
        assert re.fullmatch(r"shoal: .+no queue 'nowhere'.+declare it first.+\n", ended.err)
        assert "p%40ss" not in ended.err

    @pytest.mark.parametrize(
        ("user", "password", "path", "why"),
        [
            (USER, "wrong", "{queue}", LOGIN),
            (
                WRITER,
                PASSWORD,
                "{queue}",
                "access to queue '{queue}.rejected' in vhost '/' refused",
            ),
            *(
                pytest.param(*case, marks=pytest.mark.rare)
                for case in (
                    ("nobody", PASSWORD, "{queue}", LOGIN),
                    (USER, PASSWORD, "nowhere/{queue}", "there is no virtual host 'nowhere'"),
                    (WRITER, PASSWORD, "a%2Fb/{queue}", "no virtual host 'a/b', or not for this"),
                    (STRANGER, PASSWORD, "{queue}", "access to queue '{queue}' in vhost"),
                )
            ),
        ],
    )
    def test_what_rabbitmq_refuses(
        self,
        folder: Folder,
        rabbitmq_server: RabbitServer,
        user: str,
        password: str,
        path: str,
        why: str,
    ) -> None:
        """One line, at once, and the message stays."""
        queue = RabbitQueue(rabbitmq_server)
        asyncio.run(filled(queue, [b"no task"]))
        path, why = path.format(queue=queue.name), why.format(queue=queue.name)
        address = f"{rabbitmq_server.url_of(user, password).removesuffix('%2F')}{path}"
        ended = folder.process("feed", "shop", address)
        assert (ended.code, ended.out) == (2, ""), ended
        line = ended.err.splitlines()[-1]
        assert line.startswith(f"shoal: amqp://{user}:***@127.0.0.1")
        assert why in line
        assert "Traceback" not in ended.err
        assert quote(password, safe="") not in ended.err
        assert waiting_in(queue) == 1

    def test_nobody_there(self, folder: Folder) -> None:
        ended = folder.shoal("feed", "shop", f"amqp://127.0.0.1:{free_port()}/urls")
        assert ended.code == 2
        assert "is the address right, and is it running?" in ended.err
