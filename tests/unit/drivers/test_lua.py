"""Rules for Lua scripts that can be read off their text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shoal

FOLDER = Path(shoal.__file__).parent
SCRIPTS = sorted(FOLDER.rglob("*.lua"))

UNPACK = re.compile(r"(?<![\w.])unpack\((?P<values>.*)\)")
OF_A_CHUNK = re.compile(r"\w+, first, (?:last|math\.min\(first \+ AT_ONCE - 1, #\w+\))\)*")
OF_A_RECORD = re.compile(r"(?:\w+|cmsgpack\.unpack\(\w+\)), 1, \d")


def test_there_are_scripts() -> None:
    names = {path.relative_to(FOLDER).parts[0] for path in SCRIPTS}
    assert names == {"feeds", "frontier", "results", "scrapy"}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_nothing_is_unpacked_without_a_bound(path: Path) -> None:
    """`unpack` fails beyond some 8,000 values, and what the script has written by then stays."""
    for line in path.read_text("utf-8").splitlines():
        code = line.partition("--")[0]
        for call in UNPACK.finditer(code):
            values = call["values"]
            is_bounded = OF_A_CHUNK.match(values) or OF_A_RECORD.match(values)
            assert is_bounded, f"{path.name}: {line.strip()}"


@pytest.mark.parametrize(
    "line",
    [
        "call('HDEL', key, unpack(tokens))",
        "local owners = {unpack(ARGV, 2)}",
        "return {state, unpack(stale)}",
        "return unpack(values, 1, #values)",
    ],
)
def test_what_would_be_found(line: str) -> None:
    call = UNPACK.search(line)
    assert call is not None
    assert not OF_A_CHUNK.match(call["values"])
    assert not OF_A_RECORD.match(call["values"])
