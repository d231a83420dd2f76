"""`shoal crawl` and its options, from the outside."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.links import numbered_pages, paths_of
from support.links import put_spider as put_links_spider
from support.processes import Folder, environment
from support.rarely import first_then_rare
from support.sites import Site, serving
from support.small_site import THINGS, put_spider, small_site
from support.until import LIMIT_S

SCRIPT = """
import json, sys
import shoal

class Script(shoal.Spider):
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True

    def parse(self, page):
        yield {{"url": page.url}}
        yield from page.follow_all("a")

if __name__ == "__main__":
    summary = shoal.crawl(Script, workers=int(sys.argv[1]))
    json.dump([summary.exit_code, summary.finished, summary.stats.done, summary.items], sys.stdout)
"""

ALLOWED = "--allow-private, or allow_private = True in the spider, lets it be crawled"
LATE = """
from shoal import Spider

class Late(Spider):
    def start(self):
        yield "{}"
"""
NOTHING_NEW = (
    r"^nothing new: small finished on \d+ [A-Z][a-z]{2}\. --fresh starts over;"
    r" --name X --previous small crawls again$"
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def small(folder: Folder) -> Iterator[Site]:
    with serving(small_site()) as site:
        put_spider(folder, site)
        yield site


@pytest.fixture
def pages(folder: Folder) -> Iterator[Site]:
    """A front page and thirty others."""
    with serving(Site(numbered_pages(30))) as site:
        put_links_spider(folder, [site], rate="none")
        yield site


def keys(items: list[dict[str, Any]], kind: str) -> list[str]:
    return sorted(item["_key"] for item in items if item["_kind"] == kind)


# Once, and again


def test_a_finished_crawl_fetches_nothing_when_it_runs_again(folder: Folder, small: Site) -> None:
    assert folder.shoal("crawl", "small.py").code == 3
    before = list(small.paths), small.robots_hits[:]
    again = folder.shoal("crawl", "small.py")
    assert again.code == 3, again
    assert (small.paths, small.robots_hits) == before
    assert "6 done, 1 dead, 2 dropped" in again.out
    assert "to try again: shoal dead retry small, then this command\n" in again.out
    fresh = folder.shoal("crawl", "small.py", "--fresh", "--name", "small & new")
    assert "shoal dead retry 'small & new', then this command without --fresh\n" in fresh.out


def test_fresh_starts_over(folder: Folder, pages: Site) -> None:
    assert folder.shoal("crawl", "links.py", "--max-pages", "3").code == 0
    assert folder.shoal("crawl", "links.py", "--fresh").code == 0
    assert len(pages.paths) == 3 + 31
    assert len(folder.export("links")) == 31
    assert len(pages.robots_hits) == 2


@pytest.mark.rare
def test_two_crawls_in_one_file_know_nothing_of_each_other(folder: Folder, pages: Site) -> None:
    assert folder.shoal("crawl", "links.py").code == 0
    assert folder.shoal("crawl", "links.py", "--name", "other", "--max-pages", "4").code == 0
    assert len(pages.paths) == 31 + 4
    assert len(folder.export("links")) == 31
    assert len(folder.export("other")) == 4
    assert folder.shoal("crawl", "links.py", "--name", "other", "--fresh").code == 0
    assert len(folder.export("links")) == 31
    assert [row["crawl"] for row in folder.shoal("status", "--json").json()] == ["other", "links"]


def test_frontier_and_results_may_be_different_files(folder: Folder, small: Site) -> None:
    stores = ("--frontier", "sqlite:///queue.db", "--results", "sqlite:///items.db")
    ended = folder.shoal("crawl", "small.py", *stores)
    assert ended.code == 3
    assert "--results sqlite:///items.db" in ended.out
    exported = folder.shoal("export", "small", *stores).out
    assert keys([json.loads(line) for line in exported.splitlines()], "Thing") == THINGS
    assert not (folder.path / "shoal.db").exists()


# Limits


@pytest.mark.parametrize("workers", first_then_rare("3", "1"))
def test_max_pages_is_exact_and_a_higher_one_goes_on(
    folder: Folder, pages: Site, workers: str
) -> None:
    command = ("crawl", "links.py", "--workers", workers)
    first = folder.shoal(*command, "--max-pages", "7")
    assert first.code == 0
    assert "to continue, raise --max-pages" in first.out
    assert len(pages.paths) == len(folder.export("links")) == 7
    assert folder.shoal(*command, "--max-pages", "7").code == 0
    assert len(pages.paths) == 7
    assert folder.shoal(*command, "--max-pages", "12").code == 0
    assert len(pages.paths) == len(folder.export("links")) == 12
    assert folder.shoal(*command).code == 0
    assert sorted(pages.paths) == sorted(paths_of(30))


@pytest.mark.parametrize(("depth", "things"), [("0", ["/"]), ("1", ["/", "/a", "/new"])])
def test_max_depth(folder: Folder, small: Site, depth: str, things: list[str]) -> None:
    folder.shoal("crawl", "small.py", "--max-depth", depth)
    assert keys(folder.export("small"), "Thing") == things


def test_a_page_leads_to_no_more_pages_than_it_may(folder: Folder, pages: Site) -> None:
    ended = folder.shoal("crawl", "links.py", "--max-links-per-page", "10")
    assert ended.code == 0
    assert len(pages.paths) == 11
    assert f"{pages.url}: 20 links are not followed (max_links_per_page)" in ended.err
    assert folder.stats("links").filtered == 20
    told = folder.shoal("explain", "links", pages.url)
    assert "20 links of it are not followed (max_links_per_page)" in told.out
    told = folder.shoal("explain", "links", f"{pages.url}30")
    assert "never added: no handler or rule followed a link to it" in told.out
    assert "(unless a page has more than 10 links)" in told.out


# Targets


def test_plain_urls_follow_links_on_their_host(folder: Folder, small: Site) -> None:
    ended = folder.shoal("crawl", small.url, "--rate", "none", "--allow-private", "--name", "plain")
    assert ended.code == 0, ended
    pages = {item["_url"]: item for item in folder.export("plain")}
    assert set(pages) == {
        small.url + path for path in ("", "a?utm_source=front", "b", "c", "new", "broken")
    }
    front, end = pages[small.url], pages[f"{small.url}c"]
    assert (front["status"], front["links"], front["_kind"]) == (200, 7, "WebPage")
    assert (end["title"], end["links"]) == ("The end", 0)


def test_a_private_address_among_the_seeds_is_refused_at_the_start(
    folder: Folder, small: Site
) -> None:
    for url in (small.url, small.url.replace("127.0.0.1", "localhost")):
        ended = folder.shoal("crawl", "https://a.example/", url, "--name", "plain")
        assert (ended.code, ended.err) == (2, f"shoal: {url} is a private address: {ALLOWED}\n")
    assert not (folder.path / "shoal.db").exists()
    assert small.paths == []


def test_a_private_address_that_start_yields_is_not_fetched(folder: Folder, small: Site) -> None:
    folder.write("late.py", LATE.format(small.url))
    ended = folder.shoal("crawl", "late.py", "--max-retries", "0", "--name", "plain")
    assert ended.code == 3
    (dead,) = folder.shoal("dead", "list", "plain", "--json").json()
    assert "private address" in dead["reason"]
    assert small.paths == []
    assert small.robots_hits == []


def test_a_spider_that_starts_nowhere_says_so(folder: Folder) -> None:
    folder.write(
        "fed.py", "from shoal import Spider\nclass Fed(Spider):\n  def parse(self, p): ..."
    )
    ended = folder.shoal("crawl", "fed.py")
    assert (ended.code, "no URL to start with: shoal seed fed URL" in ended.out) == (0, True)


@pytest.mark.usefixtures("small")
def test_a_finished_crawl_says_that_there_is_nothing_new(folder: Folder) -> None:
    first = folder.shoal("crawl", "small.py")
    assert "nothing new" not in first.out
    again = folder.shoal("crawl", "small.py")
    assert re.search(NOTHING_NEW, again.out, re.MULTILINE), again
    assert folder.shoal("crawl", "small.py", "--json").json()["finished_before"]
    fresh = folder.shoal("crawl", "small.py", "--fresh", "--json").json()
    assert fresh["finished_before"] is None


def test_a_module_as_target(folder: Folder, small: Site) -> None:
    assert folder.shoal("crawl", "small:Small").code == 3
    assert keys(folder.export("small"), "Thing") == THINGS


# Settings


@pytest.mark.rare
def test_later_sources_of_settings_win(folder: Folder, pages: Site) -> None:
    """Defaults < shoal.toml < the spider < SHOAL_* < options."""

    def retries(name: str, *options: str, **env: str) -> int:
        folder.shoal("crawl", "links.py", "--max-depth", "0", "--name", name, *options, env=env)
        return folder.stats(name).rules.max_retries

    assert retries("default") == 3
    folder.write("shoal.toml", "max_retries = 5\n")
    assert retries("toml") == 5
    put_links_spider(folder, [pages], rate="none", max_retries=6)
    assert retries("spider") == 6
    assert retries("variable", SHOAL_MAX_RETRIES="7") == 7
    assert retries("option", "--max-retries", "8", SHOAL_MAX_RETRIES="7") == 8


def test_logs_as_json_are_one_object_a_line(folder: Folder, small: Site) -> None:
    text = (folder.path / "small.py").read_text()
    folder.write("small.py", text.replace("urls = [", 'urls = ["http://no.example/", '))
    ended = folder.shoal("crawl", "small.py", "--json-logs")
    lines = [json.loads(line) for line in ended.err.splitlines()]
    (line,) = [line for line in lines if "event.name" not in line]
    assert (line["level"], line["message"]) == (
        "warning",
        "seed skipped: host not allowed: http://no.example/",
    )
    assert {"timestamp", "process.pid", "host.name"} <= set(line)
    assert line["service.name"] == "shoal"


@pytest.mark.rare
def test_tasks_that_fail_are_events_of_the_json_log(folder: Folder, small: Site) -> None:
    folder.write(
        "broken.py",
        f"""
