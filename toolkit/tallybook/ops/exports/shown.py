"""An export as a table for a notebook: one row a column."""

from pathlib import Path

import polars

from tallybook.ops.exports.inspecting import inspect
from tallybook.ops.silence import Silence

_COLUMNS = {"column": polars.String, "type": polars.String, "cells": polars.Int64,
            "nulls": polars.Int64, "different": polars.Int64, "samples": polars.String,
            "suspicious": polars.String}  # fmt: skip


def export_columns(export: str | Path | None) -> polars.DataFrame | Silence:
    """One row a column of an export: column, type (that its cells suggest), cells, nulls,
    different, samples, suspicious. Without an export a sentence."""
    if export is None:
        return Silence("There is no export to look at")
    rows = [
        (
            one.name,
            str(one.rule().get("type", "text")),
            one.cells,
            one.nulls,
            one.different,
            ", ".join(one.samples),
            "; ".join(one.suspicious()),
        )
        for one in inspect(export).columns
    ]
    return polars.DataFrame(rows, schema=_COLUMNS, orient="row")
