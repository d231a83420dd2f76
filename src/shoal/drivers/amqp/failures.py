"""Maps errors of the AMQP library to Shoal's: temporary, permanent, or a wrong set-up."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from aiormq import exceptions as failure

from shoal.errors import ConfigError, ShoalError, StorageAway, StorageBusy, StorageFailed

_CODE = re.compile(r"^[A-Z_]+ - ")
"""The code with which RabbitMQ's error messages begin, as in `NOT_FOUND - `."""
_CAUSES = 8
"""How many causes of an error are looked at. The library's chains of causes may be circular."""
_FULL = "{} takes no more messages: the queue is as full as it may be (max-length)"
_OTHERWISE = "{}: {}: it was made otherwise; delete it if nothing in it is needed"

_LOGIN = failure.ProbableAuthenticationError | failure.AuthenticationError
_NO_MORE = failure.ChannelInvalidStateError | failure.ChannelClosed | RuntimeError


class QueueGone(StorageFailed):
    """There is no such queue or exchange."""


class DeclaredOtherwise(ConfigError):
    """There is a queue of this name with other arguments."""


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Raise errors of the library as Shoal's, with the server's address `shown`."""
    try:
        yield
    except (failure.AMQPError, OSError, EOFError, RuntimeError) as error:
        raise _mapped(shown, error) from None
    except ValueError as error:  # The library does not allow the name of a queue or exchange.
        raise ConfigError(f"{shown}: {error}") from None
    except asyncio.CancelledError:
        # The library also raises this if the connection closes. Then our own task is not cancelled.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise StorageBusy(f"{shown}: the connection was closed") from None


def _mapped(shown: str, error: Exception) -> ShoalError:
    said = _CODE.sub("", str(error.args[-1]) if error.args else "")
    if isinstance(error, _LOGIN):
        return ConfigError(f"{shown}: the login is refused (user, password)")
    if isinstance(error, failure.ChannelAccessRefused):
        return ConfigError(f"{shown}: {said}")
    if isinstance(error, failure.ChannelPreconditionFailed):
        return DeclaredOtherwise(_OTHERWISE.format(shown, said))
    if isinstance(error, failure.ChannelNotFoundEntity | failure.PublishError):
        return QueueGone(f"{shown}: {said}")
    if isinstance(error, failure.DeliveryError):
        return StorageBusy(_FULL.format(shown))
    return _away(shown, error, said)


def _away(shown: str, error: Exception, said: str) -> ShoalError:
    """Map an error of a server that could not be reached, or of a connection that broke."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConfigError(f"{shown}: {cause.verify_message}")
        cause = cause and (cause.__cause__ or cause.__context__)
    if isinstance(error, TimeoutError):
        return StorageAway(f"{shown}: no answer")
    if isinstance(error, _NO_MORE):
        return StorageBusy(f"{shown}: the connection was closed")
    if isinstance(error, OSError | EOFError):
        return StorageAway(f"{shown}: {said or 'the connection was closed'}")
    return StorageFailed(f"{shown}: {said or type(error).__name__}")
