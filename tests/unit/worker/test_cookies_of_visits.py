"""Which cookies a visit has, what its answer changes, and which redirects are a loop."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from shoal.config import Rules
from shoal.core.cookies import EMPTY, Jar, changes
from shoal.core.policy import MAX_REDIRECTS
from shoal.core.task import Task
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Verdict
from shoal.worker.visits.cookies import header_for, note_cookies
from shoal.worker.visits.outcomes import Judge
from shoal.worker.visits.page_reader import _raw
from shoal.worker.visits.visitor import Visit

NOW = 1_800_000_000.0
URL = "http://a.example/account"


def jar(*lines: str, url: str = URL, now: float = NOW) -> Jar:
    return EMPTY.after(changes(EMPTY, lines, url, now), now)


def leased(task: Task, cookies: Jar | None = None) -> Lease:
    task.site = task.url.split("/")[2]
    return Lease(bytes(8), "token", task, cookies=cookies)


def answer(task: Task, *lines: str, location: str = "") -> Response:
    headers = CIMultiDict([("Set-Cookie", line) for line in lines])
    if location:
        headers["Location"] = location
    return Response(task.url, 302 if location else 200, headers, b"", 0.1)


def redirected(lease: Lease, location: str, *lines: str, cookies: str = "visit") -> Outcome:
    rules = Rules(cookies=cookies)  # type: ignore[arg-type]
    judge = Judge(rules, Admission(rules))
    return judge.answered(lease, answer(lease.task, *lines, location=location), NOW, 0.5)


def target(outcome: Outcome) -> Task:
    assert outcome.verdict is Verdict.DONE, outcome.reason
    (entry,) = outcome.follow_ups
    return entry.task


def sent(task: Task, cookies: Jar | None = None) -> str:
    return header_for(leased(task, cookies), NOW)


class TestRedirect:
    def test_brings_along_what_was_set_on_the_way(self) -> None:
        login = target(redirected(leased(Task(url=URL)), "/login", "a=1", "b=2; path=/"))
        assert sent(login) == "a=1; b=2" or sent(login) == "b=2; a=1"
        account = target(redirected(leased(login), "/account", "a=; max-age=0", "c=3"))
        assert sent(account) == "b=2; c=3"

    def test_to_another_site_and_back(self) -> None:
        away = target(redirected(leased(Task(url=URL)), "http://b.example/", "a=1"))
        assert sent(away) == ""
        back = target(redirected(leased(away), "http://a.example/x", "b=2"))
        assert sent(back) == "a=1"

    def test_in_a_chain_the_frontier_keeps_them(self) -> None:
        lease = leased(Task(url=URL, chain="c"), jar("a=1"))
        outcome = redirected(lease, "/login", "b=2")
        note_cookies(outcome, answer(lease.task, "b=2"), NOW)
        assert target(outcome).cookies is None
        assert sent(target(outcome), outcome.cookies) == "a=1; b=2"

    def test_to_another_host_brings_them_along_in_a_chain_too(self) -> None:
        """On a cluster, another shard may keep the chain there."""
        lease = leased(Task(url="http://login.shop.example/", chain="c"))
        there = target(redirected(lease, "http://shop.example/", "a=1; domain=shop.example"))
        assert sent(there) == "a=1"
        newer = jar("a=2; domain=shop.example", url=there.url, now=NOW + 1)
        assert sent(there, newer) == "a=2"

    def test_without_the_rule_nothing_is_brought_along(self) -> None:
        task = target(redirected(leased(Task(url=URL)), "/login", "a=1", cookies="off"))
        assert (task.cookies, task.cookies_since) == (None, 0)


class TestLoop:
    def test_with_other_cookies_it_is_another_request(self) -> None:
        login = target(redirected(leased(Task(url=URL)), "/login"))
        account = target(redirected(leased(login), "/account", "sid=1"))
        assert account.redirects == [URL, "http://a.example/login"]
        assert account.dont_filter, "else it would be known already"

    @pytest.mark.parametrize("line", ["sid=1", "sid=1; max-age=99", "other=; max-age=0"])
    def test_with_the_same_cookies_it_is_a_loop(self, line: str) -> None:
        first = target(redirected(leased(Task(url=URL)), "/account", "sid=1"))
        assert "in a loop" in redirected(leased(first), "/account", line).reason

    def test_a_cookie_that_is_deleted_makes_another_request(self) -> None:
        first = target(redirected(leased(Task(url=URL)), "/account", "sid=1"))
        again = target(redirected(leased(first), "/account", "sid=; max-age=0"))
        assert sent(again) == ""

    def test_goes_on_no_longer_than_redirects_may(self) -> None:
        task = Task(url=URL)
        for number in range(MAX_REDIRECTS):
            task = target(redirected(leased(task), "/account", f"n={number}"))
        outcome = redirected(leased(task), "/account", "n=last")
        assert outcome.reason == f"more than {MAX_REDIRECTS} redirects, from {URL}"

    def test_in_a_chain_as_well(self) -> None:
        first = target(redirected(leased(Task(url=URL, chain="c")), "/account", "sid=1"))
        again = redirected(leased(first, jar("sid=1")), "/account", "sid=1")
        assert "in a loop" in again.reason


class TestChain:
    def noted(self, lease: Lease, *lines: str) -> Jar | None:
        outcome = Outcome(lease=lease, verdict=Verdict.RETRY)
        note_cookies(outcome, answer(lease.task, *lines), NOW)
        return outcome.cookies

    def test_keeps_what_an_answer_sets_whatever_became_of_the_task(self) -> None:
        kept = self.noted(leased(Task(url=URL, chain="c"), jar("a=1")), "b=2")
        assert kept is not None
        assert kept.header(URL, NOW) == "a=1; b=2"

    def test_what_changes_nothing_is_not_stored_again(self) -> None:
        assert self.noted(leased(Task(url=URL, chain="c"), jar("a=1"))) is None
        assert self.noted(leased(Task(url=URL, chain="c"))) is None

    def test_that_all_are_gone_is_a_change(self) -> None:
        assert self.noted(leased(Task(url=URL, chain="c"), jar("a=1")), "a=; max-age=0") == EMPTY

    def test_keeps_what_a_redirect_brought_along(self) -> None:
        assert self.noted(leased(Task(url=URL, chain="c", cookies=jar("a=1")))) == jar("a=1")

    def test_a_task_without_one_keeps_nothing(self) -> None:
        assert self.noted(leased(Task(url=URL)), "a=1") is None


def test_of_plain_headers_there_is_one_line() -> None:
    assert Response(URL, 200, {"Set-Cookie": "a=1"}, b"", 0.1).set_cookies == ["a=1"]
    assert Response(URL, 200, {}, b"", 0.1).set_cookies == []


def test_they_are_not_archived() -> None:
    task = Task(url=URL, cookies=jar("sid=canary"), meta={"a": 1})
    raw = _raw(Visit("worker", leased(task), answer(task, "sid=canary"), NOW), keeps_cookies=True)
    assert (raw.task.cookies, raw.task.meta) == (None, {"a": 1})
    assert raw.headers == []
    assert task.cookies is not None


def test_where_none_are_kept_the_page_is_archived_as_it_came() -> None:
    task = Task(url=URL)
    raw = _raw(Visit("worker", leased(task), answer(task, "a=1"), NOW), keeps_cookies=False)
    assert raw.headers == [("Set-Cookie", "a=1")]
