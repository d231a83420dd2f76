"""The tables of the guides say what the code says: settings, task fields, limits, URL identity."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal import config
from shoal.config import SETTINGS, Rules, Settings, variable_of
from shoal.coordinator.schedules import Schedule
from shoal.core import bodies, exit_policy, identity_policy, policy, urls
from shoal.core.pool_config import GATEWAY_EXITS, PoolConfig
from shoal.core.session_config import SessionConfig
from shoal.core.task import Task
from shoal.core.urls import Normaliser
from shoal.exits.lists import read_list
from shoal.fetch import robots
from shoal.fetch.http import client, connection, dns, pool
from shoal.insight.advise.prices import Prices
from shoal.runtime.logs import JsonFormatter
from shoal.spider import controls, trial
from support.cli import options_of
from support.markdown import ROOT, Block, blocks, table_after

RUNNING = ROOT / "docs/guides/running.md"
SPIDERS = ROOT / "docs/guides/spiders.md"
SCHEDULES = ROOT / "docs/guides/schedules.md"
PROXIES = ROOT / "docs/guides/proxies.md"
SESSIONS = ROOT / "docs/guides/sessions.md"
ADVISE = ROOT / "docs/guides/advise.md"


def shown(default: Any) -> str:
    """A default as the tables write it."""
    if default is None or default == ():
        return "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return ", ".join(default) if isinstance(default, tuple) else str(default)


def rows_of(names: tuple[str, ...]) -> list[list[str]]:
    options = options_of("crawl")
    rows = []
    for name in names:
        spelling = f"--{name.replace('_', '-')}"
        option = options[spelling]
        spellings = ", ".join((*option.opts, *option.secondary_opts))
        what = SETTINGS[name].description
        if choices := SETTINGS[name].choices:
            what += f" ({', '.join(choices)})"
        rows.append([name, spellings, variable_of(name), shown(SETTINGS[name].default), what])
    return rows


def as_markdown(rows: list[list[str]]) -> str:
    """What to paste into the guide."""
    return "\n".join(
        f"| `{name}` | `{option.replace(', ', '`, `')}` | `{variable}` | `{default}` | {what} |"
        for name, option, variable, default, what in rows
    )


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("These belong to the crawl", tuple(n for n in Rules.__struct_fields__ if n in SETTINGS)),
        (
            "These belong to each process",
            tuple(name for name in SETTINGS if name not in Rules.__struct_fields__),
        ),
    ],
)
def test_the_settings_tables_are_the_settings(words: str, names: tuple[str, ...]) -> None:
    expected = rows_of(names)

    assert table_after(RUNNING, words) == expected, f"paste this:\n{as_markdown(expected)}"


def test_the_table_of_task_fields_is_the_task() -> None:
    fields = {
        field.name: "" if field.required else msgspec.json.encode(default_of(field)).decode()
        for field in msgspec.structs.fields(Task)
    }

    assert {name: default for name, default, _ in table_after(RUNNING, "one per line")} == fields


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def test_the_limits_are_the_limits() -> None:
    settings = Settings()

    assert [value for _, value in table_after(RUNNING, "## Memory and limits")] == [
        f"max_body_bytes, {settings.max_body_bytes // 1024**2} MiB",
        f"max_file_bytes, {settings.max_file_bytes // 1024**2} MiB",
        f"timeout_s, {settings.timeout_s:g} s",
        f"{client.CONNECT_TIMEOUT_S:g} s, {dns.LOOKUP_S:g} s of it for the name",
        f"{connection.MAX_HEADERS}, of at most {connection.MAX_HEADER_BYTES // 1024} KiB each,"
        f" {connection.MAX_BESIDE_BYTES // 1024} KiB in all",
        f"{pool.MAX_IDLE}, or { {4: 'a quarter'}[pool.FILES_PER_IDLE] } of the files that may be"
        " open (ulimit -n)",
        f"{policy.MAX_REDIRECTS}",
        f"{urls.MAX_URL_LENGTH:,} characters",
        f"{bodies.MAX_BODY_BYTES // 1024**2} MiB",
        f"{controls.MAX_CONTROLS:,} fields, {controls.MAX_OPTIONS:,} options",
        f"{trial.SECONDS:g} s of processor time and {trial.SECONDS_PER_BYTE * 1024**2:g} s more for"
        f" each MiB, {trial.TREE_BYTES // 1024**2} MiB of memory and"
        f" {trial.TREE_BYTES_PER_BYTE} times the page",
        f"{robots.MAX_BYTES // 1024} KiB",
        {3600.0: "one hour"}[policy.RETRY_AFTER_LIMIT_S],
    ]


@pytest.mark.parametrize(
    ("one", "another", "same"), table_after(SPIDERS, "## What counts as the same URL")
)
def test_urls_are_the_same_where_the_guide_says_so(one: str, another: str, same: str) -> None:
    identify = Normaliser().identify

    assert (identify(one) == identify(another)) is (same == "yes")


@pytest.mark.parametrize(
    "block",
    [
        block
        for page in (RUNNING, PROXIES, SESSIONS)
        for block in blocks(page)
        if block.language == "toml"
    ],
)
def test_examples_of_shoal_toml_are_valid(block: Block, tmp_path: Path) -> None:
    (tmp_path / config.CONFIG_FILE).write_text(block.text, "utf-8")

    assert config.load(folder=tmp_path) != Settings()


def test_log_lines_have_the_fields_of_the_example() -> None:
    (example,) = (block.text for block in blocks(RUNNING) if block.language == "json")
    line = JsonFormatter().format(logging.makeLogRecord({"msg": "hello", "levelname": "INFO"}))

    assert msgspec.json.decode(example).keys() == msgspec.json.decode(line).keys()


def test_the_table_of_schedule_keys_is_the_schedule() -> None:
    rows = table_after(SCHEDULES, "## What a schedule says")
    named = [row[0] for row in rows]
    assert named == [field.name for field in msgspec.structs.fields(Schedule)]


@pytest.mark.parametrize(
    ("guide", "words", "table"),
    [
        (PROXIES, "## Pool settings", PoolConfig),
        (SESSIONS, "## Group settings", SessionConfig),
        (ADVISE, "What `[prices]` says", Prices),
    ],
    ids=["pool", "group", "prices"],
)
def test_the_tables_of_keys_are_those_of_the_code(
    guide: Path, words: str, table: type[msgspec.Struct]
) -> None:
    rows = table_after(guide, words)
    fields = msgspec.structs.fields(table)
    assert [row[0] for row in rows] == [field.encode_name for field in fields]
    for row, field in zip(rows, fields, strict=True):
        if isinstance(field.default, str | int) and field.default != "":
            assert row[1] == msgspec.json.encode(field.default).decode().strip('"'), row


def test_the_exits_of_a_gateway_are_those_of_the_code() -> None:
    rows = table_after(PROXIES, "## Pool settings")
    assert ["exits", str(GATEWAY_EXITS)] in [row[:2] for row in rows]


@pytest.mark.parametrize("line", [row[0] for row in table_after(PROXIES, "## Lists")])
def test_lines_of_lists_can_be_read(line: str) -> None:
    read = read_list(line)
    assert (len(read.exits), read.bad) == (1, 0)


def test_the_words_on_blocks_are_the_policy() -> None:
    text = " ".join(PROXIES.read_text("utf-8").split())
    for words, figure, meant in (
        ("not used at that host for 5 minutes", exit_policy.COOL_FIRST_S, 300),
        ("the next time for 10, up to 2 hours", exit_policy.COOL_LIMIT_S, 7200),
        ("is out for 10 seconds", exit_policy.OUT_FIRST_S, 10),
        ("then for longer, up to 10 minutes", exit_policy.OUT_LIMIT_S, 600),
        ("Every ten minutes one request tries", exit_policy.PROBE_EVERY_S, 600),
        ("after five good answers in a row", exit_policy.GOOD_PROBES, 5),
    ):
        assert words in text
        assert figure == meant, words


def test_the_words_on_failed_logins_are_the_policy() -> None:
    text = " ".join(SESSIONS.read_text("utf-8").split())
    assert "rests for 1 minute, then 5, then 30. After the fourth failure in a row" in text
    assert identity_policy.RESTS_S == (60, 300, 1800)
    assert "or whose request was given up because it took too long, rests for five seconds" in text
    assert identity_policy.LOST_REST_S == 5
    assert "meets the end of a session three times is dead" in text
    assert identity_policy.MAX_EXPIRED == 2
