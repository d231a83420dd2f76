"""The line at the bottom of a terminal, and log lines above it."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console
from rich.text import Text

from shoal.cli.live_line import live_line
from shoal.runtime.logs import ERASE_BELOW, OverProgress, PlainFormatter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_cursor_stays_where_the_line_begins() -> None:
    file = Terminal()
    terminal = Console(file=file, width=10, force_terminal=True, color_system=None)
    with live_line(terminal) as draw:
        draw(Text("123 567"))
        assert file.getvalue().endswith(ERASE_BELOW + "123 567\r")
        draw(Text("123 567 9 11 14"))
        assert file.getvalue().endswith(ERASE_BELOW + "123 567 9 \n11 14\r\x1b[1A")
    assert ERASE_BELOW in file.getvalue().rpartition("\x1b[1A")[2]


@pytest.mark.parametrize(
    ("stream", "term", "before"),
    [(Terminal(), "xterm", ERASE_BELOW), (Terminal(), "dumb", ""), (io.StringIO(), "xterm", "")],
)
def test_a_log_line_takes_its_place(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str, before: str
) -> None:
    monkeypatch.setenv("TERM", term)
    formatter = OverProgress(PlainFormatter(), stream)
    line = formatter.format(logging.makeLogRecord({"msg": "hello", "levelname": "INFO"}))
    assert line.startswith(before) == line.endswith("INFO    hello") is True
    assert line.startswith("\x1b") == bool(before)
