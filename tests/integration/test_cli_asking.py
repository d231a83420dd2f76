"""What the command line says of a crawl that is over: every fate a page can have is in it."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import pytest

from support.processes import SHOAL, Ended, Folder, environment
from support.sites import Site, serving
from support.small_site import THINGS, put_spider, small_site


class Scene(NamedTuple):
    folder: Folder
    site: Site
    crawled: Ended

    def shoal(self, *args: str | Path) -> Ended:
        ended = self.folder.shoal(*args)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended

    def explain(self, path: str) -> Any:
        return self.shoal("explain", "small", self.site.url + path, "--json").json()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = Folder(tmp_path_factory.mktemp("asking"))
    with serving(small_site()) as site:
        put_spider(folder, site)
        yield Scene(folder, site, folder.shoal("crawl", "small.py"))


def test_crawl_prints_a_summary_and_what_to_do_next(scene: Scene) -> None:
    assert scene.crawled.code == 3, scene.crawled
    assert "6 done, 1 dead, 2 dropped" in scene.crawled.out
    assert "5 Thing, 1 item" in scene.crawled.out
    assert "shoal export small -o items.jsonl" in scene.crawled.out
    assert "1 task died: shoal dead list small" in scene.crawled.out
    assert sorted(scene.site.paths) == sorted(
        ["/", "/a?utm_source=front", "/b", "/c", "/gone", "/broken", "/moved", "/new"]
    )


def test_status_shows_one_crawl_and_all(scene: Scene) -> None:
    one = scene.shoal("status", "small").out
    assert "finished" in one
    assert "6 done, 1 dead, 2 dropped" in one
    assert "1 handler" in one
    assert f"127.0.0.1:{scene.site.port}" in one
    assert "small" in scene.shoal("status").out


def test_status_as_json_adds_up(scene: Scene) -> None:
    stats = scene.shoal("status", "small", "--json").json()
    assert stats["state"] == "finished"
    ended = {name: stats[name] for name in ("done", "dead", "dropped")}
    assert ended == {"done": 6, "dead": 1, "dropped": 2}
    assert stats["added"] == sum(ended.values())
    assert stats["remaining"] == stats["waiting"] == stats["delayed"] == stats["leased"] == 0
    assert (stats["items"], stats["eta_s"]) == (6, 0)
    assert stats["failures_by_kind"] == {"handler": 1}
    assert stats["hosts"][0]["failures_by_kind"] == {"handler": 1}
    assert [host["host"] for host in stats["hosts"]] == [f"127.0.0.1:{scene.site.port}"]
    (listed,) = scene.shoal("status", "--json").json()
    assert listed["crawl"] == "small"


def test_explain_a_page_that_is_done(scene: Scene) -> None:
    told = scene.explain("b")
    assert told["verdict"] == "done"
    assert told["found_on"] == [f"{scene.site.url}a?utm_source=front", scene.site.url]
    (attempt,) = told["tries"]
    assert (attempt["status"], attempt["verdict"], attempt["items"]) == (200, "done", 1)
    assert [item["data"]["path"] for item in told["items"]] == ["/b"]


def test_explain_knows_every_spelling(scene: Scene) -> None:
    assert scene.explain("x/../b?utm_source=elsewhere#part")["verdict"] == "done"


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("broken", "dead: ValueError: a broken page"),
        ("gone", "dropped: HTTP 404"),
        ("private", "dropped: robots.txt forbids it"),
        (
            "never",
            "never added: no handler or rule followed a link to it, and it was not a seed"
            " (unless a page has more than 20,000 links)",
        ),
    ],
)
def test_explain_a_page_that_gave_nothing(scene: Scene, path: str, verdict: str) -> None:
    told = scene.explain(path)
    assert told["verdict"] == verdict
    assert told["items"] == []


def test_explain_a_page_that_is_not_wanted(scene: Scene) -> None:
    told = scene.shoal("explain", "small", "http://no.example/", "--json").json()
    assert told["verdict"] == "never added: host not allowed: http://no.example/"
    assert (told["record"], told["tries"]) == (None, [])


def test_explain_a_redirect(scene: Scene) -> None:
    assert scene.explain("moved")["verdict"] == f"done: HTTP 301 to {scene.site.url}new"
    assert scene.explain("new")["record"]["task"]["redirects"] == [f"{scene.site.url}moved"]
    assert f"{scene.site.url}moved" in scene.shoal("explain", "small", f"{scene.site.url}new").out


def test_explain_for_people(scene: Scene) -> None:
    done = scene.shoal("explain", "small", f"{scene.site.url}a").out
    assert "HTTP 200" in done
    assert "item Thing" in done
    broken = scene.shoal("explain", "small", f"{scene.site.url}broken").out
    assert 'raise ValueError("a broken page")' in broken
    assert "it is a seed" in scene.shoal("explain", "small", scene.site.url).out


def test_dead_letters_of_a_kind_and_host(scene: Scene) -> None:
    own, dry_run = f"127.0.0.1:{scene.site.port}", ("--dry-run", "--json")
    for options, count in (
        (["--kind", "handler"], 1),
        (["--kind", "timeout"], 0),
        (["--host", own], 1),
        (["--host", "OTHER.example"], 0),
        (["--host", own, "--kind", "handler"], 1),
    ):
        listed = scene.shoal("dead", "list", "small", "--json", *options).json()
        assert [(dead["kind"], dead["host"]) for dead in listed] == [("handler", own)] * count
        for command in ("retry", "purge"):
            told = scene.shoal("dead", command, "small", *options, *dry_run).json()
            assert told == {"crawl": "small", "tasks": count, "dry_run": True}
    assert scene.shoal("dead", "list", "small", "--kind", "dns").out == "no such dead tasks\n"
    said = scene.shoal("dead", "purge", "small", "--kind", "handler", "--dry-run").out
    assert said == "would be dropped: 1 task\n"


@pytest.mark.parametrize(
    ("option", "named"), [("--kind=quantum", "quantum"), ("--host=a b", "a b"), ("--host=:", ":")]
)
def test_a_filter_that_makes_no_sense(scene: Scene, option: str, named: str) -> None:
    ended = scene.folder.shoal("dead", "retry", "small", option)
    assert ended.code == 2
    assert named in ended.err


def test_dead_letters(scene: Scene) -> None:
    url = f"{scene.site.url}broken"
    table = scene.shoal("dead", "list", "small").out
    assert url in table
    assert "ValueError: a broken page" in table
    (listed,) = scene.shoal("dead", "list", "small", "--json").json()
    assert (listed["url"], listed["reason"]) == (url, "ValueError: a broken page")
    shown = scene.shoal("dead", "show", "small", url, "--json").json()
    assert 'raise ValueError("a broken page")' in shown["traceback"]
    assert shown["handler"] == "parse"
    assert shown["traceback"] in scene.shoal("dead", "show", "small", url).out


def test_export_to_jsonl(scene: Scene) -> None:
    file = scene.folder.path / "items.jsonl"
    ended = scene.folder.shoal("export", "small", "-o", file)
    assert (ended.code, ended.out) == (0, "")
    assert "6 items in " in ended.err
    items = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert sorted(item["path"] for item in items if item["_kind"] == "Thing") == THINGS
    (thing,) = [item for item in items if item["_key"] == "/b"]
    assert list(thing) == ["path", "size", "_kind", "_key", "_url", "_scraped_at"]
    assert thing["_url"] == f"{scene.site.url}b"
    assert datetime.fromisoformat(thing["_scraped_at"]).year > 2000


def test_export_to_stdout(scene: Scene) -> None:
    lines = scene.shoal("export", "small").out.splitlines()
    assert len([json.loads(line) for line in lines]) == 6
    assert scene.shoal("export", "small", "--format", "csv").out.count("\r\n") == 7


def test_export_of_one_kind_to_csv(scene: Scene) -> None:
    file = scene.folder.path / "items.csv"
    scene.folder.shoal("export", "small", "--kind", "Thing", "-o", file)
    rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8"))))
    assert sorted(row["path"] for row in rows) == THINGS
    assert {row["_kind"] for row in rows} == {"Thing"}
    assert scene.shoal("export", "small", "--kind", "Nothing").out == ""


def test_export_ends_quietly_when_its_reader_has_seen_enough(scene: Scene) -> None:
    """As in `shoal export small | true`."""
    nobody_reads, out = os.pipe()
    os.close(nobody_reads)
    with os.fdopen(out, "wb") as closed:
        command: list[str | Path] = [SHOAL, "export", "small"]
        done = subprocess.run(
            command, cwd=scene.folder.path, env=environment(), stdout=closed, stderr=PIPE
        )
    assert (done.returncode, done.stderr) == (1, b"")
