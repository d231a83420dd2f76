"""What is declared in Python is not written by hand in SQL and Lua; what they say must agree."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import shoal.frontier
from shoal.core.counters import COUNTERS
from shoal.drivers.sqlite import Database
from shoal.errors import ConfigError
from shoal.frontier.facts import TRANSITIONS, steered
from shoal.frontier.redis import find
from shoal.frontier.redis.scripts import SCRIPTS, script
from shoal.frontier.redis.stats import HOST_NUMBERS, PLACED
from shoal.frontier.sqlite.statements import SCHEMA, SQL, STATES, add_missing_counters
from shoal.frontier.values import Control, CrawlState, TaskState, Verdict

FOLDER = Path(shoal.frontier.__file__).parent
LUA = sorted(FOLDER.rglob("*.lua"))
SQL_FILES = sorted(FOLDER.rglob("*.sql"))
STATEMENTS = [path for path in SQL_FILES if not path.name.startswith("schema")]

COUNTER = f"(?:{'|'.join(COUNTERS)})"
BY_HAND = {
    "a number of a state": re.compile(r"\bstate\s*(?:[=<>!]+|IN\s*\()\s*-?\d"),
    "a number of losses": re.compile(r"\blosses(?:_of\(\w+\))?\s*[=<>~!]+\s*[2-9]"),
    "the text of a reason": re.compile(r"'(?:poison|purged)\b|reason = '\w"),
    "a list of counters": re.compile(rf"'{COUNTER}',\s*'{COUNTER}'|({COUNTER}) = \1 \+ :\1"),
    "a size of a batch": re.compile(r"'LIMIT', 0, \d|LRANGE.*, 0, \d\d"),
}

INDEXED = {
    "best_tasks": "tasks_ready",
    "suspects": "tasks_suspect",
    "holds_any": "tasks_held",
    "held_tasks": "tasks_held",
    "head_of_chain": "tasks_chained",
    "next_due": "tasks_due",
    "dead_tasks": "tasks_dead",
    "next_ready": "hosts_ready",
}


def code_of(path: Path) -> str:
    """A file without its comments."""
    return re.sub(r"--.*", "", path.read_text("utf-8"))


@pytest.mark.parametrize("path", LUA + STATEMENTS, ids=lambda path: path.name)
@pytest.mark.parametrize("what", BY_HAND)
def test_nothing_declared_is_written_by_hand(path: Path, what: str) -> None:
    found = BY_HAND[what].search(code_of(path))
    assert not found, f"{path.name} has {what}: {found[0]}"


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a number of a state", "UPDATE tasks SET state = 5"),
        ("a number of a state", "WHERE state < 3"),
        ("a number of a state", "WHERE state IN (0, 1)"),
        ("a number of losses", "AND losses >= 2"),
        ("a number of losses", "if losses_of(entry) >= 2 then"),
        ("the text of a reason", "reason = 'purged; was dead: ' || reason"),
        ("a list of counters", "local COUNTED = {'filtered', 'duplicates', 'items'}"),
        ("a list of counters", "SET items = items + :items"),
        ("a size of a batch", "call('ZRANGEBYSCORE', due, '-inf', whole(now), 'LIMIT', 0, 500)"),
    ],
)
def test_what_would_be_found(what: str, line: str) -> None:
    assert BY_HAND[what].search(line)


async def test_statements_use_the_indexes_that_files_have(tmp_path: Path) -> None:
    """Those are for numbers of states and losses: a statement with another one cannot use them."""
    path = tmp_path / "frontier.db"
    database = Database(path, "frontier", SCHEMA, add_missing_counters)
    await database.run(lambda _: None)
    await database.close()
    with closing(sqlite3.connect(path)) as connection:
        for name, index in INDEXED.items():
            of_dead = dict.fromkeys(("kind", "host", "fingerprints"))
            values = {"crawl_id": 1, "died_at": 1, "last": 1, "limit": 1, **of_dead}
            given = values if ":crawl_id" in SQL[name] else (1,) * SQL[name].count("?")
            plan = connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", given).fetchall()
            assert index in str(plan), name


def test_files_keep_states_as_numbers() -> None:
    assert STATES == {
        -1: TaskState.WAITING,
        0: TaskState.WAITING,
        1: TaskState.DELAYED,
        2: TaskState.LEASED,
        3: TaskState.DONE,
        4: TaskState.DEAD,
        5: TaskState.DROPPED,
    }


def test_servers_keep_numbers_by_their_place() -> None:
    """In crawls that run. What is new comes after these, or is kept by its name."""
    counts = (
        "added duplicates filtered waiting delayed leased done dead dropped retries lost items"
        " rejected body_bytes sent blocked sample_at sample_done earlier_at earlier_done unchanged"
        " turns latest ahead"
    )
    hosts = (
        "waiting suspects leased next penalty pushed crawl_delay robots_at robots_until done"
        " failed failures broken_at latency ready load slow failing"
    )
    assert list(PLACED) == counts.split()
    assert list(HOST_NUMBERS) == hosts.split()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_told_all_it_uses(name: str) -> None:
    code = re.sub(r"'[^'\n]*'|--.*", "", script(name).text)
    used = set(re.findall(r"(?<![.\w])[A-Z][A-Z_]+(?![.\w]*:)\b", code)) - {"KEYS", "ARGV"}
    assert {word for word in used if not re.search(rf"local [\w, ]*\b{word}\b", code)} == set()


@pytest.mark.parametrize("path", LUA, ids=lambda path: path.name)
def test_scripts_know_the_states_of_crawls(path: Path) -> None:
    compared = re.findall(r"\b(?:state|was) [=~]= '(\w+)'|set_state\('(\w+)'\)", code_of(path))
    assert {one or other for one, other in compared} <= set(CrawlState)


def test_every_verdict_has_its_move() -> None:
    moves = re.findall(r"function moves\.(\w+)", script("finish").text)
    assert sorted(moves) == sorted(Verdict)


def test_places_have_the_names_that_are_looked_for() -> None:
    told = re.findall(r"found\('([\w ]+)'", script("find").text)
    assert {name.encode() for name in told} == set(find._STATES) == set(find._WALKED.values())


@pytest.mark.parametrize("action", Control)
def test_actions_lead_from_the_states_they_fit(action: Control) -> None:
    for state in CrawlState:
        if state in TRANSITIONS[action]:
            assert steered("shop", state, action) is TRANSITIONS[action][state]
        else:
            with pytest.raises(ConfigError, match=f"cannot {action} crawl 'shop': it is {state}"):
                steered("shop", state, action)
