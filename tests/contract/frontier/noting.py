"""Coordinators: their leader, and the notes they share."""

from __future__ import annotations

import asyncio

import pytest

from shoal.frontier.board import Deposed, Leader
from support.frontiers import Backend


class TestLeading:
    """There is one leader at a time. The numbers of terms only grow."""

    async def test_a_clock_that_goes_back_gives_nobody_more_time(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        await backend.advance(-7200.0)
        assert await notes.lead("other", 5.0) is None
        await backend.advance(5.5)
        assert await notes.lead("other", 5.0)

    async def test_and_deposes_nobody(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        leader = await notes.lead("one", 5.0)
        await backend.advance(-7200.0)
        for _ in range(4):
            assert await notes.lead("other", 5.0) is None
            assert await notes.lead("one", 5.0) == leader
            await backend.advance(1.0)

    async def test_the_first_who_asks_leads(self, backend: Backend) -> None:
        one, other = backend.frontier.notes, backend.open_another().notes
        assert await one.leader() is None
        assert await one.lead("one", 5.0) == Leader("one", 1)
        assert await other.lead("other", 5.0) is None
        assert await other.leader() == Leader("one", 1)

    async def test_of_many_who_ask_at_once_one_leads(self, backend: Backend) -> None:
        notes = [backend.open_another().notes for _ in range(5)]
        asked = (at.lead(f"holder {number}", 5.0) for number, at in enumerate(notes))
        leaders = [leader for leader in await asyncio.gather(*asked) if leader]
        assert [leader.term for leader in leaders] == [1]

    async def test_a_leader_goes_on_in_its_term(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        for _ in range(4):
            assert await notes.lead("one", 5.0) == Leader("one", 1)
            await backend.advance(4.0)
            assert await notes.lead("other", 5.0) is None

    async def test_one_that_is_silent_is_followed(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        await backend.advance(5.5)
        assert await notes.leader() is None
        assert await notes.lead("other", 5.0) == Leader("other", 2)
        assert await notes.lead("one", 5.0) is None

    async def test_one_that_was_late_and_that_nobody_followed_goes_on(
        self, backend: Backend
    ) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        await backend.advance(50.0)
        assert await notes.lead("one", 5.0) == Leader("one", 1)

    async def test_who_resigns_is_followed_at_once(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        await notes.resign("other")
        assert await notes.leader() == Leader("one", 1)
        await notes.resign("one")
        assert await notes.leader() is None
        assert await notes.lead("other", 5.0) == Leader("other", 2)

    async def test_a_new_term_after_resigning(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.lead("one", 5.0)
        await notes.resign("one")
        assert await notes.lead("one", 5.0) == Leader("one", 2)


class TestNotes:
    """Notes are written, read and deleted. Writes under a term that is over are refused."""

    async def test_topics_are_apart(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.write("runs", "b", b"2")
        await notes.write("runs", "a", b"\x00\xff")
        await notes.write("runs/past", "c", b"3")
        assert await notes.all("runs") == {"a": b"\x00\xff", "b": b"2"}
        assert list(await notes.all("runs")) == ["a", "b"]
        assert await notes.read("runs", "c") is None
        assert await notes.all("run") == {}

    async def test_written_again_and_deleted(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        await notes.write("runs", "a", b"1")
        await notes.write("runs", "a", b"2")
        assert await notes.read("runs", "a") == b"2"
        await notes.write("runs", "a", None)
        await notes.write("runs", "a", None)
        assert await notes.read("runs", "a") is None

    async def test_of_many_who_have_read_the_same_one_writes(self, backend: Backend) -> None:
        notes = [backend.open_another().notes for _ in range(5)]
        for known in (None, b"", b"older"):
            if known is not None:
                await notes[0].write("topic", "name", known)
            swaps = (at.swap("topic", "name", known, b"%d" % n) for n, at in enumerate(notes))
            done = await asyncio.gather(*swaps)
            assert sum(done) == 1
            assert await notes[0].read("topic", "name") == b"%d" % done.index(True)
        assert not await notes[0].swap("topic", "name", None, b"another")
        assert not await notes[0].swap("topic", "none", b"something", b"another")
        assert await notes[0].read("topic", "none") is None

    async def test_a_deposed_leader_writes_nothing(self, backend: Backend) -> None:
        notes, others = backend.frontier.notes, backend.open_another().notes
        leader = await notes.lead("one", 5.0)
        await notes.write("runs", "a", b"1", leader)
        await backend.advance(5.5)
        later = await others.lead("other", 5.0)
        for text in (b"old", None):
            with pytest.raises(Deposed):
                await notes.write("runs", "a", text, leader)
        assert await others.read("runs", "a") == b"1"
        await others.write("runs", "a", b"new", later)
        assert await others.read("runs", "a") == b"new"
        await others.write("runs", "a", None, later)
        assert await others.read("runs", "a") is None

    async def test_a_term_is_its_leaders_alone(self, backend: Backend) -> None:
        """A replica that takes over may use a term's number again if it missed that term."""
        notes = backend.frontier.notes
        leader = await notes.lead("one", 5.0)
        assert leader is not None
        for text in (b"old", None):
            with pytest.raises(Deposed):
                await notes.write("runs", "a", text, Leader("other", leader.term))
        await notes.write("runs", "a", b"1", leader)
        assert await notes.read("runs", "a") == b"1"

    async def test_who_was_late_but_not_followed_may_write(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        leader = await notes.lead("one", 5.0)
        await backend.advance(50.0)
        await notes.write("runs", "a", b"1", leader)
        assert await notes.read("runs", "a") == b"1"

    async def test_who_has_resigned_may_not_write(self, backend: Backend) -> None:
        notes = backend.frontier.notes
        leader = await notes.lead("one", 5.0)
        await notes.resign("one")
        with pytest.raises(Deposed):
            await notes.write("runs", "a", b"1", leader)

    async def test_a_term_that_never_was(self, backend: Backend) -> None:
        with pytest.raises(Deposed):
            await backend.frontier.notes.write("runs", "a", b"1", Leader("one", 7))
