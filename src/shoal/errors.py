"""Everything Shoal raises on purpose.

    ShoalError
    ├── ConfigError           the command, the configuration or the spider is wrong; exit code 2
    │   ├── BadUrl            an address that cannot be crawled
    │   ├── BadField          one value of a setting, or of a table, is wrong; `field` names it
    │   ├── NewerFormat       stored in a form that only a later version knows
    │   └── MissingExtra      a feature whose optional packages are not installed
    ├── SessionExpired        a page that only who is logged in may see showed that we are not
    ├── LoginFailed           an account could not be logged in
    ├── Retry                 a spider asks for another try at a task
    ├── Drop                  a spider says that nothing is to be had of a task
    ├── UnknownCrawl          no crawl of that name in this frontier
    ├── Unserialisable        a request of Scrapy's that cannot be put into words
    ├── Unrestorable          a task that no request can be made of
    ├── BadPickle             an entry of scrapy-redis that holds more than plain data
    ├── BadSitemap            a sitemap, or a part of it, that cannot be read
    ├── StorageError          a frontier or a results store cannot do its work
    │   ├── StorageBusy       it will pass: locked, unreachable; worth trying again
    │   │   └── StorageAway   nobody answers at its address
    │   └── StorageFailed     it will not pass by itself: full, read-only, corrupt
    └── FetchError            a page could not be had; `retryable` says if trying again may help
        ├── UnknownHost       its name could not be looked up
        ├── BadAnswer         what came is no HTTP, or cannot be unpacked
        ├── Refused           our own guard said no: private address, bad scheme
        ├── OwnFault          our own machine could not: neither the host nor the page is to blame
        │   └── Starved       it ended or starved what tries a page; perhaps the page is why
        ├── ExitFault         an exit did not get it as far as the host; `blame`: whose fault it is
        └── TooLarge          the body, or what it decompresses to, is over the limit

Errors of libraries (sqlite3, asyncpg, ...) are mapped to these at the edge, in the adapter that
calls the library, and nowhere else.
"""

from __future__ import annotations


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class ConfigError(ShoalError):
    """The command, the configuration or the spider is wrong. Shown as one line, exit code 2."""


class BadUrl(ConfigError):
    """An address that cannot be crawled."""


class BadField(ConfigError):
    """A value that somebody wrote is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NewerFormat(ConfigError):
    """A crawl or a file in a form that only a later version knows. Nothing was done to it."""


class MissingExtra(ConfigError):
    """A feature needs packages that are not installed. The message names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'shoal[{extra}]'")


class UnknownCrawl(ShoalError):
    """No crawl of that name in this frontier."""

    def __init__(self, crawl: str) -> None:
        super().__init__(f"no crawl named '{crawl}' here")
        self.crawl = crawl


class SessionExpired(ShoalError):
    """A page shows that its identity is logged out. From a handler: the task is sent back, and the
    account logs in again."""


class LoginFailed(ShoalError):
    """An account could not be logged in: a wrong password, no proof. It rests, and tries again."""


class StorageError(ShoalError):
    """A frontier or a results store cannot do its work."""


class StorageBusy(StorageError):
    """It will pass: locked, unreachable. Nothing was written; trying again is right."""


class StorageAway(StorageBusy):
    """Nobody answers at its address."""


class StorageFailed(StorageError):
    """It will not pass by itself: disk full, read-only, corrupt. Nothing was written."""


class WrongKeyType(StorageFailed):
    """A key of Redis holds another type of value than it should: it is somebody else's."""


class Unparsable(ShoalError):
    """A page made to be parsed for hours, or into more memory than there is."""


class FetchError(ShoalError):
    """A page could not be had."""

    kind = "connection"
    """A `core.failures.FailureKind`, unless the cause says more: see `core.failures.kind_of`."""
    retryable = True
    wire_bytes = 0
    """What went over the network all the same: see `fetch.port.Transfer`."""


class UnknownHost(FetchError):
    """The name of the host could not be looked up."""

    kind = "dns"


class BadAnswer(FetchError):
    """What came is no HTTP, or cannot be unpacked."""

    kind = "protocol"


class Refused(FetchError):
    """Our own guard said no; asking again would give the same answer."""

    kind = "refused"
    retryable = False


class OwnFault(FetchError):
    """Our own machine could not: no sockets, no processes, no memory. No request was sent, or its
    answer could not be read."""

    kind = "other"


class Starved(OwnFault):
    """The process that tries a page was ended from outside, or got no time. If that happens again
    and again, the page may be why."""


class ExitFault(FetchError):
    """A request by an exit did not get as far as the host: nothing of it was sent there."""

    def __init__(self, message: str, blame: str) -> None:
        """`blame` is a `core.exits.Blame`: EXIT, PAIR or FORGED."""
        super().__init__(message)
        self.blame = blame


class TooLate(FetchError):
    """The permission to send lapsed, for instance while a connection was made: nothing was sent."""


class TooLarge(FetchError):
    """The body, or what it decompresses to, is over the limit."""

    kind = "too_large"
    retryable = False


def unreachable(error: StorageBusy) -> ConfigError:
    """What it means that a store is away before work has begun: the address may be wrong."""
    return ConfigError(f"cannot be reached: {error} (is the address right, and is it running?)")


def cause_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of ours in a task group's errors; the group itself if there is none.

    `except*` would be shorter, but before Python 3.11.4 it wraps whatever is raised in it.
    """
    ours: BaseException | None = group.subgroup(ShoalError)
    while isinstance(ours, BaseExceptionGroup):
        ours = ours.exceptions[0]
    return ours or group
