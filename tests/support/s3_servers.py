"""Servers that speak S3's protocol: real ones, private, on free ports, gone in the end.

Ministack knows conditional puts and looks at no signature; rclone is the other way round.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from support.redis_servers import free_port, missing_server, program
from support.until import LIMIT_S, until_now

BUCKET = "pages"
KEY, SECRET = "some-key", "some-secret"


class S3Server:
    """A server with one bucket, which outlives a restart. As a context it runs, and is killed
    after. It dies with the thread that started it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        self._make_bucket()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def environment(self) -> dict[str, str]:
        """What a client needs in its environment."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    @property
    def log(self) -> str:
        """What it has said so far."""
        return self._log_file.read_text("utf-8", "replace")

    def start(self) -> None:
        """Start it; back when it answers. It keeps its port."""
        command, more = self._command()
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [program("setpriv"), "--pdeathsig", "KILL", *command],
                cwd=self._folder,
                env={**os.environ, **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until_now(f"{command[0]} to start", self._answers)

    def kill(self) -> None:
        """kill -9. Not an error if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(LIMIT_S)

    @property
    def _log_file(self) -> Path:
        return self._folder / "server.log"

    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        """How to start it: the command, and what is special in its environment."""
        raise NotImplementedError

    def _make_bucket(self) -> None:
        raise NotImplementedError

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"it did not start:\n{self.log}"
        with suppress(OSError, http.client.HTTPException):
            return self._ask("GET", "/") > 0
        return False

    def _ask(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            connection.request(method, path)
            return connection.getresponse().status
        finally:
            connection.close()


class Ministack(S3Server):
    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        data = str(self._folder / "data")
        return [_script("ministack")], {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "HOME": str(self._folder),
            "SERVICES": "s3",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": data,
        }

    def _make_bucket(self) -> None:
        assert self._ask("PUT", f"/{BUCKET}") == 200, self.log


class Rclone(S3Server):
    def _command(self) -> tuple[list[str], Mapping[str, str]]:
        address, login = f"127.0.0.1:{self.port}", f"{KEY},{SECRET}"
        options = ["--addr", address, "--auth-key", login, "--config", os.devnull]
        self._data.mkdir(exist_ok=True)
        return [_script("rclone"), "serve", "s3", *options, str(self._data)], {}

    def _make_bucket(self) -> None:
        (self._data / BUCKET).mkdir()

    @property
    def _data(self) -> Path:
        return self._folder / "data"


def _script(name: str) -> str:
    """A program that a Python package has brought along."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else missing_server(name)
