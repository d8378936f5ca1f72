"""runbooks.toml: read whole into records, or refused in one line with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallybook.errors import BadInput
from tallybook.runbook import own_thresholds, settings, thresholds
from tallybook.runbook.limits import Limits
from tallybook.runbook.schedule import planned

WHOLE = """
[runs]
keep = 50
keep_days = 30

[stuck_leases]
overdue_s = 5

[alerts.night]
targets = ["env:ALERT_URL", "file:/run/secrets/mail"]
findings = "warning"
missed = false

# a comment, and [not.a] table
[[schedule]]
runbook = "reconcile"
cron = "30 2 * * *"
zone = "Europe/Berlin"
alerts = ["night"]

[schedule.parameters]
key = "ident"
dry_run = true
at = 2026-11-29T10:00:00Z

[[schedule]]
name = "weekly"
runbook = "throughput_latency"
cron = "0 6 * * 1"
missed = "all"
parameters = { since = "2026-11-01", n = 3 }
"""


def read(folder: Path, text: str) -> settings.RunbookSettings:
    """The settings that ``text`` says."""
    (folder / "runbooks.toml").write_text(text, "utf-8")
    return settings.load(folder / "runbooks.toml")


def test_the_whole_file_becomes_records(tmp_path: Path) -> None:
    known = read(tmp_path, WHOLE)
    first, second = known.schedule
    assert known.runs == Limits(keep=50, keep_days=30.0)
    assert known.thresholds.stuck_leases.overdue_s == 5
    assert known.alerts["night"] == settings.Alerts(
        ("env:ALERT_URL", "file:/run/secrets/mail"), findings="warning", missed=False, line=9
    )
    assert (first.name, first.zone, first.missed, first.alerts) == (
        "reconcile",
        "Europe/Berlin",
        "once",
        ("night",),
    )
    assert first.parameters == {
        "key": "ident",
        "dry_run": "true",
        "at": "2026-11-29T10:00:00+00:00",
    }
    assert (second.name, second.zone, second.line) == ("weekly", "UTC", 26)
    assert second.parameters == {"since": "2026-11-01", "n": "3"}


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    known = settings.load(tmp_path / "runbooks.toml")
    assert (known.schedule, known.alerts, known.runs) == ((), {}, Limits())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[runs\n", ": not valid TOML: "),
        ("alert = 1", " line 1: [alert]: no such table; did you mean alerts?"),
        (
            "\n[runs]\nkept = 3",
            " line 3: [runs] kept: no such setting; did you mean keep?",
        ),
        ("[runs]\nkeep = 1.5", " line 2: [runs] keep: write a whole number"),
        ("[runs]\nkeep_days = -1", " line 2: [runs] keep_days: -1 is not in 0 to"),
        (
            "[backlog]\ndrain = 1",
            " line 2: [backlog] drain: no such setting; did you mean drain_s?",
        ),
        ("[alerts.night]\nfailure = true", " line 1: [alerts.night] targets: name one, as in"),
        (
            '[alerts.night]\ntargets = "env:URL"',
            " line 2: [alerts.night] targets: write a list of names",
        ),
        (
            '[alerts.night]\ntargets = ["env:URL"]\nfindings = "worst"',
            " line 3: [alerts.night] findings: 'worst' is none of info, warning, problem, never",
        ),
        ('[schedule]\ncron = "1"', " line 1: [schedule]: write each entry as a table [[schedule]]"),
        ('[[schedule]]\ncron = "0 1 * * *"', " line 1: [[schedule]] 1 runbook: must be given"),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\n[[schedule]]\nrunbook = "b"\ncrom = "1"',
            " line 6: [[schedule]] 2 crom: no such setting; did you mean cron?",
        ),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\ndeadline_s = 0',
            " line 4: [[schedule]] 1 deadline_s: write more than 0 seconds",
        ),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\nmissed = "twice"',
            " line 4: [[schedule]] 1 missed: 'twice' is none of skip, once, all",
        ),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\nalerts = ["nigth"]\n'
            '[alerts.night]\ntargets = ["env:URL"]',
            " line 4: [[schedule]] 1 alerts: no [alerts.nigth]: did you mean night?",
        ),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\n[[schedule]]\nrunbook = "a"\ncron = "2"',
            " line 4: [[schedule]] 2 name: 'a' is also the entry on line 1; give it a name",
        ),
        (
            '[[schedule]]\nrunbook = "a"\ncron = "1"\n[schedule.parameters]\nx = [1]',
            " line 5: [[schedule]] 1 parameters x: write text, a number, a time or true or false",
        ),
    ],
)
def test_bad_settings_are_one_line_with_file_line_and_field(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read(tmp_path, text)
    line = str(refused.value)
    assert said in line and line.startswith(str(tmp_path / "runbooks.toml"))
    assert "\n" not in line


def test_the_thresholds_of_an_entry_are_over_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runbooks.toml"
    path.write_text("[backlog]\ndrain_s = 5\noldest_due_s = 6\n[mine]\nslow_s = 7\n", "utf-8")
    (tmp_path / "mine.ipynb").touch()
    given = {"backlog": {"drain_s": 9}, "mine": {"slow_s": 8}}
    monkeypatch.setenv("TALLYBOOK_THRESHOLDS", json.dumps(given))
    assert (thresholds(path).backlog.drain_s, thresholds(path).backlog.oldest_due_s) == (9, 6)
    assert own_thresholds("mine", path, slow_s=1.0) == {"slow_s": 8}
    monkeypatch.setenv("TALLYBOOK_THRESHOLDS", "drain_s")
    with pytest.raises(BadInput, match="TALLYBOOK_THRESHOLDS holds no JSON object"):
        thresholds(path)


def test_an_entry_hands_its_thresholds_to_its_run(tmp_path: Path) -> None:
    text = '[[schedule]]\nrunbook = "backlog"\ncron = "0 1 * * *"\nthresholds = {drain_s = 9}\n'
    (one,) = planned(read(tmp_path, text))
    assert one.environment() == {"TALLYBOOK_THRESHOLDS": '{"backlog": {"drain_s": 9}}'}
    with pytest.raises(BadInput, match=r"line 4: \[\[schedule\]\] 1 thresholds drain: no such set"):
        read(tmp_path, text.replace("drain_s", "drain"))


def test_a_text_of_several_lines_does_not_shift_the_places_of_what_follows(tmp_path: Path) -> None:
    note = '''[[schedule]]
runbook = "a"
cron = "0 1 * * *"
parameters.note = """
[[schedule]]
missed = "x"
"""
missed = "twice"
'''
    with pytest.raises(BadInput, match=r"line 8: \[\[schedule\]\] 1 missed: 'twice' is none of"):
        read(tmp_path, note)
