"""Checks the documentation's commands for operators, which are not run with the others.

They need a daemon, a cluster or an init system, so only the names in them are checked. `make
test-deploy` runs those that need none of these.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import yaml

from support.cli import command_names
from support.containers import COMPOSE
from support.markdown import ROOT

PROGRAMS = ("podman", "docker", "kubectl", "systemctl", "install", "deploy/make-secrets", "export")
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
_UNIT = re.compile(r"shoal-(?!.*:)[\w@.-]+")


def words_of(text: str) -> list[str]:
    """The words of a command, without variables set before it."""
    words = shlex.split(text)
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    return words


def is_operators(text: str) -> bool:
    """Whether this is a command for operators."""
    try:
        words = words_of(text)
    except ValueError:  # Not a command.
        return False
    return bool(words) and words[0] in PROGRAMS


def unknown_to_operators(text: str) -> list[str]:
    """The names in a command that do not exist: files of deploy/, units, services, variables, Shoal
    commands."""
    program, *words = words_of(text)
    unknown = [
        word
        for word in (program, *words)
        if word.startswith("deploy/") and not (ROOT / word).exists()
    ]
    if program == "systemctl":
        unknown += [word for word in words if _UNIT.fullmatch(word) and not _is_unit(word)]
    if program == "export":
        names = (word.partition("=")[0] for word in words)
        unknown += [name for name in names if f"${{{name}:-" not in COMPOSE.read_text("utf-8")]
    if program == "docker" and "exec" in words:
        unknown += {words[words.index("exec") + 1]} - services().keys()
    if "shoal" in words[1:-1] and program == "docker":
        unknown += {words[words.index("shoal") + 1]} - set(command_names())
    return unknown


def services() -> dict[str, Any]:
    """The services of compose.yaml."""
    read = yaml.safe_load(COMPOSE.read_text("utf-8"))
    found: dict[str, Any] = read["services"]
    return found


def _is_unit(name: str) -> bool:
    template = re.sub("@.*", "@", name).removesuffix(".service")
    return (ROOT / f"deploy/systemd/{template}.service").exists()
