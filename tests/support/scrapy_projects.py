"""Scrapy projects like those of users, and `scrapy crawl` on them in real processes."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from pathlib import Path
from typing import Any

import pytest

import shoal
from support.processes import Ended, Folder, Running
from support.until import until_now

OLDEST = Path(__file__).parents[2] / ".scrapy-oldest"
"""The oldest supported Scrapy, with a Twisted of its time, installed by `make test-all`. Its other
dependencies are those of the newest."""
VERSIONS = {"oldest": OLDEST, "newest": None}
EACH_VERSION = [pytest.param("oldest", marks=pytest.mark.rare), "newest"]

ADDON = {"ADDONS": {"shoal.scrapy.Addon": 0}}
"""The setting that makes a project distributed."""

ITEMS_FILE = "items.jsonl"
APPENDING = f"""
import json


class Appending:
    \"\"\"Appends each item to a file, in one write: a kill leaves no half of a line.\"\"\"

    def open_spider(self, spider):
        self.file = open({ITEMS_FILE!r}, "ab", buffering=0)

    def close_spider(self, spider):
        self.file.close()

    def process_item(self, item, spider):
        self.file.write(json.dumps(dict(item)).encode() + b"\\n")
        return item
"""

_CONFIGURATION = "[settings]\ndefault = project.settings\n"
_SETTINGS = {
    "BOT_NAME": "project",
    "SPIDER_MODULES": ["project.spiders"],
    "NEWSPIDER_MODULE": "project.spiders",
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "INFO",
    "ITEM_PIPELINES": {"project.pipelines.Appending": 300},
}
_COMPLAINT = re.compile(r"\] (ERROR|CRITICAL): ")
# By the path of the package, because the folder of the clone may have the same name.
_OUR_WARNING = re.compile(rf"{re.escape(str(Path(shoal.__file__).parent))}/\S+\.py:\d+: \w*Warning")
_CLOSED = re.compile(r"Spider closed \((\w+)\)")


class Project:
    """A Scrapy project in a folder of its own, which stands for a machine and has all its files.

    Copies of the project have the same sites and the same queue.
    """

    def __init__(
        self,
        path: Path,
        spiders: str,
        settings: Mapping[str, object],
        *,
        sites: Sequence[str] = (),
        pipelines: str = APPENDING,
        middlewares: str = "",
        scrapy: Path | None = None,
    ) -> None:
        """`settings` are added to the usual ones and override them. `sites` are the start URLs,
        which spiders find in the environment as SITES, separated by commas. `scrapy` is the folder
        of another version of Scrapy."""
        self.path = path
        self.settings = {**_SETTINGS, **settings}
        self._env = {"SITES": ",".join(sites), "PYTHONWARNINGS": "default"}
        if scrapy is not None:
            assert (scrapy / "scrapy").is_dir(), f"{scrapy.name} is missing: run make test-all"
            self._env["PYTHONPATH"] = str(scrapy)
        self._write_all(spiders, pipelines, middlewares)

    def set(self, **settings: object) -> None:
        """Change settings of the project."""
        self.settings |= settings
        lines = (f"{name} = {value!r}\n" for name, value in self.settings.items())
        (self.path / "project/settings.py").write_text("".join(lines), "utf-8")

    def copy(self, path: Path) -> Project:
        """Copy the project to another machine, without the files that its runs have left."""
        other = copy(self)
        other.path = path
        ignored = shutil.ignore_patterns("*.out", "*.err", "*.jsonl", "__pycache__")
        shutil.copytree(self.path, path, ignore=ignored)
        return other

    def crawling(self, spider: str, *options: str) -> AbstractContextManager[Running]:
        """Start `scrapy crawl`. Its log goes to stderr."""
        command = ("-m", "scrapy", "crawl", spider, *options)
        return self.commands.running(*command, program=sys.executable)

    def crawl(self, spider: str, *options: str) -> Ended:
        """Run `scrapy crawl` to its end. It must exit with code 0."""
        with self.crawling(spider, *options) as running:
            ended = running.wait()
        assert ended.code == 0, ended.err
        return ended

    @property
    def commands(self) -> Folder:
        """The project's folder for commands with the environment of `scrapy`, which does not name
        the queue."""
        return Folder(self.path, self._env)

    @property
    def queue(self) -> Folder:
        """The project's folder for queries of the crawl and Shoal commands: its environment names
        the queue."""
        address = self.settings.get("SHOAL_FRONTIER") or self.settings.get("REDIS_URL")
        return Folder(self.path, {"SHOAL_FRONTIER": str(address)} if address else None)

    def items(self) -> list[dict[str, Any]]:
        """The items that the pipeline has written so far, on this machine."""
        try:
            lines = (self.path / ITEMS_FILE).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    def _write_all(self, spiders: str, pipelines: str, middlewares: str) -> None:
        package = self.path / "project"
        (package / "spiders").mkdir(parents=True)
        (self.path / "scrapy.cfg").write_text(_CONFIGURATION)
        for empty in (package / "__init__.py", package / "spiders/__init__.py"):
            empty.touch()
        self.set()
        (package / "spiders/all.py").write_text(spiders, "utf-8")
        (package / "pipelines.py").write_text(pipelines, "utf-8")
        (package / "middlewares.py").write_text(middlewares, "utf-8")


def closing_reason(log: str) -> str | None:
    """The reason in the log for which a spider closed; None if it did not close properly."""
    found = _CLOSED.search(log)
    return found[1] if found else None


def wait_for_log(running: Running, text: str) -> None:
    """Wait until a process has logged a text. It must not end before."""
    until_now(f"{text!r} in the log", lambda: text in running.err or running.has_ended())
    assert text in running.err, running.err


def counted(items: Sequence[Mapping[str, Any]], field: str) -> Counter[Any]:
    """How often each value of a field occurs."""
    return Counter(item[field] for item in items)


def assert_in_order(ended: Ended, reason: str = "finished") -> None:
    """Assert that a crawl exited with code 0 for this reason, and logged no errors or warnings of
    Shoal."""
    assert ended.code == 0, ended.err
    assert closing_reason(ended.err) == reason, ended.err
    assert "Traceback" not in ended.err, ended.err
    assert not _COMPLAINT.search(ended.err), ended.err
    assert_no_warning_of_ours(ended.err)


def assert_no_warning_of_ours(log: str) -> None:
    """Assert that the log has no warning about Shoal's code, be it from Scrapy or Python."""
    ours = [line for line in log.splitlines() if _OUR_WARNING.search(line)]
    assert not ours, ours
