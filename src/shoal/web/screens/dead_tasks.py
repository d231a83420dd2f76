"""Retries and purges dead tasks, those that match a filter or those that were selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta
from msgspec.structs import replace

from shoal.frontier.values import DeadFilter
from shoal.insight.figures import counted
from shoal.web.api.crawls import crawl_of
from shoal.web.api.dead import DeadOrder, purge_these, retry_these
from shoal.web.context import Context
from shoal.web.problems import Problem
from shoal.web.routes import Route
from shoal.web.screens.confirmation import Question, ask, back_to

COUNT = "count"
"""The form field with the number of tasks that the person was shown."""
UNTIL = "until"
"""The form field with the time when the last of them died. Later deaths are not meant."""

Moment = Annotated[float, Meta(ge=0, le=1e11)]
Fields = list[tuple[str, str]]
"""The fields of a form that say which dead tasks are meant."""


class Action(msgspec.Struct, frozen=True):
    """An action on dead tasks, with its texts."""

    name: str
    effect: str
    did: str
    destroys: bool

    async def do(
        self, context: Context, crawl: str, which: DeadFilter, *, dry_run: bool = False
    ) -> int:
        """Apply the action, or with `dry_run` only count. Returns the number of tasks."""
        call = purge_these if self.destroys else retry_these
        return await call(context, crawl, which, dry_run=dry_run)

    async def count(self, context: Context, crawl: str, fields: Fields) -> int:
        """How many tasks the action would affect. Raises Problem."""
        return await self.do(context, crawl, which(fields), dry_run=True)

    def question(self, count: int, fields: Fields, changed: str = "") -> Question:
        """The confirmation that the action needs."""
        verb = self.name.capitalize()
        return Question(
            title=f"{verb} {counted(count, 'dead task')}{_of(fields)}",
            effect=self.effect,
            button=f"{verb} {count:,}",
            fields=[*fields, (COUNT, str(count))],
            destroys=self.destroys,
            tab="failures",
            changed=changed,
        )


RETRY = Action(
    "retry", "They begin anew, as if they had never been tried.", "retried", destroys=False
)
PURGE = Action(
    "purge",
    "They are dropped for good. Explain still says why they died.",
    "purged",
    destroys=True,
)


def confirming(action: Action) -> Any:
    """The handler that asks for confirmation, with the number of tasks."""

    async def show(context: Context, request: web.Request) -> web.StreamResponse:
        return await _ask(action, context, request, chosen(request.query))

    return show


async def _ask(
    action: Action,
    context: Context,
    request: web.Request,
    fields: Fields,
    before: str | None = None,
) -> web.Response:
    crawl = crawl_of(request)
    fields = await _until_now(context, crawl, fields)
    count = await action.count(context, crawl, fields)
    changed = "" if before is None else f"It was {before} when you were asked. It is {count:,} now."
    return await ask(context, request, crawl, action.question(count, fields, changed))


async def _until_now(context: Context, crawl: str, fields: Fields) -> Fields:
    """The same fields, limited to tasks that have died by now."""
    fields = [(name, value) for name, value in fields if name != UNTIL]
    newest = await context.frontier.dead(crawl, 1, None, which(fields))
    return [*fields, *((UNTIL, repr(record.place.died_at)) for record in newest)]


def applying(action: Action) -> Any:
    """The handler that applies an action. If the number has changed, it asks again."""

    async def do(context: Context, request: web.Request) -> web.StreamResponse:
        form, crawl = await request.post(), crawl_of(request)
        fields, shown = chosen(form), str(form.get(COUNT, ""))[:12]
        count = await action.count(context, crawl, fields)
        if shown != str(count):
            before = f"{int(shown):,}" if shown.isascii() and shown.isdecimal() else "not as many"
            return await _ask(action, context, request, fields, before)
        done = await action.do(context, crawl, which(fields))
        return back_to(context, crawl, "failures", did=action.did, count=str(done))

    return do


def chosen(given: Mapping[str, Any]) -> Fields:
    """The fields of a form that name dead tasks: by kind, host, fingerprint and time of death."""
    pairs = given.items()
    return [
        (name, value)
        for name, value in pairs
        if name in ("kind", "host", "fp", "all", UNTIL) and isinstance(value, str) and value
    ]


def which(fields: Fields) -> DeadFilter:
    """The filter that the fields of a form stand for. Raises Problem if they name nothing."""
    given: dict[str, Any] = {name: value for name, value in fields if name in ("kind", "host")}
    keys = [value for name, value in fields if name == "fp"]
    if keys:
        given["fingerprints"] = keys
    if not given and ("all", "1") not in fields:
        raise Problem(400, "no task was selected")
    try:
        until = msgspec.convert(dict(fields).get(UNTIL), Moment | None, strict=False)
        return replace(msgspec.convert(given, DeadOrder).which, died_by=until)
    except msgspec.ValidationError as error:
        raise Problem(400, str(error)) from None


def _of(fields: Fields) -> str:
    named = [f"{name} {value}" for name, value in fields if name in ("kind", "host")]
    return f" of {' and '.join(named)}" if named else ""


def _routes(action: Action) -> tuple[Route, Route]:
    path = f"/crawls/{{crawl}}/dead/{action.name}"
    return (
        Route(method="GET", path=path, answer=confirming(action)),
        # Endless, because many tasks are moved in batches, which may take long.
        Route(method="POST", path=path, answer=applying(action), is_endless=True),
    )


ROUTES = (*_routes(RETRY), *_routes(PURGE))
