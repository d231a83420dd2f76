"""Log lines: plain for people, JSON for machines. Both go to stderr."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

from shoal import plaintext


class PlainFormatter(logging.Formatter):
    """One line each, whatever the page says that it quotes. Only tracebacks have several."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return plaintext.one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return plaintext.lines(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "message": _encodable(record.getMessage()),
            "pid": record.process,
        }
        if record.exc_info:
            line["traceback"] = _encodable(self.formatException(record.exc_info))
        return plaintext.in_json(msgspec.json.encode(line).decode())


def _encodable(text: str) -> str:
    """A lone surrogate is in no JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


class OneLine(logging.Filter):
    """For lines of ours that others' handlers write, as they do in a Scrapy process."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = plaintext.one_line(record.getMessage()), ()
        return True


def configure(*, json_lines: bool) -> None:
    """Send Shoal's log to stderr. The root logger is left to the application."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if json_lines else PlainFormatter())
    logger = logging.getLogger("shoal")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
