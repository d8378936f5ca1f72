"""The register of handlers: which function does the jobs of a topic."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from tallybook.errors import BadInput
from tallybook.payload import checked_topic

Handler = Callable[..., Any]
_Function = TypeVar("_Function", bound=Handler)
_handlers: dict[str, Handler] = {}


def handler(topic: str) -> Callable[[_Function], _Function]:
    """Register a function or coroutine ``(job)`` or ``(job, ctx)`` for a topic.

    What it returns becomes the job's result. It raises ``Retry``, ``Permanent`` or ``Snooze`` to
    say how the job goes on; any other exception is a retry. Raises BadInput for a second one.
    """
    checked_topic(topic)

    def register(function: _Function) -> _Function:
        known = _handlers.get(topic)
        if known and _place(known) != _place(function):
            raise BadInput(
                f"two handlers for topic {topic}: {_place(known)} and {_place(function)}; keep one"
            )
        _handlers[topic] = function
        return function

    return register


def load(module: str) -> dict[str, Handler]:
    """Import ``module`` (the working folder is on the path); returns its handlers by topic.

    Raises BadInput where the module is missing or registers none.
    """
    here = os.getcwd()  # noqa: PTH109 - sys.path holds text
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise BadInput(
                f"no module {module!r} in {here} or among the installed packages"
            ) from None
        raise BadInput(f"module {module!r} needs {error.name!r}, which is not installed") from None
    except SyntaxError as error:
        raise BadInput(f"{error.filename} line {error.lineno}: {error.msg}") from None
    if not _handlers:
        raise BadInput(f"module {module!r} registers no handler; write @handler(TOPIC) above one")
    return dict(_handlers)


def takes_context(function: Handler) -> bool:
    """Whether a handler wants ``(job, ctx)`` and not just ``(job)``."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return len([item for item in parameters if item.kind in kinds]) > 1


def _place(function: Handler) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = f" line {code.co_firstlineno}" if code else ""
    return f"{function.__module__}.{function.__qualname__}{line}"
