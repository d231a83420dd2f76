"""Alerts from a crawl to those who want to know: on real files and servers, over leaders that come
and go."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.alerts import sending
from shoal.alerts.config import AlertConfig
from shoal.alerts.notes import MOST_PAST, NOW, PAST, alerts_now, alerts_past, last_look
from shoal.alerts.routes import Webhook
from shoal.alerts.states import QUIET_S
from shoal.alerts.watcher import Watch
from shoal.config import Rules
from shoal.coordinator.runs import LeaderNotes
from shoal.core.task import Task
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.board import Deposed
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control, Pulse
from shoal.insight.history import history
from support.coordinators import Office
from support.processes import Folder
from support.rarely import first_then_rare
from support.receivers import MailServer, Receiver
from support.sessions import ALICE, BOB, OUT, SHOP, SessionClient, failure, put_group
from support.sites import serving
from support.until import until_now

BEGIN = 1_800_000_000.0


@pytest.fixture(params=first_then_rare("sqlite", "redis"))
async def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Frontier]:
    address = f"sqlite:///{tmp_path}/shoal.db"
    if request.param == "redis":
        request.getfixturevalue("raw")  # It is empty from now on.
        address = request.getfixturevalue("server").url
    async with frontier_at(address, None) as opened:
        await begin_crawl(opened)
        yield opened


@pytest.fixture
async def receiver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    monkeypatch.setattr(sending, "WAITS_S", (0.0, 0.0))
    async with Receiver() as opened:
        yield opened


async def begin_crawl(frontier: Frontier) -> None:
    """Have a crawl with a task, and no worker."""
    await frontier.start("shop", Rules())
    entry = Admission(Rules()).admitted_as(Task(url="https://shop.example/"))
    await frontier.add("shop", [entry])


async def watch_of(frontier: Frontier, name: str = "one", at: float = BEGIN) -> Watch:
    """The watch of a new leader."""
    leader = await frontier.notes.lead(name, 600.0)
    assert leader is not None
    return Watch(frontier, LeaderNotes(frontier.notes, leader), at)


def config_of(receiver: Receiver) -> AlertConfig:
    return AlertConfig(limits={"no_workers": "5m"}, routes={"ops": Webhook(url=receiver.url)})


async def test_it_fires_is_told_once_and_is_told_to_be_over(
    frontier: Frontier, receiver: Receiver
) -> None:
    watch, config = await watch_of(frontier), config_of(receiver)
    for minute in range(5):
        await watch.look(config, BEGIN + 60 * minute)
    (pending,) = await alerts_now(frontier.notes)
    assert (pending.alert, pending.state, receiver.received) == ("no_workers", "pending", [])

    for minute in range(5, 10):
        await watch.look(config, BEGIN + 60 * minute)
    assert receiver.alerts() == [("no_workers", "firing")]

    await frontier.beat("shop", Pulse(worker="w:1", host="w", pid=1, version="0"))
    await watch.look(config, BEGIN + 540 + QUIET_S)
    assert receiver.alerts() == [("no_workers", "firing"), ("no_workers", "resolved")]
    (past,) = await alerts_past(frontier.notes)
    assert past.resolved_at == BEGIN + 540 + QUIET_S

    await watch.look(config, BEGIN + 600 + QUIET_S)
    assert await alerts_now(frontier.notes) == []
    assert len(await history(frontier.notes, "shop", "1h", BEGIN + 600 + QUIET_S)) == 11


async def test_of_an_account_that_is_banned_somebody_is_told(
    frontier: Frontier, receiver: Receiver
) -> None:
    """Until somebody has logged it out, so that it begins anew."""
    client = SessionClient(frontier, crawl="members")
    await put_group(frontier, ALICE, BOB)
    await frontier.start("members", Rules(sessions=(SHOP,)))
    watch, config = await watch_of(frontier), config_of(receiver)
    for _ in range(3):
        await client.told_by_hand(failure())
    await watch.look(config, BEGIN)
    assert receiver.received == [], "it merely rests"
    await client.told_by_hand(failure())
    await watch.look(config, BEGIN + 60)
    assert receiver.alerts() == [("banned_accounts", "firing")]
    (told,) = [one for one in await alerts_now(frontier.notes) if one.state == "firing"]
    assert (told.crawl, told.text) == (
        "members",
        "an account is banned (shop#alice: the password is wrong)",
    )
    await client.told_by_hand(OUT)
    await watch.look(config, BEGIN + 60 + QUIET_S)
    assert ("banned_accounts", "resolved") in receiver.alerts()


async def fire(frontier: Frontier, receiver: Receiver, name: str = "one") -> Watch:
    watch, config = await watch_of(frontier, name), config_of(receiver)
    for minute in (0, 5):
        await watch.look(config, BEGIN + 60 * minute)
    return watch


async def test_the_next_leader_does_not_tell_it_again(
    frontier: Frontier, receiver: Receiver
) -> None:
    await fire(frontier, receiver)
    await frontier.notes.resign("one")
    next_watch = await watch_of(frontier, "two", BEGIN + 360)
    for minute in range(6, 240):
        await next_watch.look(config_of(receiver), BEGIN + 60 * minute)
    assert receiver.alerts() == [("no_workers", "firing")]

    await next_watch.look(config_of(receiver), BEGIN + 300 + 4 * 3600)
    assert receiver.alerts() == [("no_workers", "firing")] * 2


async def test_a_leader_whose_term_is_over_tells_nobody(
    frontier: Frontier, receiver: Receiver
) -> None:
    old = await watch_of(frontier)
    await old.look(config_of(receiver), BEGIN)
    await frontier.notes.resign("one")
    await watch_of(frontier, "two")
    with pytest.raises(Deposed):
        await old.look(config_of(receiver), BEGIN + 300)
    assert receiver.received == []


async def test_what_a_leader_sent_and_could_not_note_is_the_same_message_again(
    frontier: Frontier, receiver: Receiver
) -> None:
    """It died in between."""
    watch, config = await watch_of(frontier), config_of(receiver)
    await watch.look(config, BEGIN)
    receiver.statuses = [500] * sending.TRIES
    await watch.look(config, BEGIN + 300)
    await frontier.notes.resign("one")

    await (await watch_of(frontier, "two")).look(config, BEGIN + 360)

    assert receiver.alerts() == [("no_workers", "firing")] * (sending.TRIES + 1)
    assert len({got.headers["webhook-id"] for got in receiver.received}) == 1
    (state,) = await alerts_now(frontier.notes)
    assert state.owed == []


async def test_a_route_that_is_not_there_any_more_is_owed_nothing(
    frontier: Frontier, receiver: Receiver
) -> None:
    watch, config = await watch_of(frontier), config_of(receiver)
    await watch.look(config, BEGIN)
    receiver.statuses = [500] * sending.TRIES
    await watch.look(config, BEGIN + 300)
    await watch.look(AlertConfig(limits=config.limits), BEGIN + 360)
    (state,) = await alerts_now(frontier.notes)
    assert state.owed == []


async def test_a_time_without_a_leader_is_told_by_the_next_one(
    frontier: Frontier, receiver: Receiver
) -> None:
    await fire(frontier, receiver)
    await frontier.notes.resign("one")
    back_at = BEGIN + 300 + 1200
    await (await watch_of(frontier, "two", back_at)).look(config_of(receiver), back_at)

    assert receiver.alerts()[1:] == [("no_leader", "firing")]
    (said,) = [one for one in await alerts_now(frontier.notes) if one.alert == "no_leader"]
    assert said.text == "no coordinator was leading for 20 minutes, until now"
    assert await last_look(frontier.notes) == back_at


async def test_a_restart_is_no_time_without_a_leader(
    frontier: Frontier, receiver: Receiver
) -> None:
    await fire(frontier, receiver)
    back_at = BEGIN + 300 + 299
    await (await watch_of(frontier, at=back_at)).look(config_of(receiver), back_at)
    assert receiver.alerts() == [("no_workers", "firing")]


async def test_where_there_was_nothing_to_lead_no_leader_is_missed(frontier: Frontier) -> None:
    await frontier.control("shop", Control.CANCEL)
    await (await watch_of(frontier, at=BEGIN)).look(AlertConfig(), BEGIN)
    back_at = BEGIN + 86_400
    await (await watch_of(frontier, at=back_at)).look(AlertConfig(), back_at)
    assert await alerts_now(frontier.notes) == []
    await frontier.start("other", Rules())
    back_at += 86_400
    await (await watch_of(frontier, at=back_at)).look(AlertConfig(), back_at)
    assert [one.alert for one in await alerts_now(frontier.notes)] == ["no_leader"]


async def test_notes_that_are_no_alerts_are_left_alone(
    frontier: Frontier, receiver: Receiver
) -> None:
    for name, text in (
        (
            "x/shop",
            b'{"alert":"x","crawl":"shop","text":"","value":1,"limit":1,"since":1,"seen_at":1}',
        ),
        (
            "stalled/other",
            b'{"alert":"stalled","crawl":"shop","text":"","value":1,"limit":1,"since":1,"seen_at":1}',
        ),
        ("dead/shop", b"garbage"),
    ):
        await frontier.notes.write(NOW, name, text)
    await fire(frontier, receiver)
    assert receiver.alerts() == [("no_workers", "firing")]
    assert [state.alert for state in await alerts_now(frontier.notes)] == ["no_workers"]


async def test_only_so_much_of_the_past_is_kept(frontier: Frontier, receiver: Receiver) -> None:
    watch = await fire(frontier, receiver)
    for number in range(MOST_PAST + 9):
        await frontier.notes.write(PAST, f"{number:017.3f} old", b"{}")
    await frontier.control("shop", Control.PAUSE)
    await watch.look(config_of(receiver), BEGIN + 300 + QUIET_S)
    kept = await frontier.notes.all(PAST)
    assert len(kept) == MOST_PAST
    assert list(kept)[-1].endswith("no_workers/shop")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def heard() -> Iterator[Receiver]:
    with serving(Receiver()) as receiver:
        yield receiver


TOML = """
[alerts]
every = "1s"
no_workers = "1s"
[alerts.routes.ops]
kind = "webhook"
url = "env:OPS_URL"
"""


def begin(folder: Folder, heard: Receiver) -> dict[str, str]:
    """Have a crawl without workers; returns the environment of coordinators."""
    folder.write("shoal.toml", TOML)
    asyncio.run(folder.ask_frontier(begin_crawl))
    return {"OPS_URL": f"{heard.url}/hunter2"}


def test_serve_watches_and_tells(folder: Folder, heard: Receiver) -> None:
    env = begin(folder, heard)
    with folder.running("serve", "--json-logs", env=env) as coordinator:
        heard.wait_for("no_workers", "firing")
        listed = folder.shoal("alerts", "list", "--json")
        said = folder.shoal("alerts", "list")
        coordinator.send(signal.SIGTERM)
        ended = coordinator.wait()

    assert ended.code == 0, ended.err
    assert "alert: FIRING no_workers: shop: no worker is running" in ended.err
    assert "hunter2" not in ended.err
    assert [(one["alert"], one["state"]) for one in listed.json()] == [("no_workers", "firing")]
    assert "no worker is running, and 1 task waits" in said.out
    assert folder.shoal("alerts", "list").err == "nobody is watching: start `shoal serve`\n"


@pytest.mark.rare
def test_a_leader_is_killed_and_nobody_is_told_twice(folder: Folder, heard: Receiver) -> None:
    env, office = begin(folder, heard), Office(folder)
    with folder.running("serve", env=env) as first:
        heard.wait_for("no_workers", "firing")
        with folder.running("serve", env=env) as second:
            until_now("standing by", lambda: "standing by" in second.err)
            first.kill_all()
            office.leads(second)
            looked = look_of(folder)
            until_now("three more looks", lambda: look_of(folder) >= looked + 3)
            assert heard.alerts() == [("no_workers", "firing")]


def look_of(folder: Folder) -> float:
    return asyncio.run(folder.ask_frontier(lambda f: last_look(f.notes))) or 0.0


def test_alerts_that_are_wrong_stop_serve_in_one_line(folder: Folder) -> None:
    folder.write("shoal.toml", TOML)
    ended = folder.shoal("serve")
    assert (ended.code, ended.err) == (
        2,
        "shoal: shoal.toml: [alerts.routes.ops]: url: the environment has no OPS_URL\n",
    )


def test_routes_are_tried_by_hand(folder: Folder, heard: Receiver) -> None:
    with serving(MailServer()) as mailbox:
        folder.write(
            "shoal.toml",
            f"""
            [alerts.routes.ops]
            kind = "slack"
            url = "{heard.url}/hunter2"
            [alerts.routes.mail]
            kind = "email"
            host = "127.0.0.1"
            port = {mailbox.port}
            security = "none"
            from = "shoal@example.com"
            to = ["ops@example.com"]
            [alerts.routes.pager]
            kind = "command"
            command = ["false"]
            """,
        )
        ended = folder.shoal("alerts", "test")
    assert ended.code == 1
    assert sorted(ended.out.splitlines()) == ["mail: delivered", "ops: delivered"]
    assert ended.err == "pager: not delivered: false: exit code 1\n"
    assert heard.received[0].json()["text"] == "Shoal: this is a test"
    assert mailbox.mails[0]["Subject"] == "Shoal: this is a test"

    assert folder.shoal("alerts", "test", "ops").code == 0
    assert folder.shoal("alerts", "test", "other").err == (
        "shoal: no route 'other' (there are: ops, mail, pager)\n"
    )


def test_without_routes_there_is_nothing_to_try(folder: Folder) -> None:
    ended = folder.shoal("alerts", "test")
    assert (ended.code, ended.err) == (2, "shoal: shoal.toml has no [alerts.routes.NAME] here\n")
