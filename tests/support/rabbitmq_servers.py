"""Private RabbitMQ nodes: each on free ports of 127.0.0.1, with a folder of its own."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from socket import create_connection
from typing import Any
from urllib.parse import quote

import msgspec

from support.redis_servers import TlsFiles
from support.server_process import ServerProcess, free_port, missing_server, program
from support.until import LIMIT_S

HOME = Path("/usr/lib/rabbitmq/bin")
"""The folder of the real programs. Those in /usr/sbin change to a user without rights in tests."""

USER, PASSWORD = "test", "p@ss/word"
VHOST = "a/b"
"""A second virtual host, whose name has to be escaped."""

WRITER = "writer"
"""A user who may read and write in the default virtual host, but declare nothing. Same password."""

STRANGER = "stranger"
"""A user who may log in, but do nothing. Same password."""

READER = "shoal", "secret"
"""The login that the documentation uses."""

_HEADER = b"AMQP\x00\x00\x09\x01"


class RabbitServer(ServerProcess):
    """A node with its users. Confirmed messages survive a restart. It has its own port mapper,
    which ends with the context."""

    def __init__(self, folder: Path, *, tls: TlsFiles | None = None) -> None:
        super().__init__(folder, free_port())
        self._tls = tls
        self.tls_port = free_port()
        self._inner_port, self._mapper_port = free_port(), free_port()
        self._mapper: subprocess.Popen[bytes] | None = None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait(LIMIT_S)

    @property
    def url(self) -> str:
        """The node's address, as users write it."""
        return self.url_of(USER)

    def url_of(self, user: str, password: str = PASSWORD, vhost: str = "/") -> str:
        """The node's address with this user, password and virtual host."""
        where = f"127.0.0.1:{self.port}/{quote(vhost, safe='')}"
        return f"amqp://{user}:{quote(password, safe='')}@{where}"

    @property
    def tls_url(self) -> str:
        """The address of the node's TLS port."""
        assert self._tls is not None, "made without TLS"
        login = f"{USER}:{quote(PASSWORD, safe='')}"
        return f"amqps://{login}@127.0.0.1:{self.tls_port}/?ca={self._tls.authority}"

    def start(self) -> None:
        """Start the node, and wait until it accepts users. It keeps its ports and data."""
        if not HOME.exists():
            missing_server("rabbitmq-server")
        if self._mapper is None:
            self._mapper = self._spawn([program("epmd")])
        self._configure()
        super().start()

    def ctl(self, *args: str) -> str:
        """Run rabbitmqctl and return its output. Takes seconds."""
        done = subprocess.run(
            [HOME / "rabbitmqctl", "--quiet", "-n", self._node, *args],
            env={**os.environ, **self._environment},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, f"rabbitmqctl {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def queues(self, *columns: str, vhost: str = "/") -> list[list[str]]:
        """The node's queues, with these columns of `rabbitmqctl list_queues`."""
        lines = self.ctl("list_queues", "--no-table-headers", "-p", vhost, *columns).splitlines()
        return [line.split("\t") for line in lines]

    @property
    def _node(self) -> str:
        return f"shoal{self.port}@localhost"

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._inner_port),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "none.conf"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "+S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
            ),
            # Makes the started process itself the node, without a shell around it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def _configure(self) -> None:
        (self._folder / "plugins").write_text("[].")
        definitions = self._folder / "definitions.json"
        definitions.write_bytes(msgspec.json.encode(_definitions()))
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{self.port}",
            f"load_definitions = {definitions}",
            "log.console.level = warning",
            "disk_free_limit.absolute = 50MB",
        ]
        if self._tls:
            lines += [
                f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {self._tls.authority}",
                f"ssl_options.certfile = {self._tls.certificate}",
                f"ssl_options.keyfile = {self._tls.key}",
                "ssl_options.verify = verify_none",
            ]
        (self._folder / "rabbitmq.conf").write_text("\n".join(lines) + "\n")

    def _command(self) -> list[str | Path]:
        return [HOME / "rabbitmq-server"]

    def _answers(self) -> bool:
        """Whether the node listens, which it does only once it has its users and queues."""
        port = self.tls_port if self._tls else self.port
        with suppress(OSError), create_connection(("127.0.0.1", port), LIMIT_S) as connection:
            if self._tls:
                return True
            connection.sendall(_HEADER)
            return bool(connection.recv(1))
        return False


def _definitions() -> dict[str, Any]:
    """The users and their rights, which the node reads at every start."""
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [_user(USER), _user(WRITER), _user(STRANGER), _user(*READER)],
        "vhosts": [{"name": "/"}, {"name": VHOST}],
        "permissions": [
            {"user": USER, "vhost": "/", **everything},
            {"user": USER, "vhost": VHOST, **everything},
            {"user": WRITER, "vhost": "/", **everything, "configure": ""},
            {"user": STRANGER, "vhost": "/", "configure": "", "write": "", "read": ""},
            {"user": READER[0], "vhost": "/", **everything},
        ],
    }


def _user(name: str, password: str = PASSWORD) -> dict[str, Any]:
    salt = os.urandom(4)
    digest = hashlib.sha256(salt + password.encode()).digest()
    return {
        "name": name,
        "password_hash": base64.b64encode(salt + digest).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": "",
    }
