"""Reads the source of a spider: where its attributes are, and which methods it names."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.spider.spider import Spider

FOLLOWING = ("follow", "follow_all", "submit")
_SECOND = {"follow": 1, "follow_all": 1, "submit": 2}
"""The position of the handler among their arguments."""
MAX_BYTES = 5 * 2**20


class Named(msgspec.Struct, frozen=True):
    """A method of the spider that is named in a call."""

    call: str
    keyword: str
    """`handler` or `on_failure`."""
    method: str
    line: int


class Call(msgspec.Struct, frozen=True):
    """One call of `page.follow`, `page.follow_all` or `page.submit`."""

    name: str
    keywords: tuple[str, ...]
    line: int


class Source:
    """The source of one of the user's classes. If it cannot be read, nothing is found in it."""

    def __init__(self, cls: type) -> None:
        self.file = file_of(cls)
        self._class = _class_in(self.file, cls)

    @property
    def line(self) -> int:
        """The line where the class begins."""
        return self._class.lineno if self._class is not None else 0

    def line_of(self, name: str) -> int:
        """The line of an attribute or a method. 0: it is not in this class."""
        for node in self._class.body if self._class is not None else ():
            match node:
                case ast.Assign(targets=targets):
                    names = [target.id for target in targets if isinstance(target, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=found)):
                    names = [found]
                case ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                    names = [found]
                case _:
                    continue
            if name in names:
                return node.lineno
        return 0

    def calls(self) -> Iterator[Call]:
        """The calls in its methods that follow links."""
        for name, call in self._following():
            given = tuple(keyword.arg for keyword in call.keywords if keyword.arg is not None)
            yield Call(name, given, call.lineno)

    def named(self) -> Iterator[Named]:
        """The methods that these calls name, if they are written as text or as `self.x`."""
        for name, call in self._following():
            given = {word.arg: word.value for word in call.keywords if word.arg is not None}
            place = _SECOND[name]
            if len(call.args) > place and "handler" not in given:
                given["handler"] = call.args[place]
            for keyword in ("handler", "on_failure"):
                value = given.get(keyword)
                if value is not None and (method := _method_in(value)) is not None:
                    yield Named(name, keyword, method, value.lineno)

    def _following(self) -> Iterator[tuple[str, ast.Call]]:
        """The calls on parameters of methods, such as `page`. Other objects may have methods with
        these names."""
        for method in self._class.body if self._class is not None else ():
            if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            taken = {argument.arg for argument in method.args.args[1:]}
            for node in ast.walk(method):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr=name)):
                        if of in taken and name in FOLLOWING:
                            yield name, node


def _method_in(value: ast.expr) -> str | None:
    match value:
        case ast.Constant(value=str(name)):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return None


def own_classes(spider: type[Spider]) -> list[type]:
    """The user's classes that make up a spider, beginning with its own."""
    return [
        cls
        for cls in spider.__mro__
        if issubclass(cls, Spider) and not cls.__module__.startswith("shoal.")
    ]


def file_of(cls: type) -> str:
    """The file of a class, relative to the working folder if it is inside it."""
    try:
        file = inspect.getfile(cls)
    except (TypeError, OSError):
        return cls.__module__
    near = os.path.relpath(file)
    return file if near.startswith("..") else near


def _class_in(file: str, cls: type) -> ast.ClassDef | None:
    try:
        path = Path(file)
        if path.stat().st_size > MAX_BYTES:
            return None
        tree: ast.AST = ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    for part in cls.__qualname__.split("."):
        inside = getattr(tree, "body", [])
        found = [node for node in inside if isinstance(node, ast.ClassDef) and node.name == part]
        if not found:
            return None
        tree = found[-1]
    return tree if isinstance(tree, ast.ClassDef) else None
