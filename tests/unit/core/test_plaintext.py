"""Text from outside, as it is shown."""

from __future__ import annotations

import json
import logging
import sys
import unicodedata

import pytest

from shoal.core import plaintext
from shoal.runtime.logs import JsonFormatter, OneLine, PlainFormatter

EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))
HOSTILE = "\x1b]0;mine\x07 \x9b2J \u202egpj.exe\r\n12:00:00 INFO    all is well\u2028\ud800\x7f"


def _is_an_order(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(character) in _TURNING
        or character in "\u061c\u200e\u200f"
    )


_TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
ORDERS = {character for character in EVERY_CHARACTER if _is_an_order(character)}


def test_no_character_that_is_an_order_is_left_in_a_line() -> None:
    assert not ORDERS & set(plaintext.one_line(EVERY_CHARACTER))


def test_all_other_characters_stay_as_they_are() -> None:
    harmless = "".join(character for character in EVERY_CHARACTER if character not in ORDERS)
    assert plaintext.one_line(harmless) == harmless
    assert plaintext.lines(harmless) == harmless


def test_what_is_written_out_can_be_read() -> None:
    assert plaintext.one_line("a\x1b[2J\r\n\tb\x85\u202e") == r"a\x1b[2J\r\n\tb\x85\u202e"


def test_text_of_several_lines_keeps_them() -> None:
    assert plaintext.lines("a\n\tb\x1b[0m\r\n") == "a\n\tb\\x1b[0m\\r\n"


def test_json_says_the_same_without_such_characters() -> None:
    value = {"title": HOSTILE.replace("\ud800", "")}
    shown = plaintext.in_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(shown) == value
    assert not (ORDERS - {"\n"}) & set(shown)


def _record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("shoal", logging.INFO, "", 1, message, args, None)


@pytest.fixture
def failed() -> logging.LogRecord:
    record = _record("no")
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        record.exc_info = sys.exc_info()
    return record


def test_a_log_line_is_one_line() -> None:
    shown = PlainFormatter().format(_record("seed skipped: %s", HOSTILE))
    assert not ORDERS & set(shown)
    assert shown.endswith(r"\u2028\ud800\x7f")


def test_a_traceback_in_a_log_gives_no_orders(failed: logging.LogRecord) -> None:
    shown = PlainFormatter().format(failed)
    assert not (ORDERS - {"\n"}) & set(shown)
    assert "\nTraceback" in shown


def test_a_json_log_line_is_one_line_of_json(failed: logging.LogRecord) -> None:
    for record in (_record("%s", HOSTILE), failed):
        shown = JsonFormatter().format(record)
        assert not ORDERS & set(shown)
        json.loads(shown)


def test_lines_of_ours_are_tame_in_other_peoples_handlers() -> None:
    record = _record("a message was put aside: %s", HOSTILE)
    assert OneLine().filter(record)
    assert not ORDERS & set(logging.Formatter().format(record))
    from shoal.scrapy.scheduler import log

    assert any(isinstance(each, OneLine) for each in log.filters)
