"""Commands are loaded when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from shoal.cli import commands
from shoal.cli.on_demand import COMMANDS
from support.cli import command_names
from support.until import LIMIT_S

HELPERS = {"__init__", "proxies_check", "sessions_check", "simulate"}
"""Modules with a command of a group that another module makes."""


def test_every_module_of_commands_is_named() -> None:
    modules = {path.stem for path in Path(commands.__path__[0]).glob("*.py")}
    assert {place.partition(":")[0] for place in COMMANDS.values()} == modules - HELPERS
    assert set(COMMANDS) <= set(command_names())


def test_a_command_loads_no_other() -> None:
    looking = "import sys; sys.argv = ['shoal', 'pause', '--help']; from shoal.cli import main\n"
    looking += "try:\n    main()\nfinally:\n    print(*sys.modules)"
    command = [sys.executable, "-c", looking]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S).stdout.split()
    assert "shoal.cli.commands.control" in loaded
    assert "shoal.cli.commands.crawl" not in loaded
    assert "aiohttp" not in loaded
