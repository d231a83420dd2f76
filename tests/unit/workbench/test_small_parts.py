"""Tracebacks without our own frames; forms of what was tried; names of first spiders."""

from __future__ import annotations

from pathlib import Path

import pytest

import shoal
from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.workbench.first_spider import write_first_spider
from shoal.workbench.links import NEW, Link
from shoal.workbench.tracebacks import users_lines
from shoal.workbench.tried_forms import MAX_ALIKE, MAX_LINKS, cut_line, link_rows
from shoal.workbench.wanted_page import meta_from
from shoal.workbench.watching import watch

OWN = Path(shoal.__file__).parent


def test_a_traceback_has_the_users_lines() -> None:
    traceback = (
        "Traceback (most recent call last):\n"
        f'  File "{OWN}/spider/harvest.py", line 58, in _read\n'
        "    found = await harvesting\n"
        "            ^^^^^^^^^^^^^^^^\n"
        '  File "/home/shop.py", line 3, in parse\n'
        "    1 / 0\n"
        f'  File "{OWN}/spider/page.py", line 58, in css\n'
        "    raise\n"
        "ZeroDivisionError: a\n"
        "b\n"
    )
    assert users_lines(traceback) == (
        "Traceback (most recent call last):\n"
        '  File "/home/shop.py", line 3, in parse\n'
        "    1 / 0\n"
        "ZeroDivisionError: a\n"
        "b"
    )
    assert users_lines("") == ""


def test_of_many_tasks_a_few_of_each_kind_are_shown() -> None:
    links = [Link(Task(url=f"https://x.example/{n}"), NEW) for n in range(100)]
    links[:0] = [Link(Task(url="https://x.example/"), "twice on this page")] * 100
    rows = link_rows(links)
    assert [row[0] for row in rows] == [NEW] * MAX_LINKS + ["twice on this page"] * MAX_ALIKE
    assert cut_line(len(rows), len(links), "tasks") == "  and 145 more tasks (--json shows all)"
    assert cut_line(2, 2, "tasks") == ""


def test_notes_are_json_or_text() -> None:
    assert meta_from(["a=1", "b=x=y", 'c={"d": [1]}', "e="]) == {
        "a": 1,
        "b": "x=y",
        "c": {"d": [1]},
        "e": "",
    }
    with pytest.raises(ConfigError, match="write key=value"):
        meta_from(["=1"])


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("shop.py", "Shop"),
        ("my-shop_2.py", "MyShop2"),
        ("spider.py", "SpiderSite"),
        ("2.py", "Site2"),
    ],
)
def test_what_a_first_spider_is_called(file: str, name: str, tmp_path: Path) -> None:
    write_first_spider(tmp_path / "new" / file, "https://shop.example/?a={b}\"'", None)
    text = (tmp_path / "new" / file).read_text()
    assert f"class {name}(Spider):" in text
    compile(text, file, "exec")


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [("http://127.0.0.1:8000/", True), ("http://localhost/", True), ("https://a.example/", False)],
)
def test_a_first_spider_may_go_where_it_begins(url: str, is_allowed: bool, tmp_path: Path) -> None:
    write_first_spider(tmp_path / "shop.py", url, None)
    assert ("allow_private = True" in (tmp_path / "shop.py").read_text()) is is_allowed


def test_a_change_is_noticed(tmp_path: Path) -> None:
    file, acts = tmp_path / "shop.py", []
    file.write_text("")

    def act() -> None:
        acts.append(file.read_text())
        if len(acts) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path, act, sleep=lambda _: (tmp_path / "other.py").touch())
    assert len(acts) == 2
