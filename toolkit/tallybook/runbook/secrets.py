"""Secrets by reference: a run is told where a secret lies, and only its kernel reads it.

    key = secret(api_key)  # "env:CLOUD_KEY", "file:/run/secrets/key" or "keyring:cloud/me"

What is read so is hidden in everything that the kernel sends from then on: printed text, tables,
tracebacks. Its repr is ``'***'``. In no file of a run stands more than the reference.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from tallybook.errors import BadInput

HIDDEN = "***"
LEAST = 8
_hidden: list[str] = []


class Secret(str):
    """A text that is not shown where it is displayed; in every other way it is that text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


def secret(reference: str) -> Secret:
    """What ``reference`` leads to, without the line end of a file.

    An empty reference gives an empty secret. Raises BadInput, which never repeats what was found,
    where there is nothing, or so little that it cannot be hidden in other text.
    """
    if not reference:
        return Secret()
    kind, _, place = reference.partition(":")
    if kind not in _READ:
        raise BadInput(
            "a secret is given by reference: env:NAME, file:PATH or keyring:SERVICE/USER"
        )
    found = _READ[kind](place)
    if len(found) < LEAST:
        what = f"shorter than {LEAST} characters" if found else "empty"
        raise BadInput(f"the secret {reference} is {what}; it could not be hidden")
    _hide(found)
    return Secret(found)


def require(name: str, reference: str) -> None:
    """Raise BadInput, naming the parameter, where nothing is at ``reference``; reads no secret."""
    kind, _, place = reference.partition(":")
    problem = _MISSING[kind](place)
    if problem:
        raise BadInput(f"parameter {name}: {reference}: {problem}")


def hidden(value: Any) -> Any:
    """``value`` of a message, JSON-like, with every known secret in its texts hidden."""
    if isinstance(value, str):
        for form in _hidden:
            value = value.replace(form, HIDDEN)
        return value
    if isinstance(value, dict):
        return {key: hidden(inner) for key, inner in value.items()}
    return [hidden(inner) for inner in value] if isinstance(value, list | tuple) else value


def _hide(text: str) -> None:
    """Hide ``text`` from now on, also quoted, encoded or one of its lines."""
    first = not _hidden
    lines = [line for line in text.splitlines() if len(line.strip()) >= LEAST]
    for one in (text, *lines):
        found = {form for form in _forms(one) if form not in _hidden}
        _hidden.extend(sorted(found, key=len, reverse=True))
    _hidden.sort(key=len, reverse=True)
    if first:
        _hide_in_kernel()


def _forms(text: str) -> set[str]:
    coded = base64.b64encode(text.encode()).decode().rstrip("=")
    quoted = {quote(text), quote(text, safe=""), quote_plus(text)}
    written = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
    return {text, coded, escape(text), escape(text, quote=False), *quoted, *written}


def _hide_in_kernel() -> None:
    """Have all messages of this Jupyter kernel pass ``hidden``; elsewhere nothing is sent."""
    shell = _shell()
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is None:
        return
    pack = session.pack
    session.pack = lambda message: pack(hidden(message))


def _shell() -> Any:
    if find_spec("IPython") is None:
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()


def _environment(name: str) -> str:
    if name not in os.environ:
        raise BadInput(f"the secret env:{name}: the environment has no {name}")
    return os.environ[name]


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise BadInput(f"the secret file:{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"the secret file:{path}: it is no text in UTF-8") from None


def _keyring(place: str) -> str:
    problem = _no_keyring(place)
    if problem:
        raise BadInput(f"the secret keyring:{place}: {problem}")
    import keyring

    service, _, user = place.partition("/")
    try:
        found = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise BadInput(f"the secret keyring:{place}: {error}") from None
    if found is None:
        raise BadInput(f"the secret keyring:{place}: the keyring has no such entry")
    return str(found)


def _no_environment(name: str) -> str:
    return "" if name in os.environ else f"the environment has no {name}"


def _no_file(path: str) -> str:
    return "" if os.access(path, os.R_OK) and Path(path).is_file() else "no such file to read"


def _no_keyring(_place: str) -> str:
    return "" if find_spec("keyring") else "that needs keyring; run: pip install keyring"


_READ: dict[str, Callable[[str], str]] = {
    "env": _environment,
    "file": _file,
    "keyring": _keyring,
}
_MISSING: dict[str, Callable[[str], str]] = {
    "env": _no_environment,
    "file": _no_file,
    "keyring": _no_keyring,
}
