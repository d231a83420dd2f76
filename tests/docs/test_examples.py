"""Every file in examples/ runs, and finds what it should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from aiohttp import web

from shoal.demo.shop import Shop
from support.markdown import ROOT
from support.processes import Folder, environment
from support.session_site import SessionSite
from support.sites import Site, serving
from support.until import LIMIT_S

EXAMPLES = ROOT / "examples"
FAST = {"SHOAL_ALLOW_PRIVATE": "true", "SHOAL_RATE": "1000/s"}

BOOKS = {
    "/books?page=1": {
        "books": [
            {"isbn": "1", "title": "One", "authors": ["A", "B"]},
            {"isbn": "2", "title": "Two", "authors": []},
        ],
        "next": "/books?page=2",
    },
    "/books?page=2": {
        "books": [
            {"isbn": "3", "title": "Three", "authors": ["A"]},
            {"isbn": "4", "title": None, "authors": ["A"]},
        ],
    },
}


async def answer_as_api(path: str) -> web.Response:
    return web.json_response(BOOKS[path]) if path in BOOKS else web.Response(status=404)


def test_each_example_is_tested_here() -> None:
    tested = {"shop.py", "api_json.py", "from_python.py", "members.py"}

    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_the_shop_is_read(tmp_path: Path, open_shop: Shop) -> None:
    folder = Folder(tmp_path)
    ended = folder.shoal("crawl", EXAMPLES / "shop.py", env=FAST | {"SHOP_URL": open_shop.urls[0]})

    assert ended.code == 3, ended.err
    assert {
        item["sku"]: {"title": item["title"], "price": item["price"]}
        for item in folder.export("shop")
    } == open_shop.expected_items()


def test_the_api_is_read_and_odd_records_are_rejected(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with serving(Site(answer_as_api)) as api:
        env = FAST | {"API_URL": f"{api.url}books?page=1"}
        ended = folder.shoal("crawl", EXAMPLES / "api_json.py", "--json", env=env)

    assert ended.code == 0, ended.err
    assert ended.json()["rejected"] == 1
    books = folder.export("books")
    assert [(book["isbn"], book["page"]) for book in books] == [("1", 1), ("2", 1), ("3", 2)]
    assert books[0]["authors"] == ["A", "B"]


def test_members_log_in_and_wrong_passwords_are_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("accounts.csv", "user,password\nalice,wonderland\nbob,wrong\n")
    accounts = {"alice": "wonderland", "bob": "builder"}
    with serving(SessionSite(accounts, takes_s=0.02)) as site:
        env = FAST | {"MEMBERS_URL": site.url.removesuffix("/")}
        command = ("crawl", EXAMPLES / "members.py", "--accounts", "accounts.csv")
        ended = folder.shoal(*command, env=env)
    assert ended.code == 0, ended.err
    found = {(item["title"], item["seen_by"]) for item in folder.export("members")}
    assert found == {(f"Product {number}", "alice") for number in site.numbers}
    assert site.door.logins == ["alice"]
    if site.door.refused:  # Alice may have been quick enough for all of it.
        assert "Wrong password." in ended.err


def run_script(folder: Path, *urls: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "from_python.py", *urls],
        cwd=folder,
        env=environment(FAST),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def test_the_script_crawls_and_prints_the_summary(tmp_path: Path, open_shop: Shop) -> None:
    done = run_script(tmp_path, open_shop.urls[0])

    assert (done.returncode, done.stderr) == (0, "")
    state, pages, items = done.stdout.splitlines()
    assert state.startswith("headings is finished after ")
    assert pages == "2 pages done, 0 dead, 0 dropped"
    assert items == "2 items: shoal export headings"


def test_the_script_says_what_is_wrong(tmp_path: Path) -> None:
    done = run_script(tmp_path, "nonsense")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cannot crawl: not a URL")
