"""The register of handlers: which function does the jobs of a topic."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tallybook.errors import BadInput
from tallybook.payload import checked_topic

Function = Callable[..., Any]
_Function = TypeVar("_Function", bound=Function)


@dataclass(frozen=True, slots=True)
class Registered:
    """A handler: its function, whether it wants ``(job, ctx)``, and the type of its payloads."""

    function: Function
    takes_context: bool
    payload: type | None = None


_handlers: dict[str, Registered] = {}


def handler(topic: str, *, payload: type | None = None) -> Callable[[_Function], _Function]:
    """Register a function or coroutine ``(job)`` or ``(job, ctx)`` for a topic.

    What it returns becomes the job's result. It raises ``Retry``, ``Permanent`` or ``Snooze`` to
    say how the job goes on; any other exception is a retry. With a ``payload`` type (a dataclass,
    or a class with ``model_validate``) ``job.payload`` is one; a payload that does not fit is a
    dead letter. Raises BadInput for a second handler of a topic.
    """
    if not isinstance(topic, str):
        raise BadInput("a handler is named by its topic: write @handler(TOPIC)")
    checked_topic(topic)

    def register(function: _Function) -> _Function:
        known = _handlers.get(topic)
        if known and _place(known.function) != _place(function):
            places = f"{_place(known.function)} and {_place(function)}"
            raise BadInput(f"two handlers for topic {topic}: {places}; keep one")
        _handlers[topic] = registered(function, payload)
        return function

    return register


def registered(function: Function, payload: type | None = None) -> Registered:
    """A function as a handler of jobs whose payload is a ``payload``."""
    return Registered(function, _takes_context(function), payload)


def load(module: str) -> dict[str, Registered]:
    """Import ``module`` (the working folder is on the path); returns its handlers by topic.

    Raises BadInput where the module is missing, fails or registers none.
    """
    if not all(part.isidentifier() for part in module.split(".")) or module.endswith(".py"):
        raise BadInput(
            f"{module!r} is no module: name a module as in 'import', such as 'orders' for orders.py"
        )
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
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a module of the user does
        raise BadInput(_failed_import(module, error)) from None
    if not _handlers:
        raise BadInput(f"module {module!r} registers no handler; write @handler(TOPIC) above one")
    return dict(_handlers)


def _failed_import(module: str, error: BaseException) -> str:
    """Which module failed with what, and the line of the user's that did it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
    if isinstance(error, BadInput):
        ours = [f for f in ours if not f.filename.startswith(str(Path(__file__).parents[1]))]
        told = str(error)
    else:
        words = " ".join(str(error).split())
        told = f"raised {type(error).__name__}" + (f": {words}" if words else "")
    place = f" ({ours[-1].filename} line {ours[-1].lineno})" if ours else ""
    return f"module {module!r} {told}{place}" if told.startswith("raised") else f"{told}{place}"


def _takes_context(function: Function) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return len([item for item in parameters if item.kind in kinds]) > 1


def _place(function: Function) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    line = f" line {code.co_firstlineno}" if code else ""
    return f"{function.__module__}.{function.__qualname__}{line}"
