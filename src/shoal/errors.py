"""The errors that Shoal raises on purpose.

    ShoalError
    ├── ConfigError           the command, the configuration or the spider is wrong; exit code 2
    │   ├── BadUrl            a URL that cannot be crawled
    │   ├── BadField          one value of a setting, or of a table, is wrong; `field` names it
    │   ├── NewerFormat       stored in a format that only a later version knows
    │   └── MissingExtra      a feature needs optional packages that are not installed
    ├── SessionExpired        a page shows that its account is not logged in
    ├── LoginFailed           an account could not be logged in
    ├── Retry                 a spider asks for another try at a task
    ├── Drop                  a spider gives up a task that leads to nothing
    ├── UnknownCrawl          this frontier has no crawl of that name
    ├── Unserialisable        a part of a Scrapy request that cannot be serialised
    ├── Unrestorable          a task that cannot be turned back into a Scrapy request
    ├── BadPickle             a scrapy-redis entry that contains more than plain data
    ├── BadSitemap            a sitemap, or a part of it, that cannot be read
    ├── Unparsable            a page that would take too long or too much memory to parse
    ├── StorageError          a frontier or a results store cannot do its work
    │   ├── StorageBusy       temporary: locked, unreachable; worth trying again
    │   │   └── StorageAway   nothing answers at its address
    │   └── StorageFailed     permanent until somebody acts: full, read-only, corrupt
    │       └── WrongKeyType  a Redis key has another type than it should
    └── FetchError            a page could not be fetched; `retryable`: whether to try again
        ├── UnknownHost       the host name could not be looked up
        ├── BadAnswer         the answer is not HTTP, or cannot be decompressed
        ├── Refused           Shoal's own checks refused it: private address, bad scheme
        ├── OwnFault          this machine is to blame, neither the host nor the page
        │   └── Starved       the process that tried a page was ended or got no CPU time
        ├── ExitFault         an exit did not get the request to the host; `blame`: whose fault
        ├── TooLate           the permission to send lapsed before anything was sent
        └── TooLarge          the body, compressed or not, is over the limit

Errors of libraries (sqlite3, asyncpg, ...) are mapped to these in the adapter that calls the
library, and nowhere else.
"""

from __future__ import annotations


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class ConfigError(ShoalError):
    """The command, the configuration or the spider is wrong. Shown as one line, exit code 2."""


class BadUrl(ConfigError):
    """A URL that cannot be crawled."""


class BadField(ConfigError):
    """One value of a setting, or of a table, is wrong. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NewerFormat(ConfigError):
    """A crawl or a file in a format that only a later version knows. It was not changed."""


class MissingExtra(ConfigError):
    """A feature needs packages that are not installed. The message names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'shoal[{extra}]'")


class UnknownCrawl(ShoalError):
    """This frontier has no crawl of that name."""

    def __init__(self, crawl: str) -> None:
        super().__init__(f"no crawl named '{crawl}' here")
        self.crawl = crawl


class SessionExpired(ShoalError):
    """A page shows that its account is not logged in. If a handler raises it, the task is tried
    again after the account has logged in again."""


class LoginFailed(ShoalError):
    """An account could not be logged in: a wrong password, no proof. It rests and tries again."""


class StorageError(ShoalError):
    """A frontier or a results store cannot do its work."""


class StorageBusy(StorageError):
    """Temporary: the store is locked or unreachable. Nothing was written; try again."""


class StorageAway(StorageBusy):
    """Nothing answers at the address of the store."""


class StorageFailed(StorageError):
    """Permanent until somebody acts: disk full, read-only, corrupt. Nothing was written."""


class WrongKeyType(StorageFailed):
    """A Redis key has another type than it should: another application uses it."""


class Unparsable(ShoalError):
    """A page, probably hostile, that would take too long or too much memory to parse."""


class FetchError(ShoalError):
    """A page could not be fetched."""

    kind = "connection"
    """A `core.failures.FailureKind`, unless the cause tells more: see `core.failures.kind_of`."""
    retryable = True
    wire_bytes = 0
    """The bytes that went over the network anyway: see `fetch.port.Transfer`."""


class UnknownHost(FetchError):
    """The host name could not be looked up."""

    kind = "dns"


class BadAnswer(FetchError):
    """The answer is not HTTP, or cannot be decompressed."""

    kind = "protocol"


class Refused(FetchError):
    """Shoal's own checks refused the request. Trying again would give the same result."""

    kind = "refused"
    retryable = False


class OwnFault(FetchError):
    """This machine is to blame: out of sockets, processes or memory. No request was sent, or its
    answer could not be read."""

    kind = "other"


class Starved(OwnFault):
    """The process that tried a page was ended from outside or got no CPU time. If that happens
    repeatedly, the page may be the cause."""


class ExitFault(FetchError):
    """An exit did not get a request to the host. Nothing was sent to the host."""

    def __init__(self, message: str, blame: str) -> None:
        """`blame` is a `core.exits.Blame`: EXIT, PAIR or FORGED."""
        super().__init__(message)
        self.blame = blame


class TooLate(FetchError):
    """The permission to send lapsed, for example while connecting. Nothing was sent."""


class TooLarge(FetchError):
    """The body, compressed or decompressed, is over the limit."""

    kind = "too_large"
    retryable = False


def unreachable(error: StorageBusy) -> ConfigError:
    """The error for a store that is away before work has begun: its address may be wrong."""
    return ConfigError(f"cannot be reached: {error} (is the address right, and is it running?)")


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first ShoalError in a group of errors; the group itself if it contains none.

    `except*` would be shorter, but before Python 3.11.4 it wraps everything raised in it.
    """
    ours: BaseException | None = group.subgroup(ShoalError)
    while isinstance(ours, BaseExceptionGroup):
        ours = ours.exceptions[0]
    return ours or group
