"""Real servers of the S3 protocol: private, on free ports, gone at the end.

Ministack supports conditional puts and checks no signatures; rclone is the other way round.
"""

from __future__ import annotations

import http.client
import os
import sys
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Self

from support.server_process import ServerProcess, missing_server
from support.until import LIMIT_S

BUCKET = "pages"
KEY, SECRET = "some-key", "some-secret"


class S3Server(ServerProcess):
    """A server with one bucket, whose contents survive a restart."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._make_bucket()
        return self

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that a client needs."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    @abstractmethod
    def _make_bucket(self) -> None:
        """Create the bucket. Called once, when the context is entered."""

    def _answers(self) -> bool:
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
    def _command(self) -> list[str]:
        return [script("ministack")]

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "HOME": str(self._folder),
            "SERVICES": "s3,sqs",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self._folder / "data"),
        }

    def _make_bucket(self) -> None:
        assert self._ask("PUT", f"/{BUCKET}") == 200, self.log


class Rclone(S3Server):
    def _command(self) -> list[str]:
        address, login = f"127.0.0.1:{self.port}", f"{KEY},{SECRET}"
        options = ["--addr", address, "--auth-key", login, "--config", os.devnull]
        self._data.mkdir(exist_ok=True)
        return [script("rclone"), "serve", "s3", *options, str(self._data)]

    def _make_bucket(self) -> None:
        (self._data / BUCKET).mkdir()

    @property
    def _data(self) -> Path:
        return self._folder / "data"


def script(name: str) -> str:
    """The path of a program that a Python package has installed."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else missing_server(name)
