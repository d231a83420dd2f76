"""docs/guides/alerts.md and logs.md say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from shoal import config
from shoal.alerts.conditions import ALL
from shoal.alerts.config import load_alerts
from shoal.alerts.limits import Limits
from shoal.alerts.messages import Notice, json_of
from shoal.alerts.routes import KINDS, Webhook
from shoal.alerts.signing import signed_headers
from shoal.alerts.states import AlertState
from shoal.runtime.logs import about
from support.markdown import ROOT, Block, blocks, table_after

ALERTS = ROOT / "docs/guides/alerts.md"
LOGS = ROOT / "docs/guides/logs.md"


def test_the_list_of_alerts_is_that_of_the_code() -> None:
    rows = table_after(ALERTS, "## All alerts")
    assert [tuple(row) for row in rows] == [(one.name, one.meaning) for one in ALL.values()]


def test_the_limits_are_those_of_the_code() -> None:
    rows = table_after(ALERTS, "## Limits")
    fields = msgspec.structs.fields(Limits)
    defaults = ["[]" if field.default == () else str(field.default) for field in fields]
    assert [row[0] for row in rows] == [field.name for field in fields]
    assert [row[1] for row in rows] == defaults


@pytest.mark.parametrize("block", [one for one in blocks(ALERTS) if one.language == "toml"])
def test_examples_are_valid(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_URL", "https://hooks.example/x")
    for name in ("MAIL_PASSWORD", "HOOK_SECRET"):
        monkeypatch.setenv(name, "x")
    (tmp_path / "telegram").write_text("token")
    text = block.text.replace("/etc/shoal", str(tmp_path))
    (tmp_path / config.CONFIG_FILE).write_text(text, "utf-8")
    alerts = load_alerts(tmp_path)
    assert alerts.routes or alerts.limits


def test_every_kind_of_route_is_named() -> None:
    text = ALERTS.read_text("utf-8")
    assert all(kind in text for kind in KINDS)


def test_the_example_of_a_message_has_all_fields() -> None:
    (example,) = (msgspec.json.decode(one.text) for one in blocks(ALERTS) if one.language == "json")
    alert = AlertState(alert="dead", text="", value=1.0, limit=1.0, since=1.0, seen_at=1.0)
    made = json_of(Notice([alert], 1.0, "x"))
    assert list(example) == list(made)
    assert list(example["alerts"][0]) == list(made["alerts"][0])


def test_the_example_that_checks_a_signature_does() -> None:
    (example,) = (one.text for one in blocks(ALERTS) if one.language == "python")
    names: dict[str, Any] = {}
    exec(example, names)
    headers = signed_headers("hunter2", "msg_1", 1.0, b"{}")
    assert names["is_ours"](headers, b"{}", "hunter2")
    assert not names["is_ours"](headers, b"{ }", "hunter2")
    assert not names["is_ours"](headers, b"{}", "hunter3")
    assert Webhook(url="https://x").secret is None


def test_the_fields_of_logs_are_those_of_the_code() -> None:
    every = about(
        event="x",
        crawl="x",
        worker="x",
        url="x",
        host="x",
        status=1,
        error="x",
        stacktrace="x",
        duration_s=1.0,
    )["about"]
    named = [row[0] for row in table_after(LOGS, "## Fields")]
    assert named[7:] == list(every)


def test_the_examples_for_collectors_use_fields_that_exist() -> None:
    """And Loki gets no other labels than the service and the level: Alloy adds the file's name."""
    fields = {row[0] for row in table_after(LOGS, "## Fields")}
    by_language = {one.language: one.text for one in blocks(LOGS)}
    alloy, filebeat = by_language["alloy"], yaml.safe_load(by_language["yaml"])
    read = dict(
        re.findall(r'(\w+) = "(?:\\")?([\w.]+)', alloy.partition("expressions")[2].split("}")[0])
    )
    assert set(read.values()) <= fields
    kept = re.search(r"label_keep {\s+values = (\[.*])", alloy)
    assert kept is not None
    assert json.loads(kept[1]) == ["level", "service_name"]
    assert "local.file_match.shoal.targets" in alloy  # loki.source.file takes no patterns.
    assert filebeat["processors"][0]["timestamp"]["field"] in fields


def test_every_event_is_named() -> None:
    named = {name.strip() for row in table_after(LOGS, "## Events") for name in row[0].split(",")}
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "src/shoal").rglob("*.py"))
    for name in named:
        family, _, last = name.partition(".")
        assert f'event="{name}"' in text or f'event=f"{family}.' in text, name
        assert last or name == "fault"
