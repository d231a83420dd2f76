"""A small site with forms (a search, a login with a token, an upload) and a JSON API."""

from __future__ import annotations

import secrets
from hashlib import sha256

from aiohttp import web

from support.sites import Site, html

USER, PASSWORD = "ada", "lövelace & co"
WARES = ("lamp", "lamp shade", "table")

FRONT = """<form id=search action=search>
  <input type=search name=q>
  <select name=sort><option value=price>Price<option value=name>Name</select>
  <input type=hidden name=shop value=7><button>Search</button>
</form><a href=/login>Log in</a>"""
LOGIN = """<form id=login method=post action="/login?from=front">
  <input type=hidden name=csrf value="{token}"><input name=user><input type=password name=password>
  <input type=checkbox name=keep value=yes checked>
  <button name=do value=cancel formaction=/>Cancel</button>
  <button name=do value=login>Log in</button>
</form>"""
UPLOAD = """<form id=upload method=post enctype=multipart/form-data action=/upload>
  <input name=title><input type=file name=picture><button name=send value=1>Send</button>
</form>"""


class FormSite(Site):
    """Answers forms only if they are sent as a browser would. Anything else gets a 400."""

    def __init__(self) -> None:
        super().__init__(self._no_such_page)
        self.tokens: set[str] = set()
        """The login tokens that were handed out and not yet used."""
        self.uploads: list[bytes] = []

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        await super()._respond(request)
        match request.method, request.path:
            case "GET", "/":
                return html(FRONT)
            case "GET", "/search":
                return self._found(request)
            case "GET", "/login":
                self.tokens.add(token := secrets.token_urlsafe())
                return html(LOGIN.format(token=token))
            case "POST", "/login":
                return await self._log_in(request)
            case "GET", "/account":
                return html(f"<h1>Hello {request.query['user']}</h1>{UPLOAD}")
            case "POST", "/upload":
                return await self._uploaded(request)
            case "POST", "/api":
                return await self._api(request)
        return await self._no_such_page(request.path)

    async def _no_such_page(self, path: str) -> web.Response:
        return html(f"no such page: {path}", 404)

    def _found(self, request: web.BaseRequest) -> web.Response:
        if [*request.query] != ["q", "sort", "shop"] or request.query["shop"] != "7":
            return html(f"not as a browser sends it: {request.query_string}", 400)
        found = [ware for ware in WARES if request.query["q"] in ware]
        return html("".join(f"<li>{ware}</li>" for ware in found))

    async def _log_in(self, request: web.BaseRequest) -> web.Response:
        sent = dict(await request.post())
        token = str(sent.pop("csrf", ""))
        wanted = {"user": USER, "password": PASSWORD, "keep": "yes", "do": "login"}
        if token not in self.tokens or sent != wanted or request.query_string != "from=front":
            return html(f"not as a browser sends it: {sent}", 400)
        self.tokens.remove(token)
        return web.Response(status=303, headers={"Location": f"/account?user={USER}"})

    async def _uploaded(self, request: web.BaseRequest) -> web.Response:
        sent = await request.post()
        picture = sent.get("picture")
        if [*sent] != ["title", "picture", "send"] or not isinstance(picture, web.FileField):
            return html(f"not as a browser sends it: {[*sent]}", 400)
        content = picture.file.read()
        self.uploads.append(content)
        digest = sha256(content).hexdigest()
        kind, name, title = picture.content_type, picture.filename, str(sent["title"])
        return html(f"<h1>{title}</h1><p>{name}</p><i>{kind}</i><b>{digest}</b>")

    async def _api(self, request: web.BaseRequest) -> web.Response:
        if request.content_type != "application/json":
            return html(f"not JSON: {request.content_type}", 400)
        asked = await request.json()
        found = [ware for ware in WARES if asked["query"] in ware]
        return web.json_response({"found": found[: asked["limit"]]})
