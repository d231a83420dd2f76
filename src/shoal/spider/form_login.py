"""Logins with a form that shoal.toml describes, without code of the user."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from shoal.core.session_config import COLUMN, SessionConfig
from shoal.errors import LoginFailed
from shoal.spider.page import Page
from shoal.spider.session import Session, place


async def log_in_by_form(
    session: Session, table: SessionConfig, is_logged_in: Callable[[Page], bool]
) -> Page:
    """Fill in the table's form with the values of the account and send it. Returns the next page.

    If there is no form because the account is already logged in, that is a success. Raises
    LoginFailed.
    """
    page = await session.get(table.login_url)
    if not page.css(table.form):
        if is_logged_in(page):
            return page
        raise LoginFailed(f"no form {table.form!r} on {place(page.url)} (HTTP {page.status})")
    try:
        return await session.submit(
            page, table.form, filled(table.fields, session.account), button=table.button or None
        )
    except ValueError as error:
        raise LoginFailed(str(error)) from None


def filled(fields: Mapping[str, str], account: Mapping[str, str]) -> dict[str, str]:
    """The values of a form: `{password}` stands for that column of the account. Raises LoginFailed
    if there is no such column."""

    def column(match: re.Match[str]) -> str:
        if match[1] not in account:
            raise LoginFailed(f"the account has no column {match[1]!r:.60}")
        return account[match[1]]

    return {name: COLUMN.sub(column, text) for name, text in fields.items()}
