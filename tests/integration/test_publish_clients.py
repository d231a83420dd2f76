"""Real consumers: Celery and Symfony Messenger handle items with no code of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import Folder
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer
from support.server_process import missing_server, program
from support.sites import Site, serving
from support.small_site import THINGS, put_spider, small_site
from support.until import LIMIT_S, until_now

MESSENGER = Path("/usr/share/php/Symfony/Component/Messenger/Bridge")
SCRIPT = Path(__file__).parent.parent / "support" / "messenger_reading.php"

CONSUMER = """
import json
from pathlib import Path

from celery import Celery
from kombu import Queue

app = Celery(broker={broker!r})
app.conf.update(
    task_queues=[Queue({queue!r})], broker_connection_retry_on_startup=True, {options}
)

@app.task(name="shop.store")
def store(item):
    with Path("stored").open("a") as file:
        file.write(json.dumps(item) + "\\n")
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(small_site()) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, site: Site) -> Folder:
    folder = Folder(tmp_path)
    put_spider(folder, site)
    return folder


def consumed(folder: Folder, env: dict[str, str] | None = None) -> list[str]:
    """What a worker of Celery's has handled, when it has all."""
    command = ("-m", "celery", "-A", "consumer", "worker", "--pool", "solo", "--loglevel", "INFO")
    file = folder.path / "stored"

    def handled() -> list[str]:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return sorted(item["path"] for item in map(json.loads, lines) if "path" in item)

    with folder.running(*command, program=sys.executable, env=env) as worker:
        until_now(
            "Celery to handle all",
            lambda: len(handled()) >= len(THINGS) or worker.has_ended(),
        )
        assert not worker.has_ended(), worker.err
    assert "unregistered task" not in worker.err
    return handled()


@pytest.mark.rare
@pytest.mark.parametrize("kind", ["rabbitmq", "redis"])
def test_celery(folder: Folder, kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "rabbitmq":
        rabbit: RabbitServer = request.getfixturevalue("rabbitmq_server")
        broker, queue = rabbit.url, "shoal.celery.items"
        address = rabbit.url.removesuffix("/%2F")
    else:
        server: RedisServer = request.getfixturevalue("redis_server")
        broker, queue = server.url, "celery-items"
        address = f"{server.url}?key=celery-items"
    folder.write("consumer.py", CONSUMER.format(broker=broker, queue=queue, options=""))
    names = ("--publish-format", "celery", "--publish-item", "shop.store", "--name", "celery")
    ended = folder.process("crawl", "small.py", "--publish", address, *names)
    assert ended.code == 3, ended
    assert consumed(folder) == THINGS


@pytest.mark.rare
def test_messenger(folder: Folder, request: pytest.FixtureRequest, transport: str) -> None:
    if not MESSENGER.exists():
        missing_server("php-symfony-messenger")
    if transport == "rabbitmq":
        rabbit: RabbitServer = request.getfixturevalue("rabbitmq_server")
        address = rabbit.url.removesuffix("/%2F")
        dsn = f"{rabbit.url}/shoal.php.items"  # As an exchange and a queue, both made by PHP.
    else:
        server: RedisServer = request.getfixturevalue("redis_server")
        address = f"redis-stream://127.0.0.1:{server.port}?key=things"
        dsn = f"redis://127.0.0.1:{server.port}/things?delete_after_ack=true"
    names = ("--publish-format", "messenger", "--publish-item", "Thing", "--name", "php")
    folder.write("things.py", ONLY_THINGS.format(source=(folder.path / "small.py").read_text()))
    ended = folder.process("crawl", "things.py:Things", "--publish", address, *names)
    assert ended.code == 0, ended
    command = [program("php"), "-d", "error_reporting=E_ALL & ~E_DEPRECATED", str(SCRIPT)]
    done = subprocess.run(
        [*command, dsn, str(len(THINGS))], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    handled = [json.loads(line) for line in done.stdout.splitlines()]
    stored = [{"path": i["path"], "size": i["size"]} for i in folder.export("php")]
    assert sorted(handled, key=str) == sorted(stored, key=str)


@pytest.fixture(params=["rabbitmq", "redis"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


ONLY_THINGS = """
{source}

class Things(Small):
    def parse(self, page):
        if page.css("h1::text").get() != "broken":
            yield Thing(path=urlsplit(page.url).path, size=len(page.body))
        yield from page.follow_all("a")
"""
