"""A profile for a file that none of ours fits: proposed from names and values, never trusted.

Each choice that could be another one is told in ``unsure``; the person decides.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from tallybook.ops.imports.rewriting import keys_of

_MOST_ROWS = 2000
_FEW_WORDS = 40
_HINTS: Mapping[str, str] = {
    "id": r"^(job|task|run|request)?_?(id|uuid|guid|key|number)(raw)?$|^uuid$|^job$",
    "submit": r"submi|queue_?d|enqueue|creat|arriv|schedul|request.*(time|at)$",
    "start": r"start|began|begin|launch|dequeue|picked",
    "end": r"^end|finish|complet|stop|resolved|ended|done_?at",
    "status": r"^(job_?)?(state|status|result|conclusion|outcome)$|status$|state$",
    "worker": r"worker|host|node|machine|runner|agent|executor|server",
    "topic": r"^(topic|queue|partition|type|kind|class|function|activity|(job_?|task_?)?name)$",
    "event": r"event|lifecycle|transition|action|what|registration_type",
    "at": r"time|date|^at$|^ts$|when",
    "wait": r"wait",
    "run": r"^run_?(time|s|ms)?$|duration|elapsed",
}  # fmt: skip
_STATUS: Mapping[str, str] = {
    "done": r"complet|succe|^ok$|done|finish|pass|neutral",
    "dead": r"fail|error|timeout|timed|exception|kill|oom|out_of|busted|dead|lost|reject",
    "cancelled": r"cancel|abort|revok|skip|withdr|remov",
    "leased": r"run|start|activ|progress|execut|process",
    "pending": r"pend|queue|wait|schedul|new|creat|submit|ready|hold",
}  # fmt: skip
_STEPS: Mapping[str, str] = {
    "done": r"complet|succe|^ok$|done|finish|pass|^end",
    "dead": r"fail|error|timeout|exception|kill|dead|reject",
    "cancelled": r"cancel|abort|revok|withdr",
    "retry": r"retr|requeue|resubmit",
    "start": r"start|begin|began|run|execut|dequeue|progress",
    "submit": r"submit|queue|creat|schedul|sent|arriv|new|receiv",
}  # fmt: skip
_EPOCH = re.compile(r"-?\d{9,19}(\.\d+)?")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?)?( ?(Z|UTC|[+-]\d\d(:?\d\d)?))?"
)
_SLASHED = re.compile(r"(\d\d?)([/.-])(\d\d?)[/.-](\d{4})([ T])(\d\d?:\d\d)(:\d\d)?")


@dataclass(slots=True)
class Guess:
    """A proposal as the tables of a profile, with what it is unsure of."""

    tables: dict[str, dict[str, object]] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)


def guess(head: str) -> Guess | None:
    """What the first lines of a file look like; None where no time is found in them."""
    made = Guess()
    rows = _json_rows(head, made) or _csv_rows(head, made)
    values = {name: [row[name] for row in rows if row.get(name)] for name in _names(rows)}
    times = [name for name, found in values.items() if found and _is_time(found)]
    if not times:
        return None
    columns = _columns(values, times, made)
    made.tables["columns"] = dict(columns)
    _times(values, [columns[name] for name in columns if columns[name] in times], made)
    _words(values, columns, made)
    if len(rows) >= _MOST_ROWS:
        made.unsure.append(f"only the first {len(rows):,} rows were looked at")
    return made


def _json_rows(head: str, made: Guess) -> list[dict[str, str]]:
    rows = []
    for line in head.splitlines()[:_MOST_ROWS]:
        if line.startswith("{"):
            try:
                rows.append(_flat(orjson.loads(line), keys_of(line)))
            except orjson.JSONDecodeError:
                continue
    made.tables["read"] = {"format": "ndjson"}
    return rows


def _flat(document: object, paths: Sequence[str]) -> dict[str, str]:
    """The single values of a document by path."""
    return {path: text for path in paths if (text := _value(document, path))}


def _value(document: object, path: str) -> str:
    for step in re.findall(r'"([^"]+)"|([^.]+)', path):
        name = step[0] or step[1]
        document = document.get(name) if isinstance(document, dict) else None
    return "" if document is None or isinstance(document, dict | list) else str(document)


def _csv_rows(head: str, made: Guess) -> list[dict[str, str]]:
    lines = [line for line in head.splitlines()[:_MOST_ROWS] if line and line[0] not in "#;"]
    delimiter = _delimiter(lines)
    found = [cells for cells in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
             if cells]  # fmt: skip
    if not found:
        return []
    first = found[0]
    has_header = not any(_is_time([cell]) or cell.isdecimal() for cell in first if cell)
    read: dict[str, object] = {"format": "csv", "delimiter": delimiter}
    if not has_header:
        first = [f"column {at}" for at in range(1, len(first) + 1)]
        read |= {"header": False, "columns": first}
        made.unsure.append("the first line looks like a row, not like a header: name the columns")
    elif found[0] == [name for name in found[0] if name]:
        made.unsure.append("the first line is taken for the header")
    made.tables["read"] = read
    rows = found[1:] if has_header else found
    return [dict(zip(first, cells, strict=False)) for cells in rows if len(cells) == len(first)]


def _delimiter(lines: Sequence[str]) -> str:
    """The character that stands equally often, and most often, in the first lines."""
    some = lines[:50]
    counts = {mark: [line.count(mark) for line in some] for mark in "\t|;,"}
    even = {mark: found[0] for mark, found in counts.items() if found and min(found) == max(found)}
    usual = {mark: min(found, default=0) for mark, found in counts.items()}
    best = max(even or usual, key=lambda mark: (even or usual)[mark], default=",")
    return best if (even or usual).get(best) else ","


def _names(rows: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows[:200] for name in row))


def _is_time(values: Sequence[str]) -> bool:
    return all(
        any(form.fullmatch(value.strip()) for form in (_EPOCH, _ISO, _SLASHED))
        for value in values[:100]
    )


def _bare(name: str) -> str:
    """The last step of a path, in small letters with words set apart by _."""
    last = name.rpartition(".")[2].strip('"')
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).lower()).strip("_")


def _hinted(field_name: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if re.search(_HINTS[field_name], _bare(name))]


def _columns(
    values: Mapping[str, list[str]],
    times: Sequence[str],
    made: Guess,
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    others = [name for name in values if name not in times]
    _choose("id", others, chosen, made)
    event = next((name for name in _hinted("event", others) if _is_word(values[name])), None)
    if len(times) == 1 and event and event not in chosen.values():
        made.tables["read"]["rows"] = "events"
        chosen |= {"event": event, "at": times[0]}
        made.unsure.append(f"rows are taken for events: {event!r} says which, {times[0]!r} when")
        fields = ["worker", "topic"]
    else:
        for name in ("submit", "start", "end"):
            _choose(name, times, chosen, made)
        if not {"submit", "start", "end"} & chosen.keys():
            chosen["submit"] = times[0]
            made.unsure.append(f"{times[0]!r} is taken for the submit: it is the first time")
        fields = ["status", "worker", "topic"]
    for name in fields:
        fitting = [one for one in others if name != "status" or _is_word(values[one])]
        _choose(name, fitting, chosen, made)
    if "id" in chosen and "event" not in chosen:
        given = values[chosen["id"]]
        if len(set(given)) < len(given):
            made.tables["read"]["rows"] = "states"
            made.unsure.append(f"{chosen['id']!r} is repeated: rows are taken for states of a job")
    left = [name for name in times if name not in chosen.values()]
    if left:
        made.unsure.append(f"times that are not used: {', '.join(map(repr, left))}")
    if "id" not in chosen:
        made.unsure.append("no column looks like an id: each row is a job of its own")
    return chosen


def _choose(name: str, names: Sequence[str], chosen: dict[str, str], made: Guess) -> None:
    fitting = [one for one in _hinted(name, names) if one not in chosen.values()]
    if fitting:
        chosen[name] = fitting[0]
    if len(fitting) > 1:
        made.unsure.append(
            f"{name} could be {' or '.join(map(repr, fitting[:4]))}: the first is taken"
        )


def _is_word(values: Sequence[str]) -> bool:
    return 0 < len(set(values)) <= _FEW_WORDS and not any(value.isdecimal() for value in values)


def _times(values: Mapping[str, list[str]], used: Sequence[str], made: Guess) -> None:
    samples = [value.strip() for name in used for value in values[name]]
    if all(_EPOCH.fullmatch(value) for value in samples):
        digits = max(len(value.partition(".")[0]) for value in samples)
        unit = "s" if digits <= 11 else "ms" if digits <= 14 else "us" if digits <= 17 else "ns"
        made.tables["time"] = {"format": unit}
        made.unsure.append(f"times are numbers of {digits} digits: taken for {unit} since 1970")
        return
    slashed = [found for value in samples if (found := _SLASHED.fullmatch(value))]
    if slashed:
        made.tables["time"] = {"format": _pattern(slashed, made), "zone": "UTC"}
    else:
        made.tables["time"] = {"format": "iso", "zone": "UTC"}
    if not all(re.search(r"(Z|UTC|[+-]\d\d(:?\d\d)?)$", value[10:]) for value in samples):
        made.unsure.append("times have no offset: they are read as UTC; set zone where they "
                           "are local")  # fmt: skip


def _pattern(found: Sequence[re.Match[str]], made: Guess) -> str:
    firsts, seconds = [int(one[1]) for one in found], [int(one[3]) for one in found]
    day_first = max(firsts) > 12 or max(seconds) <= 12
    if max(firsts) <= 12 and max(seconds) <= 12:
        made.unsure.append(f"{found[0][0]!r}: day first or month first cannot be told; day first "
                           "is taken")  # fmt: skip
    mark, blank = found[0][2], found[0][5]
    date = f"%d{mark}%m{mark}%Y" if day_first else f"%m{mark}%d{mark}%Y"
    return f"{date}{blank}%H:%M" + (":%S" if found[0][7] else "")


def _words(values: Mapping[str, list[str]], columns: Mapping[str, str], made: Guess) -> None:
    name, known = ("events", _STEPS) if "event" in columns else ("status", _STATUS)
    column = columns.get("event") or columns.get("status")
    if not column:
        return
    table: dict[str, object] = {}
    for word in dict.fromkeys(values[column]):
        kind = next((kind for kind, form in known.items() if re.search(form, word.lower())), None)
        if kind:
            held = table.setdefault(kind, [])
            assert isinstance(held, list)  # noqa: S101 - made two lines above
            held.append(word)
        else:
            made.unsure.append(f"what {word!r} of {column!r} means is not known: "
                               f"add it to [{name}]")  # fmt: skip
    made.tables[name] = table
