"""A profile or a file that does not fit: one line says what and what to do; nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_steps import CSV, EVENTS, HEAD, SAMPLES, imported

from tallybook.cli import main
from tallybook.errors import BadInput
from tallybook.ops import imports

GOOD = HEAD + "a,q,2024-05-01T08:00:00Z,,,queued\n"

PROFILES = {
    "a column that the file does not have": (
        CSV.replace('"start"', '"began"', 1).replace('start = "start"', 'start = "began"'),
        "[columns] start: log.csv has no column 'began'; it has 'id', 'queue', 'submit'",
    ),
    "a field that there is not": (
        CSV.replace("submit =", "submitt ="), "no field of [columns] with rows = 'jobs' 'submitt'; "
        "did you mean 'submit'?",
    ),
    "a table that there is not": (
        CSV + "[statuses]\n", "no table 'statuses'; did you mean 'status'?",
    ),
    "two columns for one field": (
        CSV.replace('submit = "submit"', 'submit = ["submit", "start"]'),
        "[columns] submit: two columns for one field, 'submit' and 'start'; name one",
    ),
    "one field twice": (
        CSV.replace('end = "end"', 'end = "end"\nend = "start"'), "a field is given twice",
    ),
    "a start and a wait": (
        CSV.replace('end = "end"', 'wait = "end"'),
        "[columns]: two columns for one field: wait gives start; name one",
    ),
    "a format that matches nothing": (
        CSV + '[time]\nformat = "%d/%m/%Y"\n',
        "none of the 1 rows fits: submit: no time; for example submit: no time: 2024-05-01T08:00",
    ),
    "a zone that there is not": (CSV + '[time]\nzone = "Mars/Base"\n', "no time zone 'Mars/Base'"),
    "a format that is none": (CSV + '[time]\nformat = "epoch"\n', "'epoch' is none of iso, s, ms"),
    "no year": (CSV + '[time]\nformat = "%m/%d %H:%M"\n', "no year: say which it begins in"),
    "a word with two meanings": (
        CSV.replace('["ok"]', '["ok", "gone"]'), "'gone' stands under done and cancelled",
    ),
    "no words for a status": (CSV.partition("[status]")[0], "[status] is missing"),
    "another type": (CSV + '[time]\nyear = "2024"\n', "[time] year: '2024' is not a whole number"),
    "no pattern": ('[read]\nformat = "blocks"\n' + CSV, "[read] pattern is missing"),
    "events without a time": (EVENTS.replace('at = "at"\n', ""), "[columns] at is missing"),
}  # fmt: skip


@pytest.mark.parametrize("what", PROFILES)
def test_a_profile_that_does_not_fit_is_refused_with_the_reason(tmp_path: Path, what: str) -> None:
    profile, message = PROFILES[what]
    with pytest.raises(BadInput) as error:
        imported(tmp_path, GOOD, profile)
    assert message in str(error.value)
    assert not (tmp_path / "book").exists()


def test_a_format_that_matches_nothing_shows_three_values(tmp_path: Path) -> None:
    text = HEAD + "".join(f"{n},q,1.5.2024 0{n}:00,,,queued\n" for n in range(5))
    with pytest.raises(BadInput) as error:
        imported(tmp_path, text, CSV)
    assert [f"1.5.2024 0{n}:00" in str(error.value) for n in range(5)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1 and so on", "is Parquet"),
        (b"PK\x03\x04 and so on", "is a zip archive or workbook"),
        (b"SQLite format 3\x00", "is an SQLite database"),
        (b"id\x00\x01\x02", "it holds NUL bytes"),
        ("id,submit".encode("utf-16"), "is UTF-16; write it as UTF-8 first"),
        (b"  \n", "is empty"),
        (b"\x1f\x8b\x08\x00cut", "is a damaged or cut archive"),
        (b"id,id,submit\n1,2,3\n", "has two columns of one name: id"),
        (b"<html><body>503</body></html>\n", "has no column 'id'"),
    ],
)
def test_a_file_of_another_kind_is_named_as_what_it_is(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    (tmp_path / "p.toml").write_text(CSV)
    with pytest.raises(Exception, match=r"log\.csv") as error:
        imports.import_jobs([tmp_path / "log.csv"], str(tmp_path / "p.toml"), tmp_path / "book")
    assert message in str(error.value) and not (tmp_path / "book").exists()


@pytest.mark.parametrize("name", ["spark", "taskcluster", "htcondor"])
def test_a_csv_given_to_a_profile_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    profile = imports.load(name, ["time.year=2024"] if name == "htcondor" else [])
    with pytest.raises(BadInput, match="slurm"):
        imports.import_jobs([SAMPLES / "slurm.txt"], profile, tmp_path / "book")


def test_the_command_says_what_is_missing_and_which_profiles_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(SAMPLES / "slurm.txt")
    for given, message in [
        ([], "name a --profile"),
        (["--profile", "slurm"], "name the new book with --book DIR"),
        (["--profile", "slrm", "--book", str(tmp_path / "b")], "no profile 'slrm'; there are air"),
        (["--profile", "no.toml", "--book", str(tmp_path / "b")], "no profile at no.toml"),
        (["--profile", "slurm", "--set", "zone", "--book", "b"], "is not like time.zone="),
    ]:  # fmt: skip
        assert main.main(["import", "jobs", file, *given]) == 2
        assert message in capsys.readouterr().err


def test_a_file_that_nothing_fits_is_inspected_to_no_avail_and_shows_its_first_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "poem.txt").write_text("roses are red\nviolets are blue\n")
    assert main.main(["import", "jobs", str(tmp_path / "poem.txt"), "--inspect"]) == 2
    assert "'roses are red'; 'violets are blue'" in capsys.readouterr().err
