"""Chooses the session of a project's request: any account of a group, one account, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy import Request

from shoal.config import Rules
from shoal.core.identities import NO_SESSION
from shoal.core.task import MAX_SESSION_LENGTH
from shoal.frontier.admission import default_session
from shoal.scrapy.wire.pools import BY_EXITS, HERE, POOL
from shoal.scrapy.wire.tagged import Unserialisable

SESSION = "shoal_session"
"""The key of a request's meta by which a spider chooses a group, one account of it, or `none`."""

JAR = "cookiejar"
"""Scrapy's own key for the jar of a request. The jar of an identity has the identity's name."""

NO_JARS = "has cookies, and the project has no CookiesMiddleware of Scrapy's to send them"
"""Why a project cannot have sessions."""


def is_session(session: str | None) -> bool:
    """Whether a task goes with an account."""
    return session is not None and session != NO_SESSION


def nobody(identity: str) -> bool:
    """Knows no accounts."""
    return False


class Sessions:
    """Chooses the sessions for the requests of a crawl."""

    def __init__(
        self,
        rules: Rules | None = None,
        is_account: Callable[[str], bool] = nobody,
        *,
        has_jars: bool = True,
    ) -> None:
        """Without rules there are no sessions. `is_account` recognises identities, such as
        `shop#alice`; `has_jars` says whether anything can send their cookies."""
        rules = rules or Rules()
        self._groups = frozenset(rules.sessions)
        self._default = default_session(rules)
        self._is_account = is_account
        self._has_jars = has_jars

    def __bool__(self) -> bool:
        """Whether the crawl has sessions."""
        return bool(self._groups)

    def session_of(self, request: Request, scheme: str) -> str | None:
        """Return the session of a request. For one that goes without an account that is `none`, or
        None where the crawl has no default session. Raises Unserialisable."""
        meta = request.meta
        # A request without cookies goes without a session.
        is_without = meta.get("dont_merge_cookies") or scheme in HERE
        session = None if is_without else self._chosen(meta)
        if session in (None, NO_SESSION):
            return NO_SESSION if self._default is not None else None
        self._check(session, meta, scheme)
        return str(session)

    def is_identity(self, jar: Any) -> bool:
        """Whether a jar is, by its name, that of an account. Only leased requests may use such a
        jar."""
        if not isinstance(jar, str):
            return False
        group, mark, _ = jar.partition("#")
        return bool(mark) and group in self._groups

    def _chosen(self, meta: Mapping[str, Any]) -> Any:
        """Return what a request asks for, by Shoal's key or by Scrapy's own, or else the crawl's
        default."""
        if (said := meta.get(SESSION)) is not None:
            return said
        if (jar := meta.get(JAR)) is None:
            return self._default
        identity = jar if self.is_identity(jar) else self._in_default_group(jar)
        if identity is None:
            return None  # The crawl has no default session: the jar is one of Scrapy's own.
        if not self._is_account(identity):
            group = identity.partition("#")[0]
            hint = f"meta['{SESSION}'] = '{NO_SESSION}' is for other jars"
            raise Unserialisable(
                f"meta['{JAR}']", f"names no account of '{group}': {jar!r}; {hint}"
            )
        return identity

    def _in_default_group(self, jar: Any) -> str | None:
        """Return the account of the default group that a jar names without the group, or None."""
        return f"{self._default.partition('#')[0]}#{jar}" if self._default is not None else None

    def _check(self, session: Any, meta: Mapping[str, Any], scheme: str) -> None:
        group, mark, account = str(session).partition("#")
        is_named = bool(account or not mark) and len(str(session)) <= MAX_SESSION_LENGTH
        if group not in self._groups or not is_named:
            raise Unserialisable(
                f"meta['{SESSION}']", f"names no session of the crawl: {session!r}"
            )
        if scheme not in BY_EXITS:
            raise Unserialisable("its address", f"is {scheme}:, for which there are no sessions")
        if meta.get(POOL) is not None:
            raise Unserialisable(f"meta['{POOL}']", "is not for requests with a session")
        if not self._has_jars:
            raise Unserialisable("its session", NO_JARS)
