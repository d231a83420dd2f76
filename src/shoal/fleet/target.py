"""Loads what the command line calls TARGET: a spider's file, its module, plain URLs, or a spider of
the Scrapy project in this folder."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from shoal.core.plugins import plugin
from shoal.errors import ConfigError, ShoalError
from shoal.spider import link_spider
from shoal.spider.arguments import read_arguments
from shoal.spider.crawl_names import name_with
from shoal.spider.hooks import hooks_of
from shoal.spider.spider import Spider, check_rules
from shoal.spider.starting import starts_nowhere

WAYS = "write file.py, file.py:Class, package.module:Class, scrapy:SPIDER or https://..."
SCRAPY = "scrapy:"
"""Prefix of a target that names a spider of the Scrapy project in this folder."""
_PRIVATE = "_shoal_target_"
"""Prefix of the names of modules loaded from files. It cannot clash with a module's own name, nor
with `__main__`."""

NO_ARGUMENTS: Mapping[str, Any] = {}

_OWN = Path(__file__).parent.parent


def load(targets: Sequence[str]) -> type[Spider]:
    """Load the spider that the targets name. Every mistake raises a ConfigError of one line."""
    if not targets:
        raise ConfigError(f"no target: {WAYS}")
    if is_scrapy(targets):
        spider: type[Spider] = plugin("shoal.targets", "scrapy")(targets)
        return spider
    if any("://" in target for target in targets):
        return link_spider.spider_for(targets)
    if len(targets) > 1:
        raise ConfigError(f"one spider at a time, or only URLs; not {' '.join(targets)}")
    place, name = _split(targets[0])
    is_file = place.endswith(".py")
    if name and not is_file and all(part.isidentifier() for part in place.split(".")):
        return _pick(_import_module(place), name, place)
    if is_file or (place and Path(place).exists()):
        return _pick(_import_file(place), name, place)
    raise ConfigError(f"not a target: {targets[0]!r} ({WAYS})")


def load_all(place: str) -> list[type[Spider]]:
    """Load all spiders that a file or module defines. Raises ConfigError if it cannot be
    imported."""
    module = _import_file(place) if place.endswith(".py") else _import_module(place)
    return [spider for _, spider in sorted(_defined_in(module).items())]


def without_bases(spiders: Iterable[type[Spider]]) -> list[type[Spider]]:
    """Those that are more than what others have in common: a class that others of them are derived
    from, and that starts nowhere, is none to run. One file may have been imported twice."""
    listed = list(spiders)
    bases = {_origin(base) for spider in listed for base in spider.__mro__[1:]}
    return [each for each in listed if _origin(each) not in bases or not starts_nowhere(each)]


def _origin(cls: type) -> tuple[str, str]:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__
    return str(Path(file).resolve()), cls.__qualname__


def is_scrapy(targets: Sequence[str]) -> bool:
    """Whether the target is a spider of a Scrapy project. Without targets it is not: a class that
    is given directly is Shoal's."""
    return bool(targets) and targets[0].startswith(SCRAPY)


def create(
    spider: type[Spider], plugins: Sequence[str] = (), args: Mapping[str, Any] = NO_ARGUMENTS
) -> Spider:
    """Make a spider with these arguments, and these plugins in addition to its own.

    The arguments are set before `__init__` runs, so it can use them. Whatever it raises becomes a
    ConfigError of one line.
    """
    values = read_arguments(spider, args)
    with suppress(ConfigError):  # The crawl was given another name.
        values["name"] = name_with(spider, args)
    try:
        made = spider.__new__(spider)
        vars(made).update(values)
        made.__init__()  # type: ignore[misc]
    except Exception as error:
        raise ConfigError(_one_line(error, spider.__name__)) from error
    check_rules(made)
    made._shoal_hooks = hooks_of(made, [*map(_plugin_at, plugins), *made.plugins])
    return made


