"""Real PostgreSQL servers for tests: private, on free ports, removed at the end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import asyncpg

from support.server_process import ServerProcess, free_port, missing_server, program
from support.until import LIMIT_S, until_now

T = TypeVar("T")

USER = "test"
DATABASE = "postgres"
QUICK = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""Settings for tests that are not about durability."""


class PostgresServer(ServerProcess):
    """A server with an empty database."""

    gentle = signal.SIGINT
    """A fast shutdown, which disconnects all clients."""

    def __init__(self, *, password: str = "", **settings: str) -> None:
        """`settings` are those of postgresql.conf. If a password is set, every user needs it."""
        # Not below pytest's folders: the server runs as another user, who may not enter them.
        super().__init__(Path(tempfile.mkdtemp(prefix="shoal-postgres-")))
        self._password = password
        self._settings = settings

    def __enter__(self) -> Self:
        self._make()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def url(self) -> str:
        """The server's address, as users write it."""
        return self.url_of(DATABASE)

    def url_of(self, database: str, user: str = USER) -> str:
        """The address of one of its databases."""
        login = f"{user}:{quote(self._password, safe='')}" if self._password else user
        return f"postgresql://{login}@127.0.0.1:{self.port}/{database}"

    def crash(self) -> None:
        """End the server at once, without a checkpoint. It recovers from its log at the next
        start."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """Freeze all processes of the server: connections stay open, but get no answers."""
        os.killpg(os.getpgid(self.pid), signal.SIGSTOP)

    def execute(self, *statements: str, database: str = DATABASE, user: str = USER) -> list[Any]:
        """Run statements, each on its own, and return the rows of the last one."""
        return _run(self._execute(statements, self.url_of(database, user)))

    def script(self, text: str, database: str = DATABASE) -> None:
        """Run many statements at once."""
        _run(self._script(text, self.url_of(database)))

    @contextmanager
    def holding_a_connection(self) -> Iterator[Callable[[], object]]:
        """Occupy a connection, until the context ends or the function that it yields is called."""
        pipe = subprocess.PIPE
        with subprocess.Popen([_binary("psql"), "-At", self.url], stdin=pipe, stdout=pipe) as held:
            assert held.stdin is not None
            assert held.stdout is not None
            held.stdin.write(b"SELECT 'taken';\n")
            held.stdin.flush()
            assert held.stdout.readline() == b"taken\n"
            try:
                yield held.stdin.close
            finally:
                held.kill()

    def new_database(self, name: str) -> str:
        """Create an empty database, in place of any of the same name. Returns its address."""
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', f'CREATE DATABASE "{name}"')
        return self.url_of(name)

    async def _execute(self, statements: tuple[str, ...], url: str) -> list[Any]:
        connection = await asyncpg.connect(url, timeout=LIMIT_S)
        try:
            rows: list[Any] = []
            for statement in statements:
                rows = [tuple(row) for row in await connection.fetch(statement)]
            return rows
        finally:
            await connection.close()

    async def _script(self, text: str, url: str) -> None:
        connection = await asyncpg.connect(url, timeout=LIMIT_S)
        try:
            await connection.execute(text)
        finally:
            await connection.close()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _make(self) -> None:
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres", "postgres")
        how = ["-A", "scram-sha-256" if self._password else "trust"]
        if self._password:
            secret = self._folder / "password"
            secret.write_text(self._password)
            secret.chmod(0o644)
            how += ["--pwfile", str(secret)]
        subprocess.run(
            [
                *(program("setpriv"), *_as_postgres(), _binary("initdb"), "-D", str(self._data)),
                *("-U", USER, *how, "--no-sync", "-E", "UTF8", "--locale=C"),
            ],
            cwd=self._folder,
            check=True,
            capture_output=True,
            timeout=LIMIT_S,
        )

    def _command(self) -> list[str]:
        # No socket in the folder, whose path may be too long for one.
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **self._settings}
        command = [program("setpriv"), *_as_postgres(), "--pdeathsig", "KILL", _binary("postgres")]
        command += ["-D", str(self._data), "-p", str(self.port)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True


class PgBouncer:
    """A pgbouncer in front of a server, with transaction pooling. A context manager: it runs within
    the context and is killed at the end."""

    def __init__(self, server: PostgresServer) -> None:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="shoal-pgbouncer-"))
        self._server = server

    def __enter__(self) -> Self:
        self._folder.chmod(0o755)
        users = self._folder / "users.txt"
        users.write_text(f'"{USER}" ""\n')
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text(
            f"[databases]\n* = host=127.0.0.1 port={self._server.port}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            "default_pool_size = 2\n"
        )
        binary = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        command = ["--pdeathsig", "KILL", binary or missing_server("pgbouncer")]
        with (self._folder / "pgbouncer.log").open("wb") as log:
            self._process = subprocess.Popen(
                [program("setpriv"), *_as_postgres(), *command, configuration],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until_now("pgbouncer to start", self._answers)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(LIMIT_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url_of(self, database: str) -> str:
        """The address of a database of the server, through the pool."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _binary(name: str) -> str:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    return shutil.which(name) or missing_server("postgresql")


def _as_postgres() -> list[str]:
    """Options of setpriv that change to user postgres, because the server refuses to run as
    root."""
    if os.geteuid() != 0:
        return []
    return ["--reuid=postgres", "--regid=postgres", "--clear-groups"]


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a thread of its own, so that this also works within a running
    event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
