"""Translates errors of asyncpg (PostgreSQL): which pass, which do not, which are wrong setup."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from asyncpg import exceptions as failure

from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageFailed

_PASSING = (
    failure.PostgresConnectionError,
    failure.InsufficientResourcesError,  # Out of connections, memory or disk space.
    failure.OperatorInterventionError,  # Starting, stopping, restarting after a crash.
    failure.TransactionRollbackError,
    failure.LockNotAvailableError,
    failure.ReadOnlySQLTransactionError,  # A standby: some server will become the primary.
    failure.PostgresSystemError,
)
_SET_UP_WRONG = (
    failure.InvalidAuthorizationSpecificationError,
    failure.InvalidCatalogNameError,
    failure.InsufficientPrivilegeError,
    failure.UndefinedObjectError,
    failure.InvalidSchemaNameError,
    failure.CantChangeRuntimeParamError,
    failure.FeatureNotSupportedError,
)
_FORGOTTEN = (
    failure.DuplicatePreparedStatementError,
    failure.InvalidSQLStatementNameError,
)
_REJECTING = (
    failure.DataError,
    failure.IntegrityConstraintViolationError,
    failure.ProgramLimitExceededError,
)


class RowRejected(StorageFailed):
    """The database does not accept a value in a row, and would not accept it later either."""


@contextmanager
def noticing_rejections() -> Iterator[None]:
    """Raise RowRejected if the server, or asyncpg before it, does not accept a value."""
    try:
        yield
    except (*_REJECTING, asyncpg.DataError, UnicodeError) as error:
        # Leave out the details, which name positions in the database that differ each time.
        reason = error if isinstance(error, UnicodeError) else error.args[0]
        raise RowRejected(" ".join(str(reason).split())) from error


@contextmanager
def translated(shown: str) -> Iterator[None]:
    """Raise errors of asyncpg as Shoal's own, with the server's address."""
    try:
        yield
    except asyncpg.PostgresError as error:
        raise _answered(shown, error) from error
    except (asyncpg.InternalClientError, failure.TargetServerAttributeNotMatched) as error:
        raise StorageBusy(f"{shown}: {error}") from error
    except failure.ClientConfigurationError as error:
        raise ConfigError(f"{shown}: {error}") from None
    except asyncpg.InterfaceError as error:
        raise StorageBusy(f"{shown}: {' '.join(str(error).split())}") from error
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(f"{shown}: {error.verify_message}") from None
    except ConnectionError as error:  # asyncpg also raises it for a server without TLS.
        raise StorageBusy(f"{shown}: {error or 'the connection was closed'}") from error
    except TimeoutError as error:
        raise StorageBusy(f"{shown}: no answer") from error
    except OSError as error:
        raise StorageBusy(f"{shown}: {error.strerror or error}") from error


def _answered(shown: str, error: asyncpg.PostgresError) -> ShoalError:
    """Translate an error that the server has answered with."""
    text = " ".join(str(error.args[0]).split())
    if isinstance(error, _FORGOTTEN):
        return ConfigError(
            f"{shown}: {text}: is there a PgBouncer in between? Add ?prepared=no to the address"
        )
    if isinstance(error, _PASSING):
        return StorageBusy(f"{shown}: {text}")
    if isinstance(error, _SET_UP_WRONG):
        return ConfigError(f"{shown}: {text}")
    return StorageFailed(f"{shown}: {text}")
