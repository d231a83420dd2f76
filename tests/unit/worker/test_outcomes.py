"""What a try says of its host: whether it is well, whether it blocks us, how slow it is."""

from __future__ import annotations

import ssl

import pytest

from shoal.config import Rules
from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.errors import BadAnswer, FetchError, Refused, Starved, TooLarge, UnknownHost
from shoal.fetch.port import Response
from shoal.frontier.admission import Admission
from shoal.frontier.values import Lease, Outcome, Pushback, Verdict
from shoal.worker.visits.outcomes import Judge, note_answer, raised

URL = "http://a.example/1"
LEASE = Lease(bytes(8), "token", Task(url=URL))
NOW = 1_000_000_000.0
JITTER = 0.5


def judge(**rules: object) -> Judge:
    own = Rules(**rules)  # type: ignore[arg-type]
    return Judge(own, Admission(own))


def answered(status: int, **rules: object) -> Outcome:
    response = Response(URL, status, {}, b"12345", 0.25)
    outcome = judge(**rules).answered(LEASE, response, NOW, JITTER)
    note_answer(outcome, response)
    return outcome


def unanswered(error: FetchError, cause: Exception | None = None, **rules: object) -> Outcome:
    error.__cause__ = cause
    return judge(**rules).unanswered(LEASE, error, JITTER)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 520])
def test_a_host_that_answers_like_this_is_not_well(status: int) -> None:
    outcome = answered(status)
    assert (outcome.fault, outcome.verdict, outcome.sent) == (True, Verdict.RETRY, True)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.STATUS_4XX),
        (403, FailureKind.BLOCKED),
        (429, FailureKind.BLOCKED),
        (500, FailureKind.STATUS_5XX),
        (503, FailureKind.STATUS_5XX),
        (999, FailureKind.OTHER),
    ],
)
def test_an_answer_that_is_a_failure_has_a_kind(status: int, kind: FailureKind) -> None:
    outcome = answered(status)
    assert outcome.verdict in (Verdict.RETRY, Verdict.DEAD)
    assert outcome.kind is kind


@pytest.mark.parametrize(
    ("error", "cause", "kind"),
    [
        (FetchError("slow"), TimeoutError(), FailureKind.TIMEOUT),
        (FetchError("bad certificate"), ssl.SSLCertVerificationError(), FailureKind.TLS),
        (FetchError("refused"), ConnectionRefusedError(), FailureKind.CONNECTION),
        (UnknownHost("DNS: name not found"), None, FailureKind.DNS),
        (BadAnswer("not HTTP"), None, FailureKind.PROTOCOL),
        (TooLarge("too large"), None, FailureKind.TOO_LARGE),
        (Refused("private"), None, FailureKind.REFUSED),
        (Starved("no time"), None, FailureKind.OTHER),
    ],
)
def test_so_has_the_lack_of_one(
    error: FetchError, cause: Exception | None, kind: FailureKind
) -> None:
    assert unanswered(error, cause).kind is kind


def test_every_error_of_a_fetcher_has_a_kind_that_there_is() -> None:
    errors = [FetchError]
    for error in errors:
        errors += error.__subclasses__()
    assert len(errors) > 8
    assert {FailureKind(error.kind) for error in errors} <= set(FailureKind)


@pytest.mark.parametrize("status", [200, 301, 400, 403, 404, 410, 418])
def test_any_other_answer_is_that_of_a_healthy_host(status: int) -> None:
    assert not answered(status).fault


def test_refusals_to_serve_us_are_blocks() -> None:
    assert {s for s in range(200, 600) if answered(s).blocked} == {403, 429, 503}


@pytest.mark.parametrize(
    ("status", "headers", "pushback"),
    [
        (429, {}, Pushback()),
        (503, {}, Pushback(meant=False)),
        (503, {"Retry-After": "7"}, Pushback(7.0)),
        (503, {"Retry-After": "soon"}, Pushback(meant=False)),
        (500, {"Retry-After": "7"}, None),
    ],
)
def test_whether_a_refusal_is_the_hosts_word(
    status: int, headers: dict[str, str], pushback: Pushback | None
) -> None:
    outcome = judge().answered(LEASE, Response(URL, status, headers, b"", 0.25), NOW, JITTER)
    assert outcome.pushback == pushback


@pytest.mark.parametrize(
    ("retry_after", "wait_s"),
    [("", 0.75), ("7", 7.0), ("Sun, 09 Sep 2001 01:46:50 GMT", 10.0), ("soon", 0.75)],
)
def test_when_it_is_tried_again_follows_from_the_time_and_the_dice(
    retry_after: str, wait_s: float
) -> None:
    response = Response(URL, 503, {"Retry-After": retry_after}, b"", 0.25)
    outcome = judge().answered(LEASE, response, NOW, JITTER)
    assert (outcome.verdict, outcome.retry_in_s) == (Verdict.RETRY, wait_s)


