"""Reads the project's Markdown files, for tests that check them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))

SHELL = ("", "sh", "bash", "console")
"""Languages of fenced blocks whose lines are commands. A block without a language is one of them;
output is marked `text`."""

_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMENT = re.compile(r"(?:^|\s)#\s(.*)$")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str
    line: int
    """The line number where its content starts."""


class Command(NamedTuple):
    """One line of a shell block."""

    text: str
    note: str
    """The comment at the end of the line."""


def name_of(page: Path) -> str:
    """A page's path in the repository."""
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2)
        for match in _FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def spans(page: Path) -> list[str]:
    """The pieces of code within the prose."""
    return _SPAN.findall(prose(page))


def commands(block: Block) -> list[Command]:
    """The commands of a shell block. A line that ends in a backslash continues on the next."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [_command(line) for line in lines if line.strip() and not line.startswith("#")]


def shell_commands(page: Path) -> list[Command]:
    """All commands of a page, in order."""
    shell = [block for block in blocks(page) if block.language in SHELL]
    return [command for block in shell for command in commands(block)]


def table_after(page: Path, words: str) -> list[list[str]]:
    """The rows of the first table after these words, without the header; cells have no
    backticks."""
    after = page.read_text("utf-8").split(words, 1)[1]
    rows = re.search(r"^\|.*\|\n\|[-| ]+\|\n((?:\|.*\|\n)*)", after, re.MULTILINE)
    assert rows, f"{page.name} has no table after {words!r}"
    return [[_cell(cell) for cell in line[1:-1].split("|")] for line in rows[1].splitlines()]


def _cell(text: str) -> str:
    return text.strip().replace("`", "")


def _command(line: str) -> Command:
    note = _COMMENT.search(line)
    text = line[: note.start()] if note else line
    return Command(text.strip(), note[1].strip() if note else "")
