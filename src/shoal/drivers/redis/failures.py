"""Translates errors of redis-py: which pass, which do not, which are a wrong setup."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions as failure
from redis.asyncio.sentinel import MasterNotFoundError

from shoal.errors import (
    ConfigError,
    ShoalError,
    StorageAway,
    StorageBusy,
    StorageFailed,
    WrongKeyType,
)

_PASSING = ("MISCONF", "NOREPLICAS", "BUSY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN")
_NO_CLUSTER = "Cluster mode is not enabled"
_NO_DATABASE = "DB index is out of range"
_CLOSED = "the handler is closed"
"""The text of uvloop's RuntimeError when the other end has reset the connection."""


class ScriptError(Exception):
    """A script refused its call. The first word of the message is the reason."""


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Raise errors of redis-py as Shoal's own, with the server's address, except NoScriptError."""
    try:
        yield
    except failure.NoScriptError:
        raise
    except (failure.ConnectionError, failure.TimeoutError, OSError) as error:
        raise _away(shown, error) from None
    except failure.RedisClusterException as error:
        raise _away(shown, error) from None
    except failure.ResponseError as error:
        raise _refused(shown, error) from None
    except failure.RedisError as error:
        raise StorageFailed(f"{shown}: {error}") from None
    except RuntimeError as error:
        if _CLOSED not in str(error):
            raise
        raise _away(shown, error) from None


def _away(shown: str, error: Exception) -> ShoalError:
    """Translate a failure to connect: server away, cluster incomplete, or access refused."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConfigError(f"{shown}: {cause.verify_message}")
        if isinstance(cause, failure.AuthenticationError | failure.NoPermissionError):
            return ConfigError(f"{shown}: {cause}")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, MasterNotFoundError):
        return _without_master(shown, str(error))
    if _NO_CLUSTER in str(error):
        return ConfigError(f"{shown} is no cluster: it has a redis:// address")
    if isinstance(error, RuntimeError):
        return StorageBusy(f"{shown}: the connection was closed")
    return StorageAway(f"{shown}: {str(error) or 'no answer'}")


def _without_master(shown: str, text: str) -> ShoalError:
    """The error for a sentinel without a master. redis-py adds many lines about its connections,
    which are left out."""
    if "AuthenticationError" in text:
        return ConfigError(f"{shown}: a sentinel refuses the login (sentinel_password)")
    return StorageBusy(f"{shown}: {text.partition(' : ')[0]}")


def _refused(shown: str, error: failure.ResponseError) -> Exception:
    """Translate an error that the server has answered with."""
    text = str(error)
    if text.startswith(("UNKNOWNCRAWL", "BYEXITS", "CARRIED", "NEWER")):
        return ScriptError(text)
    if "WRONGTYPE" in text:
        return WrongKeyType(f"{shown}: {text}")
    if isinstance(error, failure.OutOfMemoryError):
        return StorageBusy(f"{shown} is out of memory (maxmemory)")
    if isinstance(error, failure.NoPermissionError) or text.startswith(_NO_DATABASE):
        return ConfigError(f"{shown}: {text}")
    passes = failure.ReadOnlyError | failure.ClusterDownError | failure.TryAgainError
    if isinstance(error, passes) or text.startswith(_PASSING):
        return StorageBusy(f"{shown}: {text}")
    return StorageFailed(f"{shown}: {text}")