def test_what_a_handler_raises_is_of_the_handlers_kind() -> None:
    assert raised(LEASE, ValueError()).kind is FailureKind.HANDLER


def test_what_a_handler_raises_is_ours() -> None:
    assert raised(LEASE, KeyError("title")).ours
    assert not answered(418).ours


def test_an_answer_has_a_latency_and_a_size() -> None:
    outcome = answered(404)
    assert (outcome.latency_s, outcome.body_bytes) == (0.25, 5)


def test_no_answer_is_a_fault_and_has_no_latency() -> None:
    outcome = unanswered(FetchError("connection refused"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.RETRY, True, True)
    assert (outcome.blocked, outcome.latency_s) == (False, 0.0)


def test_what_our_own_guard_refused_was_never_sent() -> None:
    outcome = unanswered(Refused("private address"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.DEAD, False, False)


def test_a_body_that_is_too_large_is_not_the_fault_of_a_sick_host() -> None:
    outcome = unanswered(TooLarge("too large"))
    assert (outcome.verdict, outcome.fault, outcome.sent) == (Verdict.DEAD, False, True)


def test_a_timeout_slows_a_host_down_where_its_latency_decides() -> None:
    slow = FetchError("timed out after 30 s")
    assert unanswered(slow, TimeoutError(), rate="auto").pushback == Pushback()
    assert unanswered(slow, TimeoutError(), rate="1/s").pushback is None
    assert unanswered(FetchError("reset"), OSError(), rate="auto").pushback is None


def test_a_fault_of_the_last_try_counts_too() -> None:
    outcome = unanswered(FetchError("connection refused"), max_retries=0)
    assert (outcome.verdict, outcome.fault) == (Verdict.DEAD, True)


def test_a_handler_that_raises_says_nothing_of_the_host() -> None:
    outcome = raised(LEASE, ValueError("broken\npage"))
    assert (outcome.verdict, outcome.reason) == (Verdict.DEAD, "ValueError: broken page")
    assert not outcome.fault


# Redirects

SECRETS = {
    "Authorization": "Bearer s3cret",
    "cookie": "session=s3cret",
    "X-Api-Key": "s3cret",
    "Proxy-Authorization": "Basic s3cret",
    "X-Anything": "s3cret",
    "Referer": "http://a.example/?token=s3cret",
}
HARMLESS = {"accept": "text/html", "Accept-Language": "de", "User-Agent": "mine"}


RULES = Rules()
PORTS = ("example", "example:8080", "example:8443")
"""Links lead to other ports of a host only where these are named."""


def redirected(task: Task, location: str, status: int = 302) -> Outcome:
    response = Response(task.url, status, {"Location": location}, b"", 0.1)
    entry = Admission(RULES).admitted_as(task)
    lease = Lease(entry.fingerprint, "token", task)
    return judge(allowed_hosts=PORTS).answered(lease, response, NOW, JITTER)


def target(outcome: Outcome) -> Task:
    assert outcome.verdict is Verdict.DONE, outcome.reason
    (entry,) = outcome.follow_ups
    return entry.task


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://a.example/1", "https://b.example/"),
        ("https://a.example/1", "//b.example/"),
        ("https://a.example/1", "http://a.example/1"),
        ("https://a.example/1", "https://a.example:8443/1"),
        ("https://a.example/1", "https://www.a.example/1"),
        ("http://a.example/1", "http://a.example:8080/1"),
        ("http://a.example:8080/1", "https://a.example/1"),
        ("http://a.example/1", "https://a.example:8443/1"),
        ("https://me:pw@a.example/1", "http://b.example/"),
        ("https://a.example/1", "https://a.example@b.example/"),
        ("https://a.example/1", "https:\\\\b.example/"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_secrets_stay_with_their_host(url: str, location: str, status: int) -> None:
    outcome = redirected(Task(url=url, headers=SECRETS | HARMLESS), location, status)
    assert target(outcome).headers == HARMLESS
    assert ":pw@" not in target(outcome).url
    assert outcome.reason.endswith(f", without {', '.join(SECRETS)}")
    assert "s3cret" not in outcome.reason


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("https://a.example/1", "/2"),
        ("https://a.example/1", "https://A.example:443/2"),
        ("https://me:pw@a.example/1", "/2"),
        ("http://a.example:8080/1", "//a.example:8080/2"),
        ("http://a.example/1", "https://a.example/1"),
    ],
)
def test_on_the_same_host_they_go_along(url: str, location: str) -> None:
    outcome = redirected(Task(url=url, headers=SECRETS | HARMLESS), location)
    assert target(outcome).headers == SECRETS | HARMLESS
    assert "without" not in outcome.reason


def test_a_secret_does_not_come_back_on_the_way() -> None:
    first = target(redirected(Task(url=URL, headers=SECRETS), "http://b.example/"))
    assert target(redirected(first, URL + "/2")).headers == {}


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("http://a.example/1?utm_source=mail", "/1"),
        ("http://a.example/1?b=1&a=2", "/1?a=2&b=1"),
        ("http://a.example/1?", "/1"),
    ],
)
def test_another_spelling_of_its_own_address_is_fetched(url: str, location: str) -> None:
    task = Task(url=url)
    known = Admission(RULES).admitted_as(task).fingerprint
    outcomes = [redirected(task, location) for _ in range(2)]
    first, again = (outcome.follow_ups[0] for outcome in outcomes)
    assert first.task.redirects == [url]
    assert first.fingerprint != known
    assert first.fingerprint == again.fingerprint


