"""Runs `shoal serve` as a real process, and sends requests to its web server."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from support.processes import Folder, Running
from support.until import LIMIT_S, until_now

_LISTENING = re.compile(r"listening on (http://[^/\s]+)/")
LOCAL = {"Authorization": "Bearer local"}
"""The header that programs send if there is no token."""


class Answered(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.body)


class Web:
    """A client of a running `shoal serve`."""

    def __init__(self, base: str, process: Running) -> None:
        self.base = base
        self.process = process

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answered:
        """Send a GET request."""
        return self.send("GET", path, headers=headers or {})

    def post(self, path: str, body: Any = None, **headers: str) -> Answered:
        """Send a POST request with JSON, as a program does."""
        sent = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if body is not None else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", path, sent, {**LOCAL, **kind, **named})

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send any request. Redirects are not followed."""
        asked = urllib.request.Request(
            self.base + path, data=body, method=method, headers=dict(headers or {})
        )
        try:
            with _opener.open(asked, timeout=LIMIT_S) as answer:
                return Answered(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answered(error.code, dict(error.headers), error.read())


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)


@contextmanager
def serving_web(
    folder: Folder, *options: str, env: Mapping[str, str] | None = None
) -> Iterator[Web]:
    """Run `shoal serve` in a folder."""
    with folder.running("serve", *options, env=env) as process:
        yield Web(address_of(process), process)


def address_of(process: Running) -> str:
    """The URL of a `shoal serve`, without a slash at the end. Waits until it listens."""

    def look() -> str | None:
        found = _LISTENING.search(process.err)
        assert not process.has_ended() or found, process.err
        return found[1] if found else None

    return until_now("shoal serve to listen", look)
