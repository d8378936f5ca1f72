"""Payloads of a type that the user gives: ``@handler("orders.sync", payload=Order)``.

A dataclass is built from an object whose names are its fields, nested ones and lists of them too;
a class with ``model_validate`` (as pydantic's have) builds itself.
"""

from __future__ import annotations

import typing
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any

from tallybook.errors import Permanent
from tallybook.job import Job


def typed(job: Job, payload_type: type | None) -> Job:
    """The job with its payload as a ``payload_type``. Raises Permanent where it does not fit."""
    if payload_type is None:
        return job
    try:
        payload = _build(payload_type, job.payload, "payload")
    except (TypeError, ValueError) as error:
        reason = f"the payload does not fit {payload_type.__name__}: {error}"
        raise Permanent(reason, error_type="PayloadDoesNotFit") from None
    found = TypedJob._make(job)
    found.built = payload
    return found


class TypedJob(Job):
    """A job whose payload was built already."""

    built: Any

    @property
    def payload(self) -> Any:
        """The payload as the type that its handler asked for."""
        return self.built


def _build(kind: Any, value: Any, place: str) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if is_dataclass(kind):
        return _build_dataclass(kind, value, place)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        return _build_either(inner, value, place)
    if origin is list and isinstance(value, list):
        return [_build(inner[0], item, f"{place}[{n}]") for n, item in enumerate(value)]
    return _checked(origin or kind, value, place)


def _build_dataclass(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise TypeError(f"{place} is {type(value).__name__}, not an object")
    known = {item.name: item for item in fields(kind)}
    for name in value:
        if name not in known:
            raise ValueError(f"{place}.{name} is no field; there are {', '.join(known)}")
    for name, item in known.items():
        if name not in value and item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{place}.{name} is missing")
    kinds = typing.get_type_hints(kind)
    return kind(**{n: _build(kinds[n], item, f"{place}.{n}") for n, item in value.items()})


def _build_either(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    tried = []
    for kind in kinds:
        try:
            return _build(kind, value, place)
        except (TypeError, ValueError) as error:
            tried.append(str(error))
    raise TypeError("; ".join(tried))


def _checked(kind: Any, value: Any, place: str) -> Any:
    if kind is Any or not isinstance(kind, type):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    wrong_bool = isinstance(value, bool) and kind is not bool and kind is not object
    if wrong_bool or not isinstance(value, kind):
        raise TypeError(f"{place} is {type(value).__name__}, not {kind.__name__}")
    return value
