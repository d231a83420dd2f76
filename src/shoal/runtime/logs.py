"""Log lines: plain for people, JSON for machines. Both go to stderr."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

from shoal.core import plaintext


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
            "logger": record.name,
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


QUIET = ("aiobotocore", "aiohttp", "asyncio", "boto3", "botocore", "httpcore", "httpx", "urllib3")
"""Libraries that have more to tell than anybody wants to read."""


def configure(*, json_lines: bool, only_ours: bool = False) -> None:
    """Send all logs of this process to stderr: Shoal's, and whatever a spider and its modules log.

    For processes that are Shoal's, never for a program that uses it. With `only_ours`, Shoal's log
    alone: Scrapy looks after its own.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if json_lines else PlainFormatter())
    logger = logging.getLogger("shoal" if only_ours else None)
    for other in list(logger.handlers):
        if type(other) is logging.StreamHandler:  # A spider's own basicConfig(), or ours of before.
            logger.removeHandler(other)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logging.getLogger("shoal").propagate = not only_ours
    for library in map(logging.getLogger, QUIET):
        library.setLevel(library.level or logging.WARNING)
    logging.captureWarnings(json_lines)
