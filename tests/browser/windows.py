"""A window of a real browser, which notes whatever a page does that it should not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from playwright.sync_api import BrowserContext, Page, expect

from support.until import LIMIT_S

T = TypeVar("T")

WIDE, PHONE = 1440, 390
POLL_MS = 2000
expect.set_options(timeout=LIMIT_S * 1000)


def apart(call: Callable[[], T]) -> T:
    """Call something in a thread: the browser's own event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def apart_run(coming: Coroutine[Any, Any, T]) -> T:
    """Await something in a thread."""
    return apart(lambda: asyncio.run(coming))


class Watched:
    """A window in which nothing goes unnoticed."""

    def __init__(self, context: BrowserContext, base: str, *, is_fast: bool = False) -> None:
        """`is_fast`: its clock stands, and `look_again` lets two seconds pass at once."""
        self.page: Page = context.new_page()
        self.base = base
        self.wrong: list[str] = []
        self._is_fast = is_fast
        if is_fast:
            self.page.clock.install()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", self._on_dialog)
        self.page.on("request", self._on_request)

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):  # Violations of the policy are among them.
            self.wrong.append(f"console: {message.text}")

    def _on_dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith(f"{self.base}/"):
            self.wrong.append(f"request: {request.url}")

    def open(self, path: str) -> Page:
        """Open a page of ours."""
        self.page.goto(self.base + path)
        return self.page

    def look_again(self) -> None:
        """Wait until the page has asked for what has changed, if it does."""
        if self.page.locator("body[data-live]").count():
            if self._is_fast:
                self.page.clock.run_for(POLL_MS)
            self.has_status("live")

    def has_status(self, text: str) -> None:
        """Wait until the head of the page says so."""
        expect(self.page.locator("#status")).to_have_text(text)
