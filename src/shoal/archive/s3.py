"""The object store in an S3 bucket, or in any service with the S3 protocol. Needs the extra `s3`.

Login and endpoint come from the environment, as with all AWS tools: AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL, ...
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Literal

from obstore import exceptions as failure
from obstore.store import S3Store

from shoal.archive.objects import Objects
from shoal.archive.s3_failures import NotOffered, translated
from shoal.core.addresses import masked
from shoal.core.urls import parse
from shoal.errors import BadUrl, ConfigError, StorageBusy, unreachable

ANSWER_S = 30.0
"""How long to wait for an answer before the service counts as away."""
SLOWEST_BYTES_S = 50_000
"""Large objects get more time: enough to transfer them at this speed."""
CONNECT_S = 5.0
LIST_CHUNK = 1000

MARKER = "shoal-archive.txt"
MARKER_TEXT = b"Raw pages, kept by Shoal. `shoal reparse` reads them.\n"

_ADDRESS = re.compile(r"s3://(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{1,254})(?:/(?P<prefix>[^?#@]*))?")
_NO_SEGMENTS = ("", ".", "..")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


class S3Objects(Objects):
    """The objects in a bucket, or under a prefix of it."""

    def __init__(self, address: str) -> None:
        bucket, prefix = _parse(address)
        self.shown = address
        self._is_conditional = True
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            client_options={
                "allow_http": _endpoint_is_http(),
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(hours=1),  # See `_talking`.
            },
            # One retry is for a connection closed while idle. Longer waits are up to the caller.
            retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=ANSWER_S)},
        )

    async def check(self) -> None:
        try:
            await self.put(MARKER, MARKER_TEXT)
        except StorageBusy as error:
            raise unreachable(error) from None

    async def put(self, name: str, data: bytes) -> bool:
        try:
            return await self._put(name, data)
        except NotOffered:
            if not self._is_conditional:
                raise
            self._is_conditional = False
            return await self._put(name, data)

    async def get(self, name: str) -> bytes:
        async with self._talking(name):
            answer = await self._store.get_async(name)
        async with self._talking(name, answer.meta["size"]):
            return bytes(await answer.bytes_async())

    async def names(self, folder: str) -> list[str]:
        found: list[str] = []
        chunks = self._store.list(folder, chunk_size=LIST_CHUNK)
        while True:
            async with self._talking(folder):
                chunk = await anext(chunks, None)
            if chunk is None:
                return sorted(found)
            found += [meta["path"] for meta in chunk]

    async def close(self) -> None:
        return None  # obstore has nothing to close.

    async def _put(self, name: str, data: bytes) -> bool:
        mode: Literal["create", "overwrite"] = "create" if self._is_conditional else "overwrite"
        try:
            async with self._talking(name, len(data)):
                await self._store.put_async(name, data, mode=mode, use_multipart=False)
        except failure.AlreadyExistsError:
            return False
        return True

    @asynccontextmanager
    async def _talking(self, name: str, size: int = 0) -> AsyncIterator[None]:
        """Translate errors, including a service that does not answer."""
        with translated(self.shown, name):
            async with asyncio.timeout(ANSWER_S + size / SLOWEST_BYTES_S):
                yield


def _parse(address: str) -> tuple[str, str]:
    """The bucket and the prefix of an address. Raises ConfigError."""
    parts = _ADDRESS.fullmatch(address)
    prefix = (parts["prefix"] or "").strip("/") if parts else ""
    if not parts or any(part in _NO_SEGMENTS for part in prefix.split("/") if prefix):
        raise ConfigError(
            f"not an S3 address: {masked(address)!r} (write s3://bucket/prefix; the login is in"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)"
        )
    return parts["bucket"], prefix


def _endpoint_is_http() -> bool:
    """Whether the environment names an endpoint without TLS. Only then is plain http allowed."""
    for variable in _ENDPOINTS:
        if endpoint := os.environ.get(variable):
            try:
                return parse(endpoint).protocol == "http:"
            except BadUrl:
                raise ConfigError(
                    f"{variable} is no http(s) address: {masked(endpoint)!r}"
                ) from None
    return False