@pytest.mark.parametrize("location", ["/1", "#x", "http://a.example:80/1", "http://a.example./1"])
def test_a_redirect_to_itself_is_a_loop(location: str) -> None:
    outcome = redirected(Task(url="http://a.example/1"), location)
    assert outcome.verdict is Verdict.DEAD
    assert outcome.reason.startswith("redirects in a loop: http://a.example/1 -> ")


def test_there_and_back_is_a_loop() -> None:
    there = target(redirected(Task(url="http://a.example/1?utm_source=mail"), "/1"))
    back = redirected(there, "/1?utm_source=mail")
    assert back.verdict is Verdict.DEAD
    assert "in a loop" in back.reason


@pytest.mark.parametrize("on_the_way", [[], ["/set"], ["/set", "/1?utm_source=mail"]])
def test_a_form_may_lead_to_the_page_at_its_own_address(on_the_way: list[str]) -> None:
    task = Task(url="http://a.example/1", method="POST", body="q=1")
    for location in [*on_the_way, "/1"]:
        task = target(redirected(task, location, 303))
    assert (task.url, task.method, task.body) == ("http://a.example/1", "GET", None)
    assert task.redirects[0] == "POST http://a.example/1"
    assert redirected(task, "/1").reason.startswith("redirects in a loop: POST http://a.example/1")


def test_where_a_copy_leads_is_a_page_like_any_other() -> None:
    """Else every page of a site that asks for a login would fetch the same login anew."""
    logins = set()
    for number in range(2):
        copy = target(redirected(Task(url=f"http://a.example/{number}?utm_source=a"), f"/{number}"))
        assert copy.dont_filter
        logins.add(redirected(copy, "/login").follow_ups[0].fingerprint)
    assert logins == {Admission(RULES).fingerprint("http://a.example/login")}


def test_where_a_task_leads_that_is_fetched_in_any_case_is_fetched_too() -> None:
    task = Task(url="http://a.example/1", dont_filter=True, task_id="mine")
    assert target(redirected(task, "/2")).dont_filter


@pytest.mark.parametrize("redirects", [["nonsense"], ["POST "], ["\ud800"], ["http://a.example/1"]])
def test_what_others_write_about_redirects_is_no_fault_of_ours(redirects: list[str]) -> None:
    outcome = redirected(Task(url="http://a.example/0", redirects=redirects), "/1")
    assert outcome.verdict is Verdict.DEAD


FORM = {"content-type": "text/plain", "Content-Length": "1", "Content-Encoding": "gzip"}


@pytest.mark.parametrize("status", [301, 302, 303])
def test_what_described_the_body_goes_with_it(status: int) -> None:
    task = Task(url=URL, method="POST", body="YQ==", body_is_base64=True, headers=FORM | SECRETS)
    sent = target(redirected(task, "/2", status))
    assert (sent.method, sent.body, sent.headers) == ("GET", None, SECRETS)
    assert not sent.body_is_base64


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_that_is_sent_again_is_described_again(status: int) -> None:
    task = Task(url=URL, method="POST", body="YQ==", body_is_base64=True, headers=FORM)
    sent = target(redirected(task, "/2", status))
    assert (sent.method, sent.body, sent.headers) == ("POST", "YQ==", FORM)
    assert sent.body_is_base64


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_a_secret_too(status: int) -> None:
    task = Task(url=URL, method="POST", body="password=s3cret")
    outcome = redirected(task, "http://b.example/", status)
    assert (outcome.verdict, list(outcome.follow_ups)) == (Verdict.DEAD, [])
    reason = "redirected: a body is not sent to another site: http://b.example/"
    assert outcome.reason == reason
