"""Hooks: methods of a spider and its plugins that are called on the way of a page.

They are looked up once, when a spider is made. A hook that does not exist costs nothing.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from types import FunctionType, MethodType
from typing import Any

import msgspec

from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.spider.failure import Failure
from shoal.spider.items import is_item_class
from shoal.spider.outgoing import RequestHook
from shoal.spider.page import Page

TAKES = {
    "request": ("request",),
    "item": ("item", "page"),
    "on_failure": ("failure",),
    "opened": (),
    "closed": ("summary",),
}
"""The hooks, and the parameters that each takes."""
_METHODS = (FunctionType, staticmethod, classmethod)
_OF_HANDLERS = ("page", "response")
"""Parameter names of handlers. A method with the name of a hook that takes a page is a handler."""

ItemHook = Callable[[Any, Page], Any]


class Hooks(msgspec.Struct, frozen=True):
    """The methods to call, in this order: those of the plugins first, then the spider's own."""

    request: tuple[RequestHook, ...] = ()
    item: tuple[ItemHook, ...] = ()
    on_failure: tuple[Callable[[Failure], Any], ...] = ()
    opened: tuple[Callable[[], Any], ...] = ()
    """Called before a crawl begins, once: see fleet/life_hooks.py."""
    closed: tuple[Callable[[Any], Any], ...] = ()
    """Called with a summary when the crawl is over."""


def is_hook(spider: type, name: str) -> bool:
    """Whether a spider's method of this name is a hook, and so not a handler."""
    method = inspect.getattr_static(spider, name, None)
    if name not in TAKES or not isinstance(method, _METHODS):
        return False
    signature = inspect.signature(getattr(spider, name))
    selves = int(isinstance(method, FunctionType))
    try:
        bound = signature.bind(*range(selves + len(TAKES[name]))).arguments
    except TypeError:
        return False
    taken = [parameter for parameter, position in bound.items() if position == selves]
    return not taken or taken[0] not in _OF_HANDLERS


def mistaken_hooks(spider: type) -> Iterator[tuple[str, str]]:
    """Methods with the name of a hook that take neither its parameters nor a page, each with a
    message. They are not called as hooks."""
    for name, takes in TAKES.items():
        method = inspect.getattr_static(spider, name, None)
        if not isinstance(method, _METHODS) or is_hook(spider, name):
            continue
        parameters = list(inspect.signature(getattr(spider, name)).parameters)
        if len(parameters) < 2 or parameters[1] not in _OF_HANDLERS:
            yield name, f"{spider.__name__}.{name} must take ({', '.join(('self', *takes))})"


def hooks_of(spider: Any, plugins: Iterable[Any]) -> Hooks:
    """The hooks of a spider and of its plugins, which are objects or classes. Raises ConfigError
    if something is not a plugin."""
    made = [_made(plugin) for plugin in plugins]
    found: dict[str, tuple[Any, ...]] = {}
    for name in TAKES:
        of_plugins = [getattr(plugin, name) for plugin in made if hasattr(plugin, name)]
        own = [getattr(spider, name)] if is_hook(type(spider), name) else []
        found[name] = (*of_plugins, *own)
    for hook in found["item"]:
        _check_returns(hook)
    return Hooks(**found)


def _made(plugin: Any) -> Any:
    """A plugin as an object. A class is called without arguments."""
    shown = getattr(plugin, "__name__", None) or type(plugin).__name__
    if isinstance(plugin, str):
        raise ConfigError(f"plugins: {plugin!r:.80} is text; list classes or objects")
    if isinstance(plugin, type):
        try:
            plugin = plugin()
        except Exception as error:
            raise ConfigError(f"plugin {shown}: {type(error).__name__}: {error}") from error
    if not any(callable(getattr(plugin, name, None)) for name in TAKES):
        raise ConfigError(f"plugin {shown} has none of these methods: {', '.join(TAKES)}")
    return plugin


def _check_returns(hook: Any) -> None:
    """Raise ConfigError if an `item` hook never returns anything: it would drop all items."""
    function = hook.__func__ if isinstance(hook, MethodType) else hook
    if not isinstance(function, FunctionType) or _gives(function):
        return
    raise ConfigError(
        f"{function.__qualname__} returns nothing: return the item, or None to drop it"
    )


def _gives(function: FunctionType) -> bool:
    """Whether a function may return anything but None, or raise, according to its bytecode."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return True
    steps = list(dis.get_instructions(function))
    for before, step in pairwise(steps):
        is_none = before.opname == "LOAD_CONST" and before.argval is None
        if step.opname == "RETURN_VALUE" and (step.is_jump_target or not is_none):
            return True
    # Python 3.12 and 3.13 have a single instruction for it.
    returned = [step.argval for step in steps if step.opname == "RETURN_CONST"]
    raises = any(step.opname == "RAISE_VARARGS" for step in steps)
    return raises or any(value is not None for value in returned)


async def through_hooks(items: list[Any], page: Page, hooks: Sequence[ItemHook]) -> list[Any]:
    """The items that the hooks return for these. Raises what hooks raise, and TypeError if a hook
    returns something that is not an item."""
    for hook in hooks:
        left: list[Any] = []
        for item in items:
            given = hook(item, page)
            await _collect(await given if inspect.isawaitable(given) else given, left)
        items = left
    return items


async def _collect(given: Any, into: list[Any]) -> None:
    if given is None:
        return
    if is_item_class(type(given)):
        into.append(_an_item(given))
    elif isinstance(given, AsyncIterable):
        into.extend([_an_item(each) async for each in given])
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes | bytearray):
        into.extend(_an_item(each) for each in given)
    else:
        _an_item(given)


def _an_item(thing: Any) -> Any:
    if not is_item_class(type(thing)) or isinstance(thing, Task):
        raise TypeError(f"an item hook gave {thing!r:.200}: neither an item nor None")
    return thing
