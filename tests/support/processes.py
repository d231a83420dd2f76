"""Runs Shoal as users do: the real command, in a process (and process group) of its own."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from shoal.config import DEFAULT_STORE, Rules
from shoal.core.task import Task
from shoal.drivers.sqlite import path_of
from shoal.export import Format, export
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Host, Pulse, Record, Stats
from shoal.results import open_results
from support.in_process import call, is_quick
from support.until import LIMIT_S

T = TypeVar("T")

SHOAL = Path(sys.executable).with_name("shoal")
TESTS = Path(__file__).parent.parent
"""The folder in which `python -m support...` works."""

SEED_VARIABLE = "SHOAL_TEST_SEED"


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The command's output, read as JSON."""
        return json.loads(self.out)


class Folder:
    """A folder in which commands run. By default their store is its `shoal.db`."""

    def __init__(self, path: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is for all commands, in addition to what each of them is given."""
        self.path = path
        self._env = dict(env or {})
        self._written = 0

    def write(self, name: str, text: str) -> Path:
        """Write a file to the folder."""
        path = self.path / name
        path.write_text(text, "utf-8")
        # Python reuses a compiled module if the second and the size of its source are the same.
        self._written += 1
        os.utime(path, times=(moment := time.time() + self._written, moment))
        return path

    def shoal(
        self,
        *args: str | Path,
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> Ended:
        """Run a command to its end. A quick one runs in this process, unless `within` is a command
        that has to run it, like prlimit or setpriv."""
        if is_quick(args) and not within:
            return self.call(*args, stdin=stdin, env=env)
        return self.process(*args, stdin=stdin, env=env, within=within)

    def call(
        self, *args: str | Path, stdin: str | bytes = "", env: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command to its end in this process."""
        return Ended(*call(args, self.path, self._environment(env), _bytes(stdin)))

    def process(
        self,
        *args: str | Path,
        stdin: str | bytes = "",
        env: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> Ended:
        """Run a command to its end in a process of its own."""
        done = subprocess.run(
            [*within, SHOAL, *args],
            cwd=self.path,
            env=self._environment(env),
            input=_bytes(stdin),
            capture_output=True,
            timeout=LIMIT_S,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def _environment(self, more: Mapping[str, str] | None) -> dict[str, str]:
        return environment({**self._env, **(more or {})})

    def stats(self, crawl: str) -> Stats:
        """The statistics of a crawl. Read in this process, because a command for it would take most
        of a test's time."""
        return asyncio.run(self.ask_frontier(lambda frontier: frontier.stats(crawl)))

    def find(self, crawl: str, url: str) -> Record | None:
        """The frontier's record of a URL, by the default rules of identity."""
        entry = Admission(Rules()).admitted_as(Task(url=url))
        return asyncio.run(self.ask_frontier(lambda frontier: frontier.find(crawl, entry)))

    def workers(self, crawl: str) -> list[Pulse]:
        """The workers of a crawl that have reported lately."""
        return asyncio.run(self.ask_frontier(lambda frontier: frontier.workers(crawl)))

    def holders(self, crawl: str) -> list[str]:
        """The workers of a crawl that hold leases."""
        return asyncio.run(self.ask_frontier(lambda frontier: frontier.holders(crawl)))

    def hosts(self, crawl: str) -> list[Host]:
        """The hosts of a crawl."""
        return asyncio.run(self.ask_frontier(lambda frontier: frontier.hosts(crawl, 100)))

    def export(self, crawl: str) -> list[dict[str, Any]]:
        """The exported items of a crawl."""
        file = self.path / "exported.jsonl"
        asyncio.run(self._export(crawl, file))
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    async def ask_frontier(self, ask: Callable[[Frontier], Awaitable[T]]) -> T:
        """Call `ask` with the frontier of the commands, and return its result."""
        async with frontier_at(
            self.address("SHOAL_FRONTIER"), self._env.get("SHOAL_STATE")
        ) as frontier:
            return await ask(frontier)

    async def _export(self, crawl: str, file: Path) -> None:
        results = open_results(self.address("SHOAL_RESULTS"))
        try:
            await export(results, crawl, file, Format.JSONL)
        finally:
            await results.close()

    def address(self, variable: str) -> str:
        """The address of the commands' store. A relative path in it is relative to the folder."""
        address = self._env.get(variable, DEFAULT_STORE)
        if not address.startswith("sqlite:"):
            return address
        return f"sqlite:///{quote(str(self.path / path_of(address)))}"

    @contextmanager
    def running(
        self,
        *args: str | Path,
        env: Mapping[str, str] | None = None,
        program: str | Path = SHOAL,
    ) -> Iterator[Running]:
        """Start a command as the leader of a new process group, which is killed at the end."""
        number = len(list(self.path.glob("*.err")))
        out, err = self.path / f"{number}.out", self.path / f"{number}.err"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [program, *args],
                cwd=self.path,
                env=self._environment(env),
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
            )
        running = Running(process, out, err)
        try:
            yield running
        finally:
            running.kill_all()


class Running:
    """A running command."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self._process = process
        self._out = out
        self._err = err
        self.pid = process.pid

    @property
    def err(self) -> str:
        """The command's stderr so far."""
        return self._err.read_text("utf-8")

    def workers(self) -> list[int]:
        """The worker processes that the command has started and that are alive."""
        return [pid for pid in children_of(self.pid) if is_alive(pid)]

    def send(self, number: int) -> None:
        """Send a signal to the command itself, not to its workers."""
        os.kill(self.pid, number)

    def kill_all(self) -> None:
        """Kill the whole process group with SIGKILL. Not an error if it is gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(LIMIT_S)

    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return self._process.poll() is not None

    def wait(self) -> Ended:
        """Wait for the command's end."""
        code = self._process.wait(LIMIT_S)
        return Ended(code, self._out.read_text("utf-8"), self.err)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without Shoal settings and proxies, and with `more`."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SHOAL_") and not name.upper().endswith("_PROXY")
    }
    # Any free port, because many coordinators run at the same time in tests.
    fixed = {"COLUMNS": "200", "NO_COLOR": "1", "SHOAL_LISTEN": "127.0.0.1:0"}
    return own | fixed | dict(more or {})


def seeded_random(name: str) -> random.Random:
    """A random generator for a test. Prints its seed; SHOAL_TEST_SEED repeats a run."""
    seed = os.environ.get(SEED_VARIABLE) or str(random.randrange(10**9))
    print(f"{name}: {SEED_VARIABLE}={seed}")
    return random.Random(f"{name} {seed}")


def children_of(pid: int) -> list[int]:
    """The child processes of a process."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process is alive. One that has ended but was not reaped is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def catches(pid: int, number: int) -> bool:
    """Whether a process has installed a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line.split()[1] for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def peak_memory_kb(pid: int) -> int:
    """The most memory that a process has used so far; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def obeying_permissions() -> list[str]:
    """A command prefix that makes permission bits apply even to root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def limiting_files_to(size: int) -> list[str]:
    """A command prefix under which files cannot exceed this size, so that a write fails midway."""
    return ["prlimit", f"--fsize={size}"]
