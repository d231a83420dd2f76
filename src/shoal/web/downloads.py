"""Answers that the browser saves as a file."""

from __future__ import annotations

from contextlib import suppress
from os import SEEK_END
from typing import BinaryIO

from aiohttp import web

CHUNK_BYTES = 256 * 1024


async def sent(
    request: web.Request, content: BinaryIO, media: str, name: str
) -> web.StreamResponse:
    """Send a file as fast as the client reads it, or for HEAD, only what it would be sent with.
    `name` must be safe in a header."""
    response = web.StreamResponse()
    response.headers["Content-Type"] = media
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.content_length = content.seek(0, SEEK_END)
    content.seek(0)
    with suppress(ConnectionError):  # The client has gone away.
        await response.prepare(request)
        while request.method != "HEAD" and (chunk := content.read(CHUNK_BYTES)):
            await response.write(chunk)
        await response.write_eof()
    return response
