"""The options of the command line are the settings, with their types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.cli.help import SUMMARY_CHARS
from shoal.cli.panels import MORE, PANELS
from shoal.config import SETTINGS
from shoal.core.fields import Field
from support.cli import commands, help_of, options_of
from support.processes import Folder

WORDS = {"rate": "RATE", "workers": "N", "lease_s": "SECONDS", "seen_for": "TIME"}
"""What stands for the values of some settings."""
USED_BY_EXAMPLES = re.compile(r"'\{.*\}'")


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_an_option(name: str) -> None:
    option = options_of("crawl")[f"--{name.replace('_', '-')}"]

    assert option.default is None, "what is not given is left to the other sources"
    assert option.help.startswith(f"{SETTINGS[name].description}.")


def test_help_shows_what_each_option_takes(tmp_path: Path) -> None:
    lines = Folder(tmp_path).call("crawl", "--help").out.splitlines()

    for setting in SETTINGS.values():
        wanted = shown(setting)
        assert any(line.strip().startswith(wanted) for line in lines), wanted


def shown(setting: Field) -> str:
    dashed = setting.name.replace("_", "-")
    if setting.type is bool:
        return f"--{dashed} / --no-{dashed}"
    if setting.choices:
        return f"--{dashed} {'|'.join(setting.choices)}"
    return f"--{dashed} {WORDS.get(setting.name, '')}".rstrip()


def test_help_names_values_by_what_they_are_and_not_by_their_types(commands_help: str) -> None:
    for python in ("<str", "<int", "<float", "<path", "<list", "list[", "{", "x>="):
        assert python not in USED_BY_EXAMPLES.sub("", commands_help), python
    assert "[default: none]" not in commands_help


def test_a_list_of_commands_cuts_no_summary() -> None:
    for name, command in commands().items():
        assert not command.get_short_help_str(SUMMARY_CHARS).endswith("..."), name


def test_a_usage_line_has_no_brackets_but_those_of_what_may_be_left_out() -> None:
    usages = {name: usage(name) for name in ("crawl", "worker", "dead retry", "proxies list")}
    assert usages == {
        "crawl": "[OPTIONS] TARGET...",
        "worker": "[OPTIONS] [TARGET]...",
        "dead retry": "[OPTIONS] CRAWL [URL]...",
        "proxies list": "[OPTIONS] [POOL]",
    }


def test_many_options_come_in_groups_and_those_that_are_used_most_come_first(
    tmp_path: Path,
) -> None:
    for command in ("crawl", "worker", "autoscale"):
        shown_help = Folder(tmp_path).call(command, "--help").out
        titles = [line for line in shown_help.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
        assert titles[-len(PANELS) - 1 :] == [f"{title}:" for title in (*PANELS, MORE)]
        most_used = shown_help.partition("Options:")[2].partition("Which pages:")[0]
        assert all(option in most_used for option in ("--name", "--rate", "--frontier"))


def test_each_group_has_settings_that_there_are() -> None:
    grouped = [name for names in PANELS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) <= set(SETTINGS)


def test_few_options_are_one_group(tmp_path: Path) -> None:
    assert f"{MORE}:" not in Folder(tmp_path).call("status", "--help").out


@pytest.fixture(scope="module")
def commands_help() -> str:
    return "\n".join(help_of(command) for command in commands().values())


def usage(name: str) -> str:
    command = commands()[name]
    return " ".join(command.collect_usage_pieces(None))
