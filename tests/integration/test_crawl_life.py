"""The hooks `opened` and `closed(summary)`: once for a fleet, whoever dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support.links import numbered_pages
from support.processes import Folder
from support.sites import Site, serving
from support.until import until_now

SPIDER = """
import os, time
from pathlib import Path
from shoal import Spider

def note(line):
    with open("log", "a") as log:
        log.write(f"{{line}}\\n")

class Life(Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    plugins = []

    def opened(self):
        if Path("broken").exists():
            raise ValueError("no room")
        note("opened")

    async def closed(self, summary):
        if Path("slow").exists():
            Path("slow").rename(f"pid-{{os.getpid()}}")
            time.sleep(600)
        stats, items = summary.stats, summary.items
        note(f"closed {{stats.state}} {{stats.done}} {{sum(items.values())}}")
        raise ValueError("too late")

    def parse(self, page):
        note("page")
        yield {{"url": page.url}}
        yield page.follow_all("a")

class Plugin:
    def opened(self):
        note("plugin")

Life.plugins = [Plugin]
"""


def log_of(folder: Folder) -> list[str]:
    path = folder.path / "log"
    return path.read_text().splitlines() if path.exists() else []


def test_once_for_the_fleet(tmp_path: Path, frontier: str) -> None:
    folder, at = Folder(tmp_path), ("--frontier", frontier)
    with serving(Site(numbered_pages(10))) as site:
        folder.write("life.py", SPIDER.format(url=site.url))
        folder.write("broken", "")
        failed = folder.shoal("crawl", "life.py", *at)
        assert failed.code == 2
        assert "in opened" in failed.err, "the traceback"
        last = failed.err.splitlines()[-1]
        assert last.endswith("crawl 'life' is not begun, as opened() raised ValueError: no room")
        assert log_of(folder) == ["plugin"]
        assert folder.shoal("status", "life", "--json", *at).json()["state"] == "new"

        (tmp_path / "broken").unlink()
        ended = folder.shoal("crawl", "life.py", "--workers", "2", *at)
        assert ended.code == 0, "what closed() raises changes nothing"
        assert "ValueError: too late" in ended.err
        lines = log_of(folder)
        assert lines[1:3] == ["plugin", "opened"]
        assert lines[3:-1] == ["page"] * 11
        assert lines[-1] == "closed finished 11 11"

        assert folder.shoal("crawl", "life.py", *at).code == 0
        assert log_of(folder) == lines, "nothing was new"


def test_another_closes_for_who_is_killed(tmp_path: Path, frontier: str) -> None:
    folder, at = Folder(tmp_path), ("--frontier", frontier)
    with serving(Site(numbered_pages(3))) as site:
        folder.write("life.py", SPIDER.format(url=site.url))
        assert folder.shoal("seed", "life", site.url, *at).code == 0
        folder.write("slow", "")
        with (
            folder.running("crawl", "life.py", *at) as crawling,
            folder.running("worker", "life.py", "--until-finished", *at) as worker,
        ):
            (claimed,) = until_now("closed", lambda: list(tmp_path.glob("pid-*")))
            pid = int(claimed.name.removeprefix("pid-"))
            os.kill(pid, signal.SIGKILL)
            other = worker if pid == crawling.pid else crawling
            assert other.wait().code == 0
    assert [line for line in log_of(folder) if line != "page"] == [
        *("plugin", "opened"),
        "closed finished 4 4",
    ]
