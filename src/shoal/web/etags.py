"""Answers that are only sent if they are new."""

from __future__ import annotations

from hashlib import blake2b

from aiohttp import ETag, web


def with_etag(request: web.Request, body: bytes) -> web.Response:
    """JSON, or 304 for who has it already."""
    tag = blake2b(body, digest_size=12).hexdigest()
    known = request.if_none_match or ()
    headers = {"ETag": f'"{tag}"', "Cache-Control": "no-cache"}
    if ETag(tag) in known:
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, content_type="application/json", headers=headers)
