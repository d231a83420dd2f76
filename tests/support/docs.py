"""Runs the commands that the documentation shows, in a folder of their own."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from shoal.runtime.process import machine_name
from shoal.web.listening import DEFAULT_LISTEN
from support.in_process import call, is_quick
from support.markdown import README, Command, blocks
from support.processes import SHOAL, Ended, catches, environment
from support.server_process import free_port
from support.until import LIMIT_S, until_now

SITE = "https://shop.example"
DATA = "/data/"
"""The folder of archives in the documentation; replaced by one in the reader's folder."""
SETTINGS = {"SHOAL_ALLOW_PRIVATE": "true", "SHOAL_RATE": "1000/s", "TERM": "xterm"}


class Reader:
    """A reader who follows the documentation, with a local shop and local servers in place of those
    that it names."""

    def __init__(
        self,
        folder: Path,
        shop: str,
        servers: Mapping[str, int] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`servers` maps the host names in the documentation to ports of this machine."""
        self.folder = folder
        self.shop = shop
        """The URL of the local shop."""
        self._servers = servers or {}
        path = {"PATH": f"{SHOAL.parent}:{os.environ['PATH']}"}
        self._env = environment(SETTINGS | path | dict(env or {}))
        self._started: list[subprocess.Popen[bytes]] = []
        self._listen = f"127.0.0.1:{free_port()}"
        self.write("spider.py", next(b.text for b in blocks(README) if b.language == "python"))

    def write(self, name: str, text: str) -> None:
        """Write a file to the folder, with local addresses."""
        (self.folder / name).write_text(self.localised(text), "utf-8")

    def localised(self, text: str) -> str:
        """The text with the real addresses of the shop and the servers."""
        local = text.replace(SITE, self.shop).replace("shop.example", "127.0.0.1")
        local = local.replace("0.0.0.0:7350", "127.0.0.1:0").replace(
            "127.0.0.1:7351", "127.0.0.1:0"
        )
        local = local.replace(DEFAULT_LISTEN, self._listen)
        for name, port in self._servers.items():
            local = local.replace(f"-h {name}", f"-p {port}").replace(name, f"127.0.0.1:{port}")
        local = local.replace(DATA, f"{self.folder}{DATA}")
        assert "https://" not in local, f"leads out of this machine: {text}"
        return local

    def follow(self, command: Command) -> Ended:
        """Run a command. Its output has the addresses of the documentation."""
        text = self.localised(command.text)
        words = shlex.split(text)
        if "--watch" in words:
            ended = self._interrupt(words)
        elif runs_for_ever(words):
            ended = self._start(words)
        elif is_quick(words[1:]) and not re.search(r"[|<>]", text):
            ended = self._call(words)
            if words[1:3] == ["schedule", "run"]:
                until_now("the run's end", lambda: self._has_run(words[4:]))
        else:
            ended = self.run("bash", "-c", text)
        return Ended(ended.code, self._shown(ended.out), self._shown(ended.err))

    def run_sql(self, text: str) -> Ended:
        """Run statements on the database, as a user with all rights."""
        script = self.folder / "statements.sql"
        script.write_text(text, "utf-8")
        address = self.localised("postgresql://test@db-host/shop")
        return self.run("psql", address, "-v", "ON_ERROR_STOP=1", "-f", str(script))

    def run(self, *words: str) -> Ended:
        """Run any program."""
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def close(self) -> None:
        """Stop the services that were started. They must exit with code 0."""
        for process in self._started:
            process.terminate()
        ends = [process.wait(LIMIT_S) for process in self._started]
        assert not any(ends), f"exit codes {ends}"

    def _start(self, words: list[str]) -> Ended:
        """Start a service, which runs on while the rest of the page is followed."""
        number = len(self._started)
        # The first listens at the documented address, the others elsewhere.
        env = self._env if number else self._env | {"SHOAL_LISTEN": self._listen}
        with (self.folder / f"started{number}.err").open("wb") as err:
            process = subprocess.Popen(
                words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stderr=err
            )
        self._started.append(process)
        until_now("it to run", lambda: catches(process.pid, signal.SIGTERM))
        if words[:2] == ["shoal", "serve"]:
            said = self.folder / f"started{number}.err"
            until_now("it to listen", lambda: "listening on" in said.read_text("utf-8"))
        return Ended(0, "", "")

    def _has_run(self, options: list[str]) -> bool:
        ended = self._call(["shoal", "schedule", "history", *options, "--json"])
        return bool(ended.json())

    def _call(self, words: list[str]) -> Ended:
        """Run a Shoal command in this process."""
        return Ended(*call(words[1:], self.folder, self._env))

    def _interrupt(self, words: list[str]) -> Ended:
        """Run a command that does not end on a terminal, and press Ctrl-C when it shows output."""
        screen, terminal = pty.openpty()
        with (
            subprocess.Popen(
                words,
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=terminal,
            ) as process,
            io.FileIO(screen) as output,
        ):
            os.close(terminal)
            shown = b""
            while b"state" not in shown:
                shown += output.read(4096) or b""
            process.send_signal(signal.SIGINT)
            _drain(output)
        return Ended(process.returncode, shown.decode("utf-8", "replace"), "")

    def _shown(self, text: str) -> str:
        text = text.replace(self.shop, SITE).replace(f"{machine_name()}:", "laptop:")
        for name, port in self._servers.items():
            text = text.replace(f"127.0.0.1:{port}", name)
        return text.replace(self.shop.removeprefix("http://"), "shop.example")


def runs_for_ever(words: list[str]) -> bool:
    """Whether a command is a service, which runs until it is told to stop."""
    has_target = len(words) > 2 and not words[2].startswith("-")
    if words[:3] == ["shoal", "proxies", "echo"]:
        return True
    return words[:2] == ["shoal", "serve"] or (words[:2] == ["shoal", "worker"] and not has_target)


def _drain(output: io.FileIO) -> None:
    try:
        while output.read(4096):
            pass
    except OSError:  # how a terminal reports that its last user is gone
        return
