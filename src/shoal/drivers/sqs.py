"""Calls SQS, or another service with its protocol.

AWS's own library finds the credentials and the endpoint as all tools of AWS do: in the environment
(AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL_SQS, ...), in a profile, or from the machine.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from contextlib import AsyncExitStack
from typing import Any

from shoal.core.addresses import Address, masked, parse_address
from shoal.errors import (
    ConfigError,
    MissingExtra,
    ShoalError,
    StorageAway,
    StorageBusy,
    StorageFailed,
)

CONNECT_S = 5
ANSWER_S = 15
"""A service that has not answered for this long is away."""
LONGEST_POLL_S = 20
CONNECTIONS = 32

GONE_CODES = {"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"}
_PASSING_CODES = re.compile(
    r"Throttl|TooManyRequests|OverLimit|Unavailable|Internal|Timeout|DeletedRecently"
)
_REFUSED_CODES = re.compile(
    r"AccessDenied|InvalidClientTokenId|SignatureDoesNotMatch|Expired|UnrecognizedClient"
    r"|InvalidAccessKeyId|MissingAuthenticationToken|InvalidSecurity|OptInRequired|AuthFailure"
    r"|^40[13]$"  # What the library says if it cannot read the reason.
)
_LOGIN = "check the login that AWS's tools use here (AWS_PROFILE, AWS_ACCESS_KEY_ID) and its rights"
_REGION = re.compile("[a-z]{2}[a-z0-9-]{3,30}")
_MAX_STATUS = 500


class QueueGone(StorageFailed):
    """There is no such queue."""


class ExistsOtherwise(ConfigError):
    """There is a queue of this name with other attributes."""


class SqsLink:
    """Calls operations of SQS, and counts the requests, because each of them costs money."""

    def __init__(self, address: Address) -> None:
        """`address` comes from `sqs_address`."""
        self.shown = address.shown
        self.requests = 0
        """How many requests are billed so far. Callers add those that large messages cost."""
        self._region = address.hosts[0][0]
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None

    async def call(self, operation: str, **params: Any) -> Any:
        """Make one request. Raises QueueGone, ExistsOtherwise, or another of Shoal's errors."""
        failure = _failures()
        try:
            client = await self._opened()
            self.requests += 1
            async with asyncio.timeout(ANSWER_S + LONGEST_POLL_S):
                return await getattr(client, operation)(**params)
        except failure.ClientError as error:
            raise self._refused(error.response) from None
        except (failure.NoCredentialsError, failure.CredentialRetrievalError) as error:
            raise ConfigError(f"{self.shown}: {error}: {_LOGIN}") from None
        except (failure.HTTPClientError, failure.ConnectionError, OSError) as error:
            raise StorageAway(f"{self.shown}: {str(error) or 'no answer'}") from None
        except (failure.BotoCoreError, ValueError) as error:  # No such profile or endpoint.
            raise ConfigError(f"{self.shown}: {error}") from None

    async def url_of(self, queue: str) -> str:
        """The URL of a queue, which all other operations need. Raises QueueGone."""
        found = await self.call("get_queue_url", QueueName=queue)
        if "QueueUrl" not in found:  # The library reads any server's 200 as an empty answer.
            raise ConfigError(f"{self.shown}: what answers is not SQS: look at AWS_ENDPOINT_URL")
        return str(found["QueueUrl"])

    async def close(self) -> None:
        """Close the connections."""
        await self._stack.aclose()

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await self._stack.enter_async_context(self._made())
            return self._client

    def _made(self) -> Any:
        from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
        from aiobotocore.session import get_session  # type: ignore[import-untyped]

        config = AioConfig(
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S + LONGEST_POLL_S,
            max_pool_connections=CONNECTIONS,
            # The library must not retry: every request is counted.
            retries={"total_max_attempts": 1},
        )
        return get_session().create_client("sqs", region_name=self._region, config=config)

    def _refused(self, response: Any) -> ShoalError:
        code = str(response.get("Error", {}).get("Code", ""))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        said = " ".join(str(response.get("Error", {}).get("Message", code)).split())[:300]
        if code in GONE_CODES:
            return QueueGone(f"{self.shown}: there is no such queue")
        if code in ("QueueNameExists", "QueueAlreadyExists"):
            return ExistsOtherwise(f"{self.shown}: {said}")
        if _REFUSED_CODES.search(code):
            return ConfigError(f"{self.shown}: {code}: {said}: {_LOGIN}")
        if _PASSING_CODES.search(code) or status >= _MAX_STATUS:
            return StorageBusy(f"{self.shown}: {code}: {said}")
        return StorageFailed(f"{self.shown}: {code}: {said}")


def _failures() -> Any:
    """The errors of AWS's library. Imported only on use, since that takes a second."""
    try:
        import aiobotocore  # type: ignore[import-untyped]  # noqa: F401
        from botocore import exceptions  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingExtra("an sqs:// address", "sqs") from None
    return exceptions


def sqs_address(text: str, more_options: Collection[str] = ()) -> Address:
    """Read `sqs://region/name`. Raises ConfigError."""
    address = parse_address(text, 443)
    (region, _), *more = address.hosts
    unknown = sorted(set(address.options) - set(more_options))
    wrong = (
        "the login is no part of it: AWS's tools find it themselves"
        if address.user or address.password
        else f"no such option: {', '.join(unknown)}"
        if unknown
        else ""
        if not more and _REGION.fullmatch(region) and len(address.segments) == 1
        else "write sqs://region/name, as in sqs://eu-west-1/shoal"
    )
    if wrong:
        raise ConfigError(f"not an SQS address: {masked(text)!r}: {wrong}")
    return address
