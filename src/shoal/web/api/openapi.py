"""Describes the API in OpenAPI 3.1, from the table of routes and the types that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from aiohttp import web

from shoal.version import __version__
from shoal.web.context import Context
from shoal.web.etags import with_etag
from shoal.web.problems import ProblemDetails
from shoal.web.routes import Route

Json = dict[str, Any]

_REF = "#/components/schemas/{name}"
_in_path = re.compile(r"{(\w+)}").findall
STREAM = "application/x-ndjson"


def description(routes: Sequence[Route], prefix: str) -> Json:
    """The description of all routes that have a summary."""
    described = [route for route in routes if route.summary]
    types = [t for route in described for t in (route.query, route.body, route.gives) if t]
    forms = list(dict.fromkeys([*types, ProblemDetails]))
    schemas, components = msgspec.json.schema_components(forms, ref_template=_REF)
    known = dict(zip(map(repr, forms), schemas, strict=True))
    paths: dict[str, Json] = {}
    for route in described:
        operation = _operation(route, known, components)
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shoal", "version": __version__, "description": _ABOUT},
        "servers": [{"url": prefix or "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


_ABOUT = (
    "Requests that change something need an Authorization: Bearer header. Where the server has no"
    " token, because it listens on loopback, any word will do."
)


def _operation(route: Route, known: Json, components: Json) -> Json:
    operation: Json = {
        "operationId": _name_of(route),
        "summary": route.summary,
        "responses": _responses(route, known),
    }
    if parameters := [*_path_parameters(route), *_query_parameters(route, known, components)]:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _body_content(route, known)}
    if route.is_public:
        operation["security"] = []
    return operation


def _name_of(route: Route) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/api/v1").replace("-", "_"))
    return "_".join([route.method.lower(), *words])


def _body_content(route: Route, known: Json) -> Json:
    content: Json = {"application/json": {"schema": known[repr(route.body)]}}
    if route.takes_lines:
        content[STREAM] = {"schema": {"type": "string"}}
    return content


def _responses(route: Route, known: Json) -> Json:
    problem = {"application/problem+json": {"schema": known[repr(ProblemDetails)]}}
    good: Json = {"description": route.summary}
    if route.status != 204:
        form = {} if route.gives is None else {"schema": known[repr(route.gives)]}
        good["content"] = dict.fromkeys(route.gives_media, form)
    return {
        str(route.status): good,
        "default": {"description": "What is wrong", "content": problem},
    }


def _path_parameters(route: Route) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _in_path(route.path)
    ]


def _query_parameters(route: Route, known: Json, components: Json) -> list[Json]:
    if route.query is None:
        return []
    schema = components[known[repr(route.query)]["$ref"].rpartition("/")[2]]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": field,
        }
        for name, field in schema["properties"].items()
    ]


async def openapi(context: Context, request: web.Request) -> web.StreamResponse:
    """The description of this server's API."""
    return with_etag(request, _encoded(context.prefix))


@cache
def _encoded(prefix: str) -> bytes:
    from shoal.web.api import API  # Imported late, because that table contains this module's route.

    return msgspec.json.encode(description(API, prefix))


ROUTES = (
    Route(
        method="GET",
        path="/api/openapi.json",
        answer=openapi,
        summary="This description",
        gives=Json,
    ),
)
