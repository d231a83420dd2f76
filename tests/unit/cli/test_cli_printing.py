"""Whatever the command line prints goes through one place, and every command is tried with texts
that would give a terminal orders, or would be markup."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import shoal
from shoal.cli import display
from shoal.core.exits import ExitEntry, PoolRules
from shoal.core.records import RejectedItem, StoredItem
from shoal.core.task import Task
from shoal.fleet.summary import Summary
from shoal.frontier.admission import Admission
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import CrawlState, Entry, Pulse, Stats, Verdict
from shoal.results.port import Batch, PageLog, RunNote
from shoal.results.sqlite.store import SqliteResults
from support.cli import command_names
from support.frontiers import Client, open_rules, outcome
from support.processes import Ended, Folder

ORDERS = "".join(map(chr, (*range(32), *range(127, 160)))) + "\u202e\u2066\u2028"
EVIL = "[bold]x[/b][color]=red \x1b]0;mine\x07\x9b2J\r\n\u202e\u2028"
BRACKETS = "[bold]x[/b][color]=red"
SHOWN = r"[bold]x[/b][color]=red \x1b]0;mine\x07\x9b2J\r\n\u202e\u2028"
CRAWL = f"shop {EVIL}"
URL = f"https://shop.example/?{EVIL}"
ACCOUNT = f"shop#{EVIL}"
DAY = 86400.0

SOURCES = Path(shoal.__file__).parent
PRINTS = ("cli/display.py",)
"""Where text is turned into output."""


# One place


def test_nothing_else_prints() -> None:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name not in PRINTS:
            found += [f"{name}: {what}" for what in _printing(ast.parse(path.read_text("utf-8")))]
    assert found == [
        # The stack of a fault or of a stall, a cursor, the last word in Scrapy's output.
        *("cli/__init__.py: sys.stderr.write", "demo/shop.py: sys.stdout.write"),
        *("runtime/signals.py: sys.stderr.write", "runtime/watchdog.py: sys.stderr.write"),
        "scrapy/reading.py: sys.stderr.write",
    ]


def _printing(tree: ast.AST) -> Iterator[str]:
    """Ways around `display`: streams, echo, and what rich makes of a plain string."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if text in ("print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"):
            yield text
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich"):
            for alias in node.names:
                if alias.name in ("Console", "Text", "Panel", "print") and not _for_types(tree):
                    yield f"rich's {alias.name}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Table", "Group"):
            yield f"a {ast.unparse(node.func)}"


def _for_types(tree: ast.AST) -> bool:
    """Whether the names are never called."""
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return not called & {"Console", "Text", "Panel", "print"}


def test_no_console_knows_markup() -> None:
    tree = ast.parse((SOURCES / "cli/display.py").read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    consoles = [call for call in calls if ast.unparse(call.func) == "Console"]
    assert [
        {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg in ("markup", "emoji")}
        for call in consoles
    ] == [{"markup": "False", "emoji": "False"}]
    made = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "Text"]
    assert sorted(made) == ["Text('\\n')", "Text(plaintext.one_line(line), style=style)"]


# Every command


def must_be_harmless(ended: Ended) -> None:
    for text in (ended.out, ended.err):
        assert not set(text) & (set(ORDERS) - {"\n"})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


GROUPS = {"schedule", "dead", "rejected", "results", "scrapy", "proxies", "sessions", "alerts"}
TAKE_NOTHING = {"schedule list", "alerts list", "status", "results schema", "serve", "demo"}
"""These have no arguments that could be wrong: they are told so."""


@pytest.mark.parametrize("command", sorted({*command_names()} - GROUPS))
def test_wrong_arguments_are_told_in_one_line(folder: Folder, command: str) -> None:
    more = {
        "drain": ["--to", EVIL],
        "merge": ["--into", EVIL, "--by", f"{EVIL},"],
        "scrapy migrate": ["--from", EVIL],
        "results prune": ["--older-than", EVIL],
        "seed": [EVIL],
    }
    args = [EVIL, EVIL] if command in TAKE_NOTHING else [EVIL]
    ended = folder.call(*command.split(), *args, *more.get(command, []))
    assert ended.code in (1, 2), ended
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("shoal: ")
    must_be_harmless(ended)


