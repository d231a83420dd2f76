"""Tries and losses are counted up to a limit, at which every task ends, whatever its rules say."""

from __future__ import annotations

import pytest

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.policy import MAX_LOSSES, MAX_TRIES
from shoal.frontier.admission import Admission
from shoal.frontier.values import TaskState, Verdict
from shoal.worker.visits.outcomes import Judge
from support.frontiers import CRAWL, HOST, Backend, entry, pages

ENDLESS = 100_000


class TestTries:
    @pytest.mark.parametrize("of_task", [None, ENDLESS], ids=["rules", "task"])
    async def test_a_task_that_always_fails_dies(
        self, backend: Backend, of_task: int | None
    ) -> None:
        client = backend.client()
        rules = Rules(max_retries=3 if of_task else ENDLESS)
        judge = Judge(rules, Admission(rules))
        page = entry(f"{HOST}/", max_retries=of_task, retry_count=MAX_TRIES - 20)
        await client.start(page, max_retries=rules.max_retries)
        tries = 0
        while leases := await client.lease():
            tries += 1
            assert tries <= 20
            failed = judge.failed(leases[0], "bad", 0.5, kind=FailureKind.OTHER, retryable=True)
            await client.finish(failed)
            await backend.advance(failed.retry_in_s + 1.0)
        record = await client.record(page)
        assert (record.state, record.task.retry_count) == (TaskState.DEAD, MAX_TRIES)
        assert tries == 20, record

    async def test_whatever_is_said_of_it_no_more_are_counted(self, backend: Backend) -> None:
        """The limit of tries may be somebody else's, for example a middleware's of Scrapy."""
        client = backend.client()
        page = entry(f"{HOST}/", retry_count=MAX_TRIES - 3)
        await client.start(page)
        for _ in range(6):
            await client.end(await client.lease_one(), Verdict.RETRY)
        assert (await client.lease_one()).task.retry_count == MAX_TRIES

    @pytest.mark.parametrize("before", [0, 3, MAX_TRIES, MAX_TRIES + 1, ENDLESS])
    async def test_those_before_it_came_here_count(self, backend: Backend, before: int) -> None:
        client = backend.client()
        page = entry(f"{HOST}/", retry_count=before)
        await client.start(page)
        assert (await client.record(page)).task.retry_count == min(before, MAX_TRIES)
        assert (await client.lease_one()).task.retry_count == min(before, MAX_TRIES)
        assert await client.frontier.release(CRAWL, client.worker) == 1
        assert (await client.lease_one()).task.retry_count == min(before, MAX_TRIES)


class TestLosses:
    async def test_a_task_that_takes_every_worker_dies(self, backend: Backend) -> None:
        client = backend.client()
        (page,) = pages(1)
        await client.start(page, max_losses=ENDLESS)
        lost = 0
        while await client.lease():
            lost += await client.frontier.release(CRAWL, client.worker)
            assert lost <= MAX_LOSSES
        record = await client.record(page)
        assert (record.state, record.losses, lost) == (TaskState.DEAD, MAX_LOSSES, MAX_LOSSES)
        assert record.reason == f"poison: {MAX_LOSSES} workers died with it"
