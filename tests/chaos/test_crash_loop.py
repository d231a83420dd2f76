"""Workers that die as soon as they start: the fleet gives up instead of trying for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.processes import Folder

SPIDER = """
import os
import sys

from shoal import Spider

if sys.argv[0] == "-c":  # a worker process, not the command
    os._exit(3)


class Fragile(Spider):
    start_urls = ["http://127.0.0.1:9/"]
    allow_private = True

    def parse(self, page):
        pass
"""


@pytest.mark.rare
def test_a_fleet_whose_workers_all_die_at_once_gives_up(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("fragile.py", SPIDER)
    ended = folder.shoal("crawl", "fragile.py")
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "shoal: workers keep dying (exit code 3)"
    stats = folder.stats("fragile")
    assert (stats.added, stats.waiting) == (1, 1), "nothing was lost"
