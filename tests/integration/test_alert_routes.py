"""Alerts reach those who want to know: by HTTP, by mail, by a command; and nothing that goes wrong
there tells a secret, or lasts for ever."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import ssl
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from shoal.alerts import mail, sending
from shoal.alerts.messages import Notice
from shoal.alerts.routes import (
    Command,
    Discord,
    Email,
    Slack,
    Teams,
    Telegram,
    Undelivered,
    Webhook,
)
from shoal.alerts.sending import send
from shoal.alerts.states import AlertState
from support.processes import is_alive
from support.receivers import MailServer, Receiver
from support.redis_servers import TlsFiles
from support.until import in_time, until, until_now

ALERT = AlertState(
    alert="stalled",
    crawl="shop",
    state="firing",
    text="nothing was fetched\nSubject: evil",
    value=1.0,
    limit=2.0,
    since=1.0,
    seen_at=2.0,
)
NOTICE = Notice([ALERT], 1_800_000_000.0, "host:1")
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "WAITS_S", (0.0, 0.0))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as opened:
        yield opened


async def why_not(route: object) -> str:
    """The reason for which a message was not delivered."""
    with pytest.raises(Undelivered) as error:
        await send(route, NOTICE, "msg_1")  # type: ignore[arg-type]
    assert SECRET not in str(error.value)
    return str(error.value)


async def test_a_webhook_is_signed_and_its_id_is_that_of_the_message(receiver: Receiver) -> None:
    await send(Webhook(url=f"{receiver.url}/hook", secret=SECRET), NOTICE, "msg_1")

    (got,) = receiver.received
    said = b"msg_1.1800000000." + got.body
    signature = got.headers["webhook-signature"].removeprefix("v1,")
    assert b64decode(signature) == hmac.new(SECRET.encode(), said, sha256).digest()
    assert got.headers["webhook-id"] == "msg_1"
    assert got.json()["alerts"][0]["alert"] == "stalled"


@pytest.mark.parametrize("route", [Slack, Teams, Discord])
async def test_chats_get_their_shape(
    route: type[Slack | Teams | Discord], receiver: Receiver
) -> None:
    await send(route(url=f"{receiver.url}/T0/B0/x"), NOTICE, "msg_1")

    (got,) = receiver.received
    first = {Slack: "text", Teams: "type", Discord: "content"}[route]
    assert next(iter(got.json())) == first
    assert got.headers["Content-Type"] == "application/json"
    assert "webhook-id" not in got.headers


async def test_telegram_is_told_by_its_bot(receiver: Receiver) -> None:
    await send(Telegram(token=SECRET, chat="-100", api=receiver.url), NOTICE, "msg_1")

    (got,) = receiver.received
    assert got.path == f"/bot{SECRET}/sendMessage"
    assert got.json()["chat_id"] == "-100"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_pass_is_tried_again_as_the_same_message(
    status: int, receiver: Receiver
) -> None:
    receiver.statuses = [status, status]
    await send(Webhook(url=receiver.url), NOTICE, "msg_1")
    assert [got.headers["webhook-id"] for got in receiver.received] == ["msg_1"] * 3


async def test_tries_have_an_end(receiver: Receiver) -> None:
    receiver.statuses = [500] * 9
    assert await why_not(Webhook(url=f"{receiver.url}/{SECRET}")) == "127.0.0.1: it answered 500"
    assert len(receiver.received) == sending.TRIES


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_what_will_not_pass_is_not_tried_again(status: int, receiver: Receiver) -> None:
    receiver.statuses = [status]
    assert (
        await why_not(Slack(url=f"{receiver.url}/{SECRET}")) == f"127.0.0.1: it answered {status}"
    )
    assert len(receiver.received) == 1


async def test_nobody_is_sent_elsewhere(receiver: Receiver) -> None:
    receiver.statuses = [307]
    assert await why_not(Slack(url=receiver.url)) == "127.0.0.1: it answered 307"
    assert [got.path for got in receiver.received] == ["/"]


async def test_a_server_that_is_away_or_silent_tells_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "REQUEST_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        said = await why_not(Webhook(url=f"http://127.0.0.1:{port}/{SECRET}"))
        assert said == "127.0.0.1: no answer in time"
    said = await why_not(Webhook(url=f"http://127.0.0.1:{port}/{SECRET}"))
    assert said.startswith("127.0.0.1: Connect call failed")


@pytest.mark.parametrize(
    "url", ["http://[", "http://\ud800/", "http:///x", "http://a b/", "https://é..x"]
)
async def test_an_address_that_is_none_is_said_so(url: str) -> None:
    assert await why_not(Webhook(url=f"{url}?{SECRET}"))


async def test_a_mail_has_a_subject_and_a_line_for_each_alert() -> None:
    async with MailServer() as mailbox:
        route = Email(
            host="127.0.0.1",
            port=mailbox.port,
            security="none",
            sender="Shoal <shoal@example.com>",
            to=["ops@example.com", "night@example.com"],
        )
        await send(route, NOTICE, "msg_1")

    (got,) = mailbox.mails
    assert got["Subject"] == "Shoal: 1 firing"
    assert got["Auto-Submitted"] == "auto-generated"
    assert got.get_content().splitlines() == [
        "Shoal: 1 firing",
        "FIRING stalled: shop: nothing was fetched\\nSubject: evil",
    ]
    assert mailbox.recipients == [["ops@example.com", "night@example.com"]]


async def test_a_password_goes_only_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = TlsFiles(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    async with MailServer(password=SECRET, starttls=context) as mailbox:
        route = Email(
            host="localhost",
            port=mailbox.port,
            user="shoal",
            password="env:MAIL_PASSWORD",
            sender="shoal@example.com",
            to=["ops@example.com"],
        )
        monkeypatch.setenv("MAIL_PASSWORD", SECRET)
        # Nobody knows who that is.
        assert "certificate verify failed" in await why_not(route)
        assert mailbox.logins == []

        monkeypatch.setenv("SSL_CERT_FILE", str(files.authority))
        await send(route, NOTICE, "msg_1")
        assert mailbox.logins == [(b"shoal", SECRET.encode())]
        assert len(mailbox.mails) == 1

        monkeypatch.setenv("MAIL_PASSWORD", SECRET + "x")
        assert await why_not(route) == "localhost: it answered 535"


async def test_a_mail_server_that_says_a_word_now_and_then_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each word comes in time, the last one never."""
    monkeypatch.setattr(mail, "MAIL_S", 0.3)
    hung_up = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for _ in range(10_000):
                writer.write(b"220-wait\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            pass
        finally:
            hung_up.set()
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        route = Email(host="127.0.0.1", port=port, sender="a@b.example", to=["c@d.example"])
        assert await why_not(route) == f"127.0.0.1:{port}: no answer in time"
        await in_time("its end", hung_up.wait())


def script(folder: Path, text: str) -> list[str]:
    (folder / "told.py").write_text(text)
    return [sys.executable, str(folder / "told.py"), "$HOME; rm *"]


async def test_a_command_gets_json_and_no_shell(tmp_path: Path) -> None:
    text = (
        "import json, sys, pathlib\n"
        "line, more = sys.stdin.readline(), sys.stdin.read()\n"
        "said = {'argv': sys.argv[1:], 'alerts': json.loads(line)['alerts'], 'end': line[-1:]}\n"
        "said['more'] = more\n"
        f"pathlib.Path({str(tmp_path / 'out')!r}).write_text(json.dumps(said))"
    )
    await send(Command(command=script(tmp_path, text)), NOTICE, "msg_1")
    said = json.loads((tmp_path / "out").read_text())
    assert said["argv"] == ["$HOME; rm *"]
    assert (said["end"], said["more"]) == ("\n", "")
    assert said["alerts"][0]["crawl"] == "shop"


async def test_a_command_that_fails_is_said_so(tmp_path: Path) -> None:
    said = await why_not(Command(command=script(tmp_path, "raise SystemExit(7)")))
    assert said == f"{sys.executable}: exit code 7"
    said = await why_not(Command(command=["/not/there", SECRET]))
    assert said == "/not/there: No such file or directory"


async def test_a_command_that_does_not_end_is_ended() -> None:
    route = Command(command=["sleep", "600"], timeout="0.2s")
    assert await why_not(route) == "sleep: no answer in time"


@pytest.mark.parametrize("steps", [2, 100])
async def test_a_command_is_ended_with_what_it_has_started(tmp_path: Path, steps: int) -> None:
    """Also if who sends it is stopped before it has heard that the command was started."""
    pids = tmp_path / "pids"
    text = (
        "import os, subprocess, time\n"
        "other = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'new')!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        f"os.rename({str(tmp_path / 'new')!r}, {str(pids)!r})\n"
        "time.sleep(600)"
    )
    route = Command(command=script(tmp_path, text), timeout="1h")
    sending = asyncio.create_task(send(route, NOTICE, "msg_1"))
    for _ in range(steps):
        await asyncio.sleep(0)
    until_now("the command", pids.exists)  # Meanwhile nothing else goes on here.
    sending.cancel()
    await until("its end", sending.done)
    started = list(map(int, pids.read_text().split()))
    await until(f"the end of {started}", lambda: not any(map(is_alive, started)))
