"""Private servers for tests: each on a free port of 127.0.0.1, with a folder of its own."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NoReturn, Self

import pytest

from support.until import LIMIT_S, until_now

PORTS = range(11_000, 21_000)
"""Ports of servers, below those of outgoing connections. An outgoing connection could take the port
of a server that is down for a moment; a client of that server could even connect to itself. The bus
of a Redis cluster, 10,000 ports higher, is below them too."""

STARTS = 5
"""How many ports a server tries, since another process may take a free port before the start."""


def free_port() -> int:
    """A port that no process listens on, and that no outgoing connection will get."""
    return next(port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def missing_server(name: str, cure: str = "run scripts/servers") -> NoReturn:
    """Skip the test because a server is not installed. In CI, fail it."""
    lacking(f"{name} is not installed: {cure}")


def lacking(reason: str) -> NoReturn:
    """Skip the test because this machine lacks something. In CI, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str | Path) -> str:
    """The path of a program. Skips the test if it is not installed."""
    return shutil.which(name) or missing_server(Path(name).name)


class ServerProcess(ABC):
    """A server in a process of its own. A context manager: it runs within the context and is killed
    at the end.

    It dies with the thread that started it, so that nothing outlives a killed test run.
    """

    gentle: ClassVar[signal.Signals] = signal.SIGTERM
    """The signal that ends the server properly."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        """Without a port, the server takes a free one when it first starts, and keeps it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self._may_move = port is None
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The ID of the server's process, which must have been started."""
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def log(self) -> str:
        """The server's output so far."""
        return self._log_file.read_text("utf-8", "replace")

    def is_running(self) -> bool:
        """Whether the process is alive, paused or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server, and wait until it answers. It keeps its data from earlier starts."""
        assert not self.is_running(), "already started"
        for _ in range(STARTS if self._may_move else 1):
            if self._answers_or_ends():
                self._may_move = False
                return
            if self._may_move:
                self.port = free_port()
        raise AssertionError(f"{self!r} did not start:\n{self.log}")

    def stop(self) -> None:
        """End the server properly."""
        self._end(self.gentle)

    def kill(self) -> None:
        """Kill the server with SIGKILL. Not an error if it does not run."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """End the server properly if it runs, and start it again on the same port."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the process: its connections stay open, but get no answers."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let a paused process continue."""
        os.kill(self.pid, signal.SIGCONT)

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server is up. Called only while its process is alive."""

    @property
    def _log_file(self) -> Path:
        return self._folder / "server.log"

    @property
    def _environment(self) -> Mapping[str, str]:
        """Environment variables that the server needs in addition."""
        return {}

    def _answers_or_ends(self) -> bool:
        """Start the process and wait until it answers. False if it ends instead."""
        self._process = self._spawn(self._command())
        try:
            until_now(f"{self!r} to start", lambda: not self.is_running() or self._answers())
        except BaseException as error:
            self.kill()
            error.add_note(self.log)
            raise
        return self.is_running()

    def _spawn(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        with self._log_file.open("ab") as log:
            return subprocess.Popen(
                [program("setpriv"), "--pdeathsig", "KILL", *command],
                cwd=self._folder,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _end(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running():
            return
        self._process.send_signal(number)
        self.resume()  # A paused process would not act on most signals before.
        self._process.wait(LIMIT_S)

    def __repr__(self) -> str:
        return f"{type(self).__name__} at port {self.port}"