def _plugin_at(place_and_name: str) -> Any:
    """Load a plugin that the setting `plugins` names. Raises ConfigError."""
    place, name = _split(place_and_name)
    if not name:
        raise ConfigError(f"plugins: write package.module:Class, not {place_and_name!r}")
    try:
        module = _import_file(place) if place.endswith(".py") else _import_module(place)
    except ConfigError as error:
        raise ConfigError(f"plugins: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise ConfigError(f"plugins: {place} has no {name!r}")
    return found


def spec_of(spider: type[Spider]) -> list[str] | None:
    """The targets by which another process can load this class; None if it cannot."""
    if plain_urls := link_spider.urls_of(spider):
        return plain_urls
    module = sys.modules.get(spider.__module__)
    if module is None or getattr(module, spider.__qualname__, None) is not spider:
        return None
    place = _place_of(module)
    return [f"{place}:{spider.__qualname__}"] if place else None


def _place_of(module: ModuleType) -> str | None:
    name = module.__name__
    if name == "__main__" and module.__spec__ is not None:
        return module.__spec__.name  # run with `python -m`
    if name == "__main__" or name.startswith(_PRIVATE):
        file = getattr(module, "__file__", None)
        return str(Path(file).resolve()) if file and file.endswith(".py") else None
    return name


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    # The colon in C:\spider.py does not precede a class name.
    return (place, name) if colon and name.isidentifier() else (target, "")


def _import_file(place: str) -> ModuleType:
    path = Path(place)
    if path.is_dir():
        raise ConfigError(
            f"{place} is a folder, not a spider (crawl --all runs all that are in it)"
        )
    if not path.exists():
        raise ConfigError(f"no such file: {place}")
    if path.suffix != ".py":
        raise ConfigError(f"{place} is not a .py file")
    path = path.resolve()
    digest = hashlib.blake2b(str(path).encode("utf-8", "surrogateescape"), digest_size=8)
    name = _PRIVATE + digest.hexdigest()
    return sys.modules.get(name) or _execute(name, path, place)


def _execute(name: str, path: Path, place: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{place} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    _put_on_path(path.parent)
    # Dataclasses look up their module in sys.modules by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(_one_line(error, place)) from error
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_module(name: str) -> ModuleType:
    _put_on_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise ConfigError(f"no module named {error.name!r}") from None
        raise ConfigError(_one_line(error, name)) from error
    except (Exception, SystemExit) as error:
        raise ConfigError(_one_line(error, name)) from error


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _one_line(error: BaseException, place: str) -> str:
    """An exception from the user's code as one line, with the place that raised it. If Shoal did,
    that is the user's line that called it."""
    if isinstance(error, SyntaxError):
        return f"{error.filename or place}:{error.lineno or 1}: {error.msg}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not _is_own(frame.filename)
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else place
    what = str(error).partition("\n")[0]
    if what and isinstance(error, ShoalError):
        return f"{where}: {what}"
    return (
        f"{where}: {type(error).__name__}: {what}" if what else f"{where}: {type(error).__name__}"
    )


def _is_own(filename: str) -> bool:
    """Whether code is Shoal's, or was generated by Python for a class of Shoal."""
    return filename.startswith("<") or Path(filename).is_relative_to(_OWN)


def _pick(module: ModuleType, name: str, place: str) -> type[Spider]:
    if name:
        return _named(module, name, place)
    here = {spider.__name__: spider for spider in without_bases(_defined_in(module).values())}
    if not here:
        raise ConfigError(f"{place} has no Spider in it")
    if len(here) > 1:
        names = ", ".join(sorted(here))
        raise ConfigError(
            f"{place} has several spiders ({names}): write {place}:{min(here)}"
            " (crawl --all runs all of them)"
        )
    return next(iter(here.values()))


def _defined_in(module: ModuleType) -> dict[str, type[Spider]]:
    """The spiders that a module itself defines, by name. Those it imports do not count."""
    return {
        thing.__name__: thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Spider)
        and thing.__module__ == module.__name__
    }


def _named(module: ModuleType, name: str, place: str) -> type[Spider]:
    found = getattr(module, name, None)
    if found is None:
        raise ConfigError(f"{place} has no class {name!r}")
    if not isinstance(found, type) or not issubclass(found, Spider):
        raise ConfigError(f"{place}:{name} is not a Spider")
    return found
