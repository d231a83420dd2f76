"""Symfony Messenger as a real client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.processes import Folder
from support.rabbitmq_servers import RabbitServer
from support.redis_servers import RedisServer
from support.server_process import missing_server, program
from support.until import LIMIT_S

URLS = [f"https://shop.example/p/{number}" for number in range(5)]
SCRIPT = Path(__file__).parent.parent / "support" / "messenger.php"
MESSENGER = Path("/usr/share/php/Symfony/Component/Messenger/Bridge")


def send(form: str, transport: str) -> None:
    """Have PHP send messages, as JSON or in its own format."""
    if not MESSENGER.exists():
        missing_server("php-symfony-messenger")
    command = [program("php"), "-d", "error_reporting=E_ALL & ~E_DEPRECATED", str(SCRIPT)]
    done = subprocess.run(
        [*command, form, transport, *URLS], capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=["rabbitmq", "redis", "redis-plain"])
def transport(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Where PHP sends messages, and where we read them."""
    if request.param == "rabbitmq":
        rabbit: RabbitServer = request.getfixturevalue("rabbitmq_server")
        return f"{rabbit.url}/messages", f"{rabbit.url}/messages"
    server: RedisServer = request.getfixturevalue("redis_server")
    # By default PHP's client wraps what it stores.
    plain = "?serializer=0" if request.param == "redis-plain" else ""
    address = f"redis://127.0.0.1:{server.port}"
    return f"{address}/messages{plain}", f"{address}?key=messages&type=stream"


@pytest.mark.rare
def test_messages_as_json(transport: tuple[str, str], tmp_path: Path) -> None:
    dsn, address = transport
    send("json", dsn)
    folder = Folder(tmp_path)
    fed = folder.process("feed", "shop", address, "--until-empty", "--json").json()
    assert (fed["added"], fed["rejected"], fed["waiting"]) == (5, 0, 0)
    record = folder.find("shop", URLS[0])
    assert record is not None
    assert record.task.priority == 5


@pytest.mark.rare
def test_messages_in_phps_own_format(transport: tuple[str, str], tmp_path: Path) -> None:
    dsn, address = transport
    send("php", dsn)
    ended = Folder(tmp_path).process("feed", "shop", address, "--until-empty")
    assert ended.code == 0, ended
    assert "0 added, 0 known already, 5 rejected" in ended.out
    assert "set the transport's serializer to messenger.transport.symfony_serializer" in ended.err
