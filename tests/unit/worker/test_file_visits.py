"""Visits to files: what is stored, what is asked for again, and what is told of the rest."""

from __future__ import annotations

from math import inf
from typing import Any, cast

import pytest
from multidict import CIMultiDict

from shoal.config import Rules, Settings
from shoal.core.files import (
    FileStatus,
    StoredFile,
    file_task,
    is_large,
    known_as,
    no_file,
)
from shoal.errors import FetchError, Refused, TooLarge
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry, Lease, Verdict
from shoal.results.port import Results, RunNote
from shoal.worker.report import Report
from shoal.worker.slots import nobody_waits
from shoal.worker.visits.file_visits import (
    EarlierFiles,
    FileJudge,
    FileReader,
    FileVisits,
    for_files,
    for_large_files,
    large_files_at_once,
)
from shoal.worker.visits.visitor import Visitor
from unit.worker.test_sitemap_visits import Answering

RULES = Rules(robots=False, max_retries=0, file_types=("image/*",))
SETTINGS = Settings(max_body_bytes=100, max_file_bytes=1_000, concurrency=20)
ADMISSION = Admission(RULES)
URL = "https://shop.example/a.png"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 10


def answer(status: int = 200, body: bytes = PNG, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response("", status, CIMultiDict(named), body, 0.1)


async def visit(
    given: Response | FetchError, entry: Entry | None = None, **settings: Any
) -> Report:
    entry = entry or ADMISSION.admit(file_task(URL, None))
    limits = Settings(**settings) if settings else SETTINGS
    reader, judge = FileReader(RULES), FileJudge(RULES, ADMISSION, limits)
    visits = FileVisits(Visitor("worker", Answering(given), reader, judge), limits)
    lease = Lease(entry.fingerprint, "token", entry.task, robots_at=0.0)
    return await visits.visit(lease, inf, nobody_waits)


async def test_a_file_is_handed_over_with_what_is_known_of_it() -> None:
    report = await visit(answer(ETag='"1"', Content_Type="image/jpeg"))
    (file,) = report.files
    assert (file.status, file.type, file.size) == (FileStatus.DONE, "image/png", len(PNG))
    assert (file.url, file.etag, file.fingerprint) == (URL, '"1"', report.outcome.lease.fingerprint)
    assert (report.file_body, report.outcome.files) == (PNG, 1)
    assert (report.outcome.verdict, report.items) == (Verdict.DONE, [])


@pytest.mark.parametrize(
    ("given", "status", "error"),
    [
        (answer(404), FileStatus.DROPPED, "HTTP 404"),
        (answer(500), FileStatus.DEAD, "HTTP 500"),
        (answer(body=b""), FileStatus.DROPPED, "the file is empty"),
        (
            answer(body=b"<html>", Content_Type="image/png"),
            FileStatus.DROPPED,
            "it is text/html, and wanted are image/* (file_types)",
        ),
        (Refused("private address"), FileStatus.DEAD, "private address"),
        (
            answer(302, Location="data:,x"),
            FileStatus.DEAD,
            "redirected: not an http(s) URL: 'data:,x'",
        ),
    ],
)
async def test_what_is_no_file_is_told_with_its_reason(
    given: Response | FetchError, status: FileStatus, error: str
) -> None:
    report = await visit(given)
    (file,) = report.files
    assert (file.status, file.error) == (status, error)
    assert (report.file_body, report.outcome.files) == (None, 0)
    assert not report.outcome.follow_ups


async def test_a_try_that_is_repeated_tells_nothing_yet() -> None:
    rules = Rules(robots=False)
    visits = FileVisits(
        Visitor(
            "w", Answering(answer(500)), FileReader(rules), FileJudge(rules, ADMISSION, SETTINGS)
        ),
        SETTINGS,
    )
    entry = ADMISSION.admit(file_task(URL, None))
    lease = Lease(entry.fingerprint, "token", entry.task, robots_at=0.0)
    report = await visits.visit(lease, inf, nobody_waits)
    assert (report.outcome.verdict, report.files) == (Verdict.RETRY, [])


async def test_one_that_is_larger_than_a_page_is_asked_for_again_with_room() -> None:
    first = await visit(TooLarge("large"))
    assert (first.outcome.verdict, first.files) == (Verdict.DONE, [])
    (again,) = first.outcome.follow_ups
    assert is_large(again.task)
    (file,) = (await visit(answer(), again)).files
    assert file.fingerprint == first.outcome.lease.fingerprint
    last = await visit(TooLarge("large"), again)
    assert last.outcome.verdict is Verdict.DEAD
    assert last.files[0].error == "larger than 1000 bytes (max_file_bytes)"


async def test_where_files_may_be_no_larger_than_pages_nothing_is_asked_for_again() -> None:
    report = await visit(TooLarge("large"), max_body_bytes=100, max_file_bytes=50)
    assert report.outcome.verdict is Verdict.DEAD
    assert report.files[0].error == "larger than 50 bytes (max_file_bytes)"


async def test_what_a_redirect_leads_to_is_the_same_file() -> None:
    first = await visit(answer(302, Location="/b.png"))
    (target,) = first.outcome.follow_ups
    known = first.outcome.lease.fingerprint
    assert known_as(target.task, target.fingerprint) == known
    assert (await visit(answer(), target)).files[0].fingerprint == known
    ended = await visit(answer(302, Location="/a.png"), target)
    assert (ended.outcome.verdict, ended.files[0].fingerprint) == (Verdict.DEAD, known)


def test_large_files_take_no_more_memory_than_pages() -> None:
    assert (for_files(SETTINGS).max_body_bytes, for_large_files(SETTINGS).max_body_bytes) == (
        100,
        1_000,
    )
    assert large_files_at_once(SETTINGS) == 2
    assert large_files_at_once(Settings(max_body_bytes=1, max_file_bytes=1_000)) == 1
    assert large_files_at_once(Settings()) == 4
    assert for_files(Settings(max_file_bytes=5)).max_body_bytes == 5


@pytest.mark.parametrize(
    ("types", "is_known"), [((), True), (("image/*",), True), (("application/pdf",), False)]
)
async def test_what_is_not_wanted_any_more_is_not_asked_for_as_known(
    types: tuple[str, ...], is_known: bool
) -> None:
    entry = ADMISSION.admit(file_task(URL, None))
    file = no_file(URL, "", 1.0)
    file.status, file.type, file.etag = FileStatus.DONE, "image/png", '"1"'

    class Stored:
        async def note_of(self, crawl: str) -> RunNote:
            return RunNote("x", file_store="file:/files")

        async def files_of(self, crawl: str, keys: list[bytes]) -> dict[bytes, StoredFile]:
            return dict.fromkeys(keys, file)

    earlier = EarlierFiles(cast(Results, Stored()), "monday", "file:/files", types)
    known = await earlier.page(Lease(entry.fingerprint, "token", entry.task))
    assert (known is not None) == is_known