from shoal import Spider

class Broken(Spider):
    start_urls = ["{small.url.replace("://", "://me:hunter2@")}?api_key=hunter3"]
    allow_private = True

    def parse(self, page):
        raise ValueError("it cannot be read")
""",
    )
    ended = folder.shoal("crawl", "broken.py", "--json-logs", "--max-retries", "0")
    assert ended.code == 3, ended
    assert "hunter" not in ended.err
    lines = [json.loads(line) for line in ended.err.splitlines()]
    (dead,) = [line for line in lines if line.get("event.name") == "task.dead"]
    assert (dead["level"], dead["shoal.crawl"], dead["error.type"]) == (
        "warning",
        "broken",
        "handler",
    )
    assert dead["http.response.status_code"] == 200
    assert dead["url.full"].endswith("?api_key=***")
    assert "it cannot be read" in dead["exception.stacktrace"]
    assert dead["duration_s"] >= 0
    assert dead["shoal.worker"]
    assert dead["server.address"] == "127.0.0.1"


TALKATIVE = """
import logging, warnings
from shoal import Spider

log = logging.getLogger(__name__)
logging.getLogger("asyncio").info("too much")
logging.basicConfig(format="bare %(message)s")

class Talkative(Spider):
    start_urls = ["{url}"]
    allow_private = True

    def start(self):
        self.logger.info("starts at %s", self.start_urls[0])
        return self.start_urls

    def parse(self, page):
        self.logger.info("reads %d", page.status)
        log.warning("has seen worse")
        logging.info("says it to all")
        warnings.warn("it gets old")
        self.logger.debug("of no interest")
"""


def test_what_a_spider_logs_is_logged(folder: Folder, small: Site) -> None:
    folder.write("talkative.py", TALKATIVE.format(url=small.url))
    ended = folder.shoal("crawl", "talkative.py", "--json-logs")
    assert ended.code == 0, ended
    lines = [json.loads(line) for line in ended.err.splitlines()]
    said = [(line["level"], line["logger"], line["message"]) for line in lines]
    assert ("info", "talkative", f"starts at {small.url}") in said
    assert ("info", "talkative", "reads 200") in said
    assert ("info", "root", "says it to all") in said
    assert {(level, text) for level, _, text in said} >= {("warning", "has seen worse")}
    assert [name for _, name, text in said if "it gets old" in text] == ["py.warnings"]
    assert len(said) == 5, "each once, and nothing else"


def test_what_a_spider_logs_looks_like_all_other_lines(folder: Folder, small: Site) -> None:
    folder.write("talkative.py", TALKATIVE.format(url=small.url))
    ended = folder.shoal("crawl", "talkative.py")
    assert re.search(r"^\d\d:\d\d:\d\d INFO    reads 200$", ended.err, re.MULTILINE), ended
    assert re.search(r"^\d\d:\d\d:\d\d WARNING has seen worse$", ended.err, re.MULTILINE)
    assert "bare" not in ended.err


def test_the_summary_as_json(folder: Folder, small: Site) -> None:
    ended = folder.shoal("crawl", "small.py", "--json")
    summary = ended.json()
    assert summary["exit_code"] == ended.code == 3
    assert summary["items_by_kind"] == {"Thing": 5, "item": 1}
    assert (summary["state"], summary["dead"]) == ("finished", 1)


# From Python


@pytest.mark.parametrize("workers", first_then_rare("2", "1"))
def test_crawl_from_a_script(folder: Folder, pages: Site, workers: str) -> None:
    """One worker runs in the script's own process; two load the script anew."""
    folder.write("script.py", SCRIPT.format(url=pages.url))
    command = [sys.executable, "script.py", workers]
    done = subprocess.run(
        command, cwd=folder.path, env=environment(), capture_output=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, True, 31, {"item": 31}]
    assert len(pages.paths) == len(folder.export("script")) == 31
