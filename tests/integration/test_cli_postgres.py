"""Commands on a PostgreSQL: what they print, and what they say when it cannot be used."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.links import numbered_pages, put_spider
from support.postgres_servers import QUICK, PostgresServer
from support.processes import Folder
from support.server_process import free_port
from support.sites import Site, serving

SECRET = "s3cret"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(**QUICK) as server:
        yield server


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(numbered_pages(3))) as site:
        yield site


@pytest.fixture
def folder(tmp_path: Path, server: PostgresServer, site: Site) -> Folder:
    folder = Folder(tmp_path, {"SHOAL_RESULTS": server.new_database("cli")})
    put_spider(folder, [site], rate="none")
    return folder


def wrong(folder: Folder, address: str, *command: str) -> str:
    """The one line with which a command refuses an address."""
    ended = folder.shoal(*(command or ("crawl", "links.py")), "--results", address)
    assert ended.code == 2, ended
    assert ended.err.count("\n") == 1
    assert SECRET not in ended.err
    return ended.err


def test_a_crawl_and_what_can_be_asked_of_it(folder: Folder, site: Site) -> None:
    ended = folder.shoal("crawl", "links.py")
    assert ended.code == 0, ended
    assert "4 item" in ended.out
    assert "shoal export links -o items.jsonl --results postgresql://" in ended.out
    lines = folder.shoal("export", "links").out.splitlines()
    assert len(lines) == 4
    explained = folder.shoal("explain", "links", f"{site.url}2").out
    assert "HTTP 200" in explained
    assert f'"url":"{site.url}2"' in explained
    table = folder.shoal("export", "links", "-o", "items.csv")
    assert table.code == 0
    assert (folder.path / "items.csv").read_text().startswith("url,text,_kind,_key,_url,")


def test_what_the_database_names_is_not_run(folder: Folder) -> None:
    assert folder.shoal("crawl", "links.py", "--archive", "file:raw").code == 0
    ended = folder.shoal("reparse", "links")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "name the spider with --spider (the last run of 'links' had 'links.py')" in ended.err
    assert folder.shoal("reparse", "links", "--spider", "links.py").code == 0


@pytest.mark.rare
def test_a_crawl_started_over(folder: Folder) -> None:
    for fresh in ([], ["--fresh"]):
        assert folder.shoal("crawl", "links.py", *fresh).code == 0
    assert len(folder.export("links")) == 4


def test_a_wrong_address_is_one_line(folder: Folder, server: PostgresServer) -> None:
    nobody = f"postgresql://me:{SECRET}@127.0.0.1:{free_port()}/db"
    assert "cannot be reached" in wrong(folder, nobody)
    assert "cannot be reached" in wrong(folder, nobody, "export", "links")
    assert "cannot be reached" in wrong(folder, nobody, "results", "prune", "--older-than", "1y")
    assert 'database "nowhere" does not exist' in wrong(folder, server.url_of("nowhere"))
    assert "not a PostgreSQL address" in wrong(folder, f"postgresql://me:{SECRET}@host:x/db")


def test_a_wrong_password_is_one_line(folder: Folder) -> None:
    with PostgresServer(password="right", **QUICK) as server:
        address = server.url.replace("right", SECRET)
        assert "password authentication failed" in wrong(folder, address)


def test_missing_rights_are_one_line(folder: Folder, server: PostgresServer) -> None:
    server.execute("DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    said = wrong(folder, server.url_of("cli", "guest"))
    assert "permission denied" in said
    assert "shoal results schema" in said


def test_a_newer_schema_is_one_line(folder: Folder, server: PostgresServer) -> None:
    assert folder.shoal("crawl", "links.py").code == 0
    server.execute("INSERT INTO shoal_versions VALUES (99)", database="cli")
    assert "upgrade shoal" in wrong(folder, server.url_of("cli"))


def test_the_schema_is_what_psql_takes(folder: Folder, server: PostgresServer) -> None:
    printed = folder.shoal("results", "schema")
    assert (printed.code, printed.err) == (0, "")
    subprocess.run(
        ["psql", "-q", "-v", "ON_ERROR_STOP=1", server.url_of("cli")],
        input=printed.out.encode(),
        check=True,
        capture_output=True,
    )
    assert folder.shoal("crawl", "links.py").code == 0
    assert (
        folder.shoal("results", "schema", "--from-version", "5").out.count("CREATE TABLE files")
        == 1
    )
    assert folder.shoal("results", "schema", "--from-version", "99").code == 2


@pytest.mark.parametrize("age", ["6 minutes", "0m", "m", "90s", "99999y", "-1m"])
def test_what_is_no_age_is_refused(folder: Folder, age: str) -> None:
    ended = folder.shoal("results", "prune", f"--older-than={age}")
    assert ended.code == 2, ended
    assert "not an age" in ended.err


def test_pruning(folder: Folder, server: PostgresServer) -> None:
    assert folder.shoal("crawl", "links.py").code == 0
    for table, time in (("pages", "started_at"), ("observations", "scraped_at")):
        server.execute(f"UPDATE {table} SET {time} = '2001-02-03'", database="cli")
    would = folder.shoal("results", "prune", "--older-than", "6m", "--dry-run")
    assert "4 readings and 4 page log entries would be removed" in would.out
    pruned = folder.shoal("results", "prune", "--older-than", "6m", "--json").json()
    assert (pruned["observations"], pruned["pages"], pruned["tables"]) == (4, 4, [])
    now = datetime.now(UTC)
    assert pruned["before"].endswith("-01T00:00:00+00:00")
    assert pruned["before"] < now.isoformat()
    assert len(folder.export("links")) == 4


def test_pruning_a_file(tmp_path: Path, site: Site) -> None:
    folder = Folder(tmp_path)
    put_spider(folder, [site], rate="none")
    assert folder.shoal("crawl", "links.py").code == 0
    assert "0 readings and 0 page log" in folder.shoal("results", "prune", "--older-than=1y").out
    detached = folder.shoal("results", "prune", "--older-than", "1y", "--detach")
    assert detached.code == 2
    assert "no months to detach" in detached.err
