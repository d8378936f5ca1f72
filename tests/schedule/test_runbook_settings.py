"""runbooks.toml: read whole into records, or refused in one line with file, line and field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tallybook.errors import BadInput
from tallybook.runbook import settings

WHOLE = """
[retention]
keep_runs = 50
keep_days = 30

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


@dataclass(frozen=True)
class Limits:
    """Thresholds as a release may have them."""

    wait_s: float = 1.0
    share: float = 0.0


def read(folder: Path, text: str) -> settings.RunbookSettings:
    """The settings that ``text`` says."""
    (folder / "runbooks.toml").write_text(text, "utf-8")
    return settings.load(folder)


def test_the_whole_file_becomes_records(tmp_path: Path) -> None:
    known = read(tmp_path, WHOLE)
    first, second = known.schedule
    assert known.retention == settings.Retention(50, 30.0)
    assert known.alerts["night"] == settings.Alerts(
        ("env:ALERT_URL", "file:/run/secrets/mail"), findings="warning", missed=False
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
    assert (second.name, second.zone, second.line) == ("weekly", "UTC", 23)
    assert second.parameters == {"since": "2026-11-01", "n": "3"}


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    known = settings.load(tmp_path)
    assert (known.schedule, known.alerts, known.retention) == ((), {}, settings.Retention())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[retention\n", ": not valid TOML: "),
        ("a = 1", " line 1: a: no such field; known: thresholds, retention, alerts, schedule"),
        (
            "\n[retention]\nkeep_rums = 3",
            " line 3: [retention] keep_rums: no such field; did you mean keep_runs?",
        ),
        ("[retention]\nkeep_runs = 1.5", " line 2: [retention] keep_runs: write a whole number"),
        ("[retention]\nkeep_days = -1", " line 2: [retention] keep_days: -1 is not in 0 to"),
        ("[thresholds]\nno_such = 1", " line 2: [thresholds] no_such: no such field;"),
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
            " line 6: [[schedule]] 2 crom: no such field; did you mean cron?",
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
    monkeypatch.setattr(settings, "Thresholds", Limits)
    (tmp_path / "runbooks.toml").write_text("[thresholds]\nwait_s = 5\nshare = 0.5\n", "utf-8")
    monkeypatch.setenv("TALLYBOOK_THRESHOLDS", '{"wait_s": 9}')
    assert settings.thresholds(tmp_path) == Limits(wait_s=9.0, share=0.5)
    monkeypatch.setenv("TALLYBOOK_THRESHOLDS", '{"wait_s": "long"}')
    with pytest.raises(BadInput, match=r"TALLYBOOK_THRESHOLDS.*wait_s: write a number"):
        settings.thresholds(tmp_path)
