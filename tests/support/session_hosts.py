"""A fake host for tests of sessions: tests define its answers, and it records the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from multidict import CIMultiDict

from shoal.core.task import Task
from shoal.spider.page import Page

SITE = "https://shop.example"
ALICE = {"user": "alice", "password": "canary"}


class Host:
    """Answers each path as defined (status, body, headers), others with an empty page."""

    def __init__(self, **answers: tuple[int, str, Iterable[tuple[str, str]]]) -> None:
        self.answers = answers
        self.asked: list[Task] = []
        self.cookies: list[str] = []
        self.under_way = self.most = 0

    async def send(self, task: Task, cookies: str) -> Page:
        self.asked.append(task)
        self.cookies.append(cookies)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        path = task.url.split("/", 3)[3].partition("?")[0]
        status, body, headers = self.answers.get(path, (200, "", ()))
        return Page(
            url=task.url,
            status=status,
            headers=CIMultiDict([("Content-Type", "text/html"), *headers]),
            body=body.encode(),
            task=task,
            fingerprint=b"",
            session="shop#alice",
        )

    @property
    def lines(self) -> list[str]:
        return [f"{task.method} {task.url}" for task in self.asked]


def to(url: str, status: int = 302, *cookies: str) -> tuple[int, str, list[tuple[str, str]]]:
    return status, "", [("Location", url), *(("Set-Cookie", line) for line in cookies)]