@pytest.mark.parametrize("args", [["nosuch" + EVIL], ["status", f"--{EVIL}"]])
def test_so_are_wrong_commands_and_options(folder: Folder, args: list[str]) -> None:
    ended = folder.call(*args)
    assert ended.code == 2
    must_be_harmless(ended)


def test_an_unforeseen_error_quotes_no_orders(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(EVIL)

    monkeypatch.setattr(display, "say", fail)
    ended = folder.call("--version")
    assert ended.code == 1
    assert "Traceback (most recent call last):\n" in ended.err
    assert not set(ended.err) & (set(ORDERS) - {"\n"})


# What others have put into the stores


def _entry(url: str) -> Entry:
    return Admission(open_rules()).admit(Task(url=url, job_type=f"read {EVIL}"))


async def _fill(folder: Path) -> None:
    """A crawl of which everything that others may choose is hostile."""
    frontier, results = SqliteFrontier(folder / "shoal.db"), SqliteResults(folder / "shoal.db")
    await frontier.start(CRAWL, open_rules(sessions=("shop",)))
    await frontier.beat(CRAWL, Pulse(worker=EVIL, host=EVIL, pid=1, version=EVIL))
    client = Client(frontier, EVIL, CRAWL)
    dead, other = _entry(URL), _entry(f"https://shop.example/like/{EVIL}")
    await client.add(dead, other)
    for lease in await client.lease(2):
        verdict = Verdict.DEAD if lease.fingerprint == dead.fingerprint else Verdict.DONE
        ended = outcome(lease, verdict, reason=f"reason {EVIL}")
        ended.detail = f"Traceback\n  line {EVIL}"
        assert await client.finish(ended) == []
    pages = [
        PageLog(
            fingerprint=entry.fingerprint,
            url=entry.task.url,
            worker=EVIL,
            attempt=1,
            started_at=1.0,
            duration_s=1.0,
            verdict="dead",
            error=EVIL,
            archived=EVIL,
            simhash=number,
            body_bytes=1,
        )
        for number, entry in enumerate((other, dead))
    ]
    of_page: dict[str, Any] = {"url": URL, "fingerprint": dead.fingerprint, "kind": f"kind {EVIL}"}
    for moment in (1.0, 2.0):
        data = json.dumps({f"title {EVIL}": f"{EVIL} {moment}"}, ensure_ascii=False).encode()
        item = StoredItem(**of_page, key=EVIL, data=data, scraped_at=moment)
        rejected = RejectedItem(**of_page, data=EVIL, reason=EVIL, scraped_at=moment)
        await results.save(CRAWL, Batch(pages, [item], [rejected]))
    await results.note_run(CRAWL, RunNote("", [f"nosuch {EVIL}.py"]))
    for day, state in ((1, "failed"), (2, "skipped")):
        crawl = f"shop@2026-01-0{day}T03:00"
        run = {"crawl": crawl, "schedule": "shop", "targets": [EVIL], "slot": DAY, "fired_at": DAY}
        note = json.dumps({**run, "state": state, "reason": EVIL}).encode()
        await frontier.notes.write("past/shop", crawl, note)
    alert = {"alert": "dead", "crawl": EVIL, "text": EVIL, "value": 1, "limit": 1, "since": 1}
    note = json.dumps({**alert, "seen_at": 1, "resolved_at": 2}).encode()
    for topic in ("alerts", "alerts-past"):
        await frontier.notes.write(topic, f"dead/{EVIL}", note)
    await frontier.put_pool(PoolRules(name=EVIL), [ExitEntry(f"dc {EVIL}", EVIL, EVIL)])
    await frontier.put_pool(PoolRules(name="@shop"), [ExitEntry(f"@{ACCOUNT}")])
    await frontier.close()
    await results.close()


@pytest.fixture
def filled(folder: Folder, tmp_path: Path) -> Folder:
    asyncio.run(_fill(tmp_path))
    (tmp_path / "shoal.toml").write_text(
        '[[schedule]]\nname = "shop"\ntarget = "shop.py"\ncron = "0 3 * * *"\n'
    )
    (tmp_path / EVIL_FILE).write_text(f"127.0.0.1:{EVIL}\nbind://127.0.0.1\n")
    return folder


EVIL_FILE = "[bold]x.txt"
QUIET = {
    "alerts test",
    "proxies check",
    "results schema",
    "results prune",
    "schedule pause",
    "schedule resume",
    "schedule run",
}
ASKED = {
    "status": [["status"], ["status", CRAWL], ["status", CRAWL, "--json"]],
    "advise": [["advise", CRAWL, "--plot", "x.svg"], ["advise", CRAWL, "--json"]],
    "explain": [["explain", CRAWL, URL], ["explain", CRAWL, URL, "--json"]],
    "dead list": [["dead", "list", CRAWL], ["dead", "list", CRAWL, "--json"]],
    "dead show": [["dead", "show", CRAWL, URL], ["dead", "show", CRAWL, URL, "--json"]],
    "rejected list": [["rejected", "list", CRAWL], ["rejected", "list", CRAWL, "--json"]],
    "rejected show": [["rejected", "show", CRAWL, URL], ["rejected", "show", CRAWL, URL, "--json"]],
    "dead retry": [["dead", "retry", CRAWL, URL]],
    "dead purge": [["dead", "purge", CRAWL, URL]],
    "pause": [["pause", CRAWL]],
    "resume": [["resume", CRAWL]],
    "cancel": [["cancel", CRAWL]],
    "export": [["export", CRAWL, "-o", "[bold]x.jsonl"]],  # The data itself is for programs.
    "diff": [["diff", CRAWL, "--since", "1970-01-01"]],
    "merge": [["merge", CRAWL, "--into", EVIL, "--by", f"title {EVIL}"]],
    "results schema": [["results", "schema"]],
    "results prune": [["results", "prune", "--older-than", "1m"]],
    "results duplicates": [["results", "duplicates", CRAWL]],
    "reparse": [["reparse", CRAWL]],
    "seed": [["seed", CRAWL, EVIL, URL], ["seed", EVIL, URL, "--json"]],
    "proxies check": [["proxies", "check", EVIL_FILE], ["proxies", "check", "[bold]x[/b]"]],
    "proxies list": [["proxies", "list"], ["proxies", "list", EVIL, "--json"]],
    "sessions list": [["sessions", "list", CRAWL], ["sessions", "list", CRAWL, "--json"]],
    "sessions show": [["sessions", "show", CRAWL, ACCOUNT]],
    "sessions check": [["sessions", "check", CRAWL]],
    "sessions logout": [["sessions", "logout", CRAWL, ACCOUNT]],
    "alerts list": [["alerts", "list"], ["alerts", "list", "--past"], ["alerts", "list", "--json"]],
    "alerts test": [["alerts", "test", EVIL]],
    "schedule list": [["schedule", "list"], ["schedule", "list", "--json"]],
    "schedule history": [["schedule", "history"], ["schedule", "history", "--json"]],
    "schedule run": [["schedule", "run", "shop"]],
    "schedule pause": [["schedule", "pause", "shop"]],
    "schedule resume": [["schedule", "resume", "shop"]],
}
ELSEWHERE = {
    *("crawl", "worker", "autoscale", "serve", "demo", "drain", "feed", "scrapy migrate"),
    *("proxies echo", "proxies simulate"),
    *("new", "try", "shell", "check", "spiders"),
}
"""What these say is log lines (test_plaintext.py), counts, and the summary below. What an echo says
is its own address; a simulation asks no store. Those for work on a spider load code of users:
test_cli_try.py and test_cli_workbench.py."""


@pytest.mark.parametrize("command", ASKED)
def test_nothing_that_is_stored_gives_the_terminal_orders(filled: Folder, command: str) -> None:
    for args in ASKED[command]:
        ended = filled.call(*args)
        must_be_harmless(ended)
        if "--json" in args:
            json.loads(ended.out)
        elif command not in QUIET | {"dead retry", "dead purge"}:
            # Tables break long lines: what was shown is looked for without the breaks.
            shown = "".join(ended.out.split()) + "".join(ended.err.split())
            assert "[bold]x" in shown, ended


def test_every_command_is_tried_with_hostile_stores() -> None:
    assert {*ASKED, *ELSEWHERE, *GROUPS} == {*command_names()}


def test_brackets_of_a_url_are_shown(filled: Folder) -> None:
    for args in (["explain", CRAWL, URL], ["dead", "show", CRAWL, URL], ["dead", "list", CRAWL]):
        out = filled.call(*args).out
        assert BRACKETS in out, args
        assert r"\x1b]0;mine\x07\x9b2J\r\n\u202e\u2028" in out


def test_a_traceback_keeps_its_lines(filled: Folder) -> None:
    assert f"Traceback\n  line {SHOWN}\n" not in filled.call("dead", "list", CRAWL).out
    shown = filled.call("dead", "show", CRAWL, URL).out
    assert "Traceback\n  line [bold]x[/b]" in shown


def test_summary_and_progress(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    stats = Stats(crawl=EVIL, state=CrawlState.RUNNING, rules=open_rules(), created_at=1.0)
    summary = Summary(stats=stats, items={EVIL: 1}, seconds=1.0)
    display.out().print(display.summary_table(summary))
    console = display.console()
    console.print(display.text(display.progress_line(stats), "bold"))
    out = capsys.readouterr().out
    assert not set(out) & (set(ORDERS) - {"\n"})
    assert out.count(BRACKETS) == 3


def test_a_paused_crawl_says_what_it_waits_for() -> None:
    paused = Stats(crawl="a b", state=CrawlState.PAUSED, rules=open_rules(), created_at=1.0)
    assert display.progress_line(paused).endswith(" · shoal resume 'a b' goes on")


def test_tables_fold_what_does_not_fit() -> None:
    terminal = Console(width=40, color_system=None)
    with terminal.capture() as captured:
        terminal.print(display.table(("crawl", "total"), [("shop-" + "x" * 60, "1,234,567")]))
    shown = captured.get()
    assert max(map(len, shown.splitlines())) <= 40
    assert shown.count("x") == 60


def test_a_long_name_of_a_crawl_breaks_no_number() -> None:
    fields: dict[str, Any] = {"rules": open_rules(), "created_at": 1.0, "added": 1_234_567}
    long_one = Stats(crawl="shop-" + "x" * 60, state=CrawlState.FINISHED, **fields)
    terminal = Console(width=80, color_system=None)
    with terminal.capture() as captured:
        terminal.print(display.crawls_table([long_one], 2.0))
    shown = captured.get()
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("x") == 60
    assert " finished " in shown
    assert " 1,234,567 " in shown


def test_facts_fit_a_narrow_terminal_and_nothing_of_them_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = partial(Console, width=60, force_terminal=True, color_system=None)
    monkeypatch.setattr(display, "console", narrow)
    url = "https://shop.example/" + "x" * 100
    terminal = display.out()
    with terminal.capture() as captured:
        terminal.print(display.facts("shop", [("address", url), ("verdict", "done")]))
    framed = [line for line in captured.get().splitlines() if "│" in line]
    assert {len(line) for line in framed} == {60}
    assert url in "".join(line.split("│")[2].strip() for line in framed)
