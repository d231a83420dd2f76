"""The options of the command line are the settings, with their types."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.config import SETTINGS
from shoal.core.fields import Field
from support.cli import options_of
from support.processes import Folder


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_an_option(name: str) -> None:
    option = options_of("crawl")[f"--{name.replace('_', '-')}"]

    assert option.default is None, "what is not given is left to the other sources"
    assert option.help.startswith(f"{SETTINGS[name].description}. [default: ")


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
        return f"--{dashed} <{'|'.join(setting.choices)}>"
    return f"--{dashed} <{'str' if setting.is_list else setting.type.__name__}>"
