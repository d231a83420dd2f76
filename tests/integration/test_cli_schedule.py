"""Schedules as a user sees them: `shoal serve`, `shoal worker`, `shoal schedule`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.coordinators import NEVER, Office
from support.links import GatedSite, numbered_pages, put_spider
from support.processes import Folder
from support.sitemaps import SiteWithSitemaps, urlset
from support.sites import Site, serving
from support.until import until_now

PAGES = 3


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path, {"SHOAL_RATE": "none"})


@pytest.fixture
def office(folder: Folder) -> Office:
    return Office(folder)


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(PAGES))) as site:
        yield site


def test_nothing_begins_without_a_coordinator(folder: Folder, office: Office) -> None:
    office.schedule("0 3 * * *", 'timezone = "Europe/Berlin"')
    listed = folder.shoal("schedule", "list")
    assert "03:00:00+0" in listed.out
    assert "no coordinator is running" in listed.out
    ended = folder.shoal("schedule", "run", "shop")
    assert (ended.code, "waiting, no coordinator is running" in ended.out) == (0, True)
    assert folder.shoal("schedule", "pause", "shop").out == "shop: paused\n"
    (planned,) = folder.shoal("schedule", "list", "--json").json()["schedules"]
    assert (planned["is_paused"], planned["next_at"]) == (True, None)
    assert folder.shoal("schedule", "resume", "shop").out == "shop: resumed\n"
    assert folder.shoal("schedule", "history").out == "no runs yet\n"


def test_no_secret_is_shown_or_kept(folder: Folder, office: Office) -> None:
    folder.write("links.py", "raise ValueError('postgresql://me@db-host')")
    secret = "postgresql://me:hunter2@db-host/shop"
    more = f'settings = {{ results = "{secret}", archive = "s3://key:hunter2@bucket" }}'
    office.schedule(NEVER, more)
    path = folder.path / "shoal.toml"
    path.write_text(path.read_text() + office_with("site", "https://me:hunter2@shop.example/"))
    with folder.running("serve") as coordinator:
        office.leads(coordinator)
        office.begin()
        until_now("the run's end", office.past)
        shown = [coordinator.err, Path(f"/proc/{coordinator.pid}/cmdline").read_text()]
        for words in (("list",), ("list", "--json"), ("history",), ("history", "--json")):
            ended = folder.shoal("schedule", *words)
            assert ended.code == 0, ended
            shown += [ended.out, ended.err]
    assert "hunter2" not in "".join(shown)
    assert b"hunter2" not in b"".join(file.read_bytes() for file in folder.path.glob("shoal.db*"))


@pytest.mark.parametrize(
    ("words", "toml", "says"),
    [
        (("serve",), '[[schedule]]\nname = "shop"', "schedule shop: "),
        (("serve",), "[[schedule", "shoal.toml: "),
        (("serve", "--frontier", "redis://127.0.0.1:1"), "", "cannot be reached"),
        (("schedule", "run", "shop"), "", "no schedule 'shop' in shoal.toml here"),
        (("schedule", "pause", "shop"), "", "no schedule 'shop' in shoal.toml here"),
        (("schedule", "history", "shop"), "", "no schedule 'shop' in shoal.toml here"),
        (("worker", "--name", "shop"), "", "--name needs a TARGET"),
        (("worker", "--until-finished"), "", "--until-finished needs a TARGET"),
    ],
)
def test_mistakes_are_one_line(
    folder: Folder, words: tuple[str, ...], toml: str, says: str
) -> None:
    folder.write("shoal.toml", toml)
    ended = folder.shoal(*words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended
    assert says in ended.err


def test_runs_from_beginning_to_end(folder: Folder, office: Office, site: Site) -> None:
    """Good ones and bad ones, seeds from a file, and a file that is changed while it is served."""
    put_spider(folder, [site])
    folder.write("more.txt", f"{site.url}1\nnonsense\n")
    office.schedule(NEVER, 'seeds = "more.txt"\nsettings = { max_retries = 0 }')
    path = folder.path / "shoal.toml"
    path.write_text(path.read_text() + office_with("bad", "nothing.py"))
    with folder.running("serve") as coordinator, folder.running("worker") as worker:
        office.leads(coordinator)
        warning = "schedule bad: cannot run as it is: no such file: nothing.py"
        until_now("the warning", lambda: warning in coordinator.err)
        crawl = office.begin()
        folder.shoal("schedule", "run", "bad")
        (run,) = until_now("the run's end", office.past)
        assert (run.crawl, run.state) == (crawl, "finished")
        assert (run.total, run.done, run.failed) == (PAGES + 1, PAGES + 1, 0)
        assert folder.stats(crawl).rules.max_retries == 0
        until_now("the other", lambda: "cannot begin: no such file: nothing.py" in coordinator.err)
        assert "seed 2 skipped" in coordinator.err
        (failed,) = folder.shoal("schedule", "history", "bad", "--json").json()
        assert (failed["state"], failed["reason"]) == ("failed", "no such file: nothing.py")

        folder.write("shoal.toml", "[[schedule")
        until_now("news", lambda: "the schedules stay as they were" in coordinator.err)
        office.schedule("* * * * * *", 'overlap = "skip"')
        until_now("a run of the changed schedule", lambda: len(office.past()) >= 2)
        for process in (coordinator, worker):
            process.send(signal.SIGTERM)
            assert process.wait().code == 0
        assert "Traceback" not in coordinator.err + worker.err
    assert office.leader() is None


def office_with(name: str, target: str) -> str:
    return f'[[schedule]]\nname = "{name}"\ntarget = "{target}"\ncron = "{NEVER}"\n'


@pytest.mark.rare
def test_sitemaps_of_a_schedule_are_read_by_its_runs(folder: Folder, office: Office) -> None:
    with serving(SiteWithSitemaps()) as site:
        site.bodies = {"/": b"", "/sitemap.xml": urlset(*site.pages(1, 2))}
        put_spider(folder, [site])
        office.schedule(NEVER, f'sitemaps = ["{site.url}"]')
        with folder.running("serve") as coordinator, folder.running("worker"):
            office.leads(coordinator)
            crawl = office.begin()
            (run,) = until_now("the run's end", office.past)
        assert (run.state, run.failed) == ("finished", 0)
        found = sorted(item["url"] for item in folder.export(crawl))
        assert found == [site.url, *site.pages(1, 2)]


@pytest.mark.rare
def test_a_run_marks_what_is_gone_in_the_results_that_its_spider_names(
    folder: Folder, office: Office
) -> None:
    with serving(SiteWithSitemaps()) as site:
        one, two = site.pages(1, 2)
        site.bodies = {"/": f'<a href="{one}"></a><a href="{two}"></a>'.encode()}
        put_spider(folder, [site], results="sqlite:///elsewhere.db")
        office.schedule()
        with folder.running("serve") as coordinator, folder.running("worker"):
            office.leads(coordinator)
            office.begin()
            (first,) = until_now("the first run's end", office.past)
            site.bodies = {"/": f'<a href="{one}"></a>'.encode()}
            office.begin()
            until_now("the second run's end", lambda: len(office.past()) == 2)
            second = office.past()[0]
    assert (first.gone, second.previous) == (0, first.crawl)
    assert (second.items, second.gone) == (2, 2)  # The second page, and what the front page was.


def test_a_run_that_will_be_late_is_told_of(folder: Folder, office: Office) -> None:
    with serving(GatedSite(PAGES)) as site:
        put_spider(folder, [site])
        office.schedule(NEVER, 'window = "1s"')
        with folder.running("serve") as coordinator, folder.running("worker"):
            office.leads(coordinator)
            crawl = office.begin()
            until_now("the news", lambda: f"{crawl} is late: its window ended" in coordinator.err)
            assert f"{crawl} is late" in folder.shoal("status", crawl).out
            assert "late: its window" in folder.shoal("schedule", "list").out
            assert "late: its window" in folder.shoal("status", crawl, "--json").json()["late"]
            site.allowed = 100
            (run,) = until_now("the run's end", office.past)
            assert run.is_late
            assert "finished, late" in folder.shoal("schedule", "history").out
