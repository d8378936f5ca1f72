"""Definitions for other systems, each read by the real tool or held to its schema."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML
from schedule_steps import entry

from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.runbook.schedule import Planned
from tallybook.runbook.schedule.definitions import KINDS, Where
from tallybook.runbook.schedule.definitions.systemd import calendars
from tallybook.runbook.settings import Alerts

HOSTILE = """a 'b' "c" %d $e {{ f }} \\ ü"""
TIMES = [
    "30 2 * * *",
    "0 */2 * * *",
    "*/20 8-18 * * mon-fri",
    "15 * * * *",
    "0 6 1,15 * *",
    "0 6 1,15 * tue",
    "0 6 * 2,11 0",
    "0 6 */2 * 7",
    "59 23 L * *",
    "0 12 29 2 *",
]


@pytest.fixture
def where(tmp_path: Path) -> Where:
    """A folder with a space and a percent sign in its name."""
    folder = tmp_path / "a 50% b"
    folder.mkdir()
    return Where(folder, folder / "book", folder / "out")


def made(kind: str, where: Where, *plan: Planned) -> dict[str, str]:
    """The files of a definition, by their names."""
    return {file.name: file.text for file in KINDS[kind](plan, where)}


def tool(name: str) -> str:
    """The path of a program; a skip where there is none, which CI takes as a failure."""
    found = shutil.which(name)
    if found is None:
        assert not os.environ.get("CI"), f"{name} is missing"
        pytest.skip(f"{name} is not on this machine")
    return found


def test_systemd_takes_the_service_and_the_timer(where: Where, tmp_path: Path) -> None:
    plan = [entry(HOSTILE, zone="Europe/Berlin", missed="skip"), entry("plain")]
    files = made("systemd", where, *plan)
    paths = [tmp_path / name for name in files]
    for path in paths:
        path.write_text(files[path.name], "utf-8")
    checked = subprocess.run(
        [tool("systemd-analyze"), "verify", "--man=no", *map(str, paths)],
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert (
        r"""--now" "a 'b' \"c\" %%d $$e {{ f }} \\ ü" """ in files["tallybook-a-b-c-d-e-f.service"]
    )
    text = files["tallybook-a-b-c-d-e-f.timer"]
    assert "Persistent=false" in text and "OnCalendar=*-*-* 02:00:00 Europe/Berlin" in text
    assert "Persistent=true" in files["tallybook-plain.timer"]


@pytest.mark.parametrize("cron", TIMES)
def test_systemd_understands_the_same_times(cron: str) -> None:
    one = entry(cron=cron, zone="America/New_York")
    base = datetime(2026, 5, 20, 3, 7, tzinfo=UTC)
    asked = [tool("systemd-analyze"), "calendar", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC"]
    due = {
        line.partition(":")[2].strip()
        for text in calendars(one)
        for line in subprocess.check_output(
            [*asked, "--iterations=8", text], text=True, env={**os.environ, "TZ": "UTC"}
        ).splitlines()
        if line.strip().startswith(("Next elapse", "Iter. #"))
    }
    ours = base
    for _ in range(8):
        ours = one.times.after(ours) or base
        assert f"{ours:%a %Y-%m-%d %H:%M:%S} UTC" in due


@pytest.mark.parametrize("cron", ["0 6 LW * *", "0 6 * * 5L", "0 6 * * MON#2", "0 6 1,L * *"])
def test_a_day_that_systemd_cannot_say_is_refused(where: Where, cron: str) -> None:
    with pytest.raises(BadInput, match="systemd can say L alone"):
        made("systemd", where, entry(cron=cron))


def test_cron_takes_the_crontab(where: Where, tmp_path: Path) -> None:
    text = made("crontab", where, entry(HOSTILE, zone="Europe/Berlin"), entry("plain"))["crontab"]
    path = tmp_path / "crontab"
    path.write_text(text, "utf-8")
    checked = subprocess.run([tool("crontab"), "-n", str(path)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_a_shell_reads_the_words_of_the_crontab_as_they_were_meant(where: Where) -> None:
    one = entry(HOSTILE, zone="Europe/Berlin")
    line = made("crontab", where, one)["crontab"].splitlines()[-1]
    assert line.startswith("0 2 * * * ") and not re.search(r"(?<!\\)%", line)
    words = shlex.split(line.removeprefix("0 2 * * * ").replace("\\%", "%"))
    assert words[1] == str(where.folder) and words[-7:] == [
        "schedule", "--now", HOSTILE, "--book", str(where.book), "--out", str(where.out)
    ]  # fmt: skip


def checked_by(schema: list[str], path: Path) -> Any:
    """The document in ``path``, which holds to the schema."""
    from check_jsonschema import main as check

    with pytest.raises(SystemExit) as ended:
        check([*schema, str(path)])
    assert ended.value.code == 0
    return YAML(typ="safe").load(path)


@pytest.fixture
def kubernetes() -> ModuleType:
    """The schemas of Kubernetes; a second to import, so late."""
    import kubernetes_validate

    return kubernetes_validate


def test_kubernetes_takes_the_cron_job(
    where: Where, kubernetes: ModuleType, tmp_path: Path
) -> None:
    one = entry(HOSTILE, zone="Europe/Berlin", deadline_s=90, missed="skip")
    ((name, text),) = made("kubernetes", where, one).items()
    path = tmp_path / name
    path.write_text(text, "utf-8")
    whole = YAML(typ="safe").load(path)
    kubernetes.validate(whole, "1.37", strict=True)
    known = whole["spec"]
    assert (known["schedule"], known["timeZone"]) == ("0 2 * * *", "Europe/Berlin")
    assert known["startingDeadlineSeconds"] == 60
    job = known["jobTemplate"]["spec"]
    assert job["activeDeadlineSeconds"] == 150
    (container,) = job["template"]["spec"]["containers"]
    assert HOSTILE in shlex.split(container["command"][2])


def test_a_field_that_kubernetes_does_not_know_is_seen(
    where: Where, kubernetes: ModuleType
) -> None:
    ((_, text),) = made("kubernetes", where, entry()).items()
    spoiled = YAML(typ="safe").load(text.replace("mountPath", "mountpath"))
    with pytest.raises(kubernetes.ValidationError, match="mountpath"):
        kubernetes.validate(spoiled, "1.37", strict=True)


def test_github_takes_the_workflow_with_the_secrets_of_its_alerts(
    where: Where, tmp_path: Path
) -> None:
    plain = entry("night", parameters={"key": "env:CLOUD_KEY"})
    one = Planned(plain.entry, plain.times, {"x": Alerts(("env:CHAT", "file:/x"))})
    ((name, text),) = made("github", where, one).items()
    path = tmp_path / name
    path.write_text(text, "utf-8")
    known = checked_by(["--builtin-schema", "vendor.github-workflows"], path)
    assert known["on"]["schedule"] == [{"cron": "0 2 * * *"}]
    (run,) = [step for step in known["jobs"]["run"]["steps"] if step.get("name") == "Run"]
    assert run["env"] == {
        "CHAT": "${{ secrets.CHAT }}",
        "CLOUD_KEY": "${{ secrets.CLOUD_KEY }}",
    }


def test_github_is_refused_a_zone_that_it_does_not_know(where: Where) -> None:
    with pytest.raises(BadInput, match="knows UTC alone, and the zone is Europe/Berlin"):
        made("github", where, entry(zone="Europe/Berlin"))


@pytest.mark.parametrize(("missed", "catchup"), [("all", True), ("once", False), ("skip", False)])
def test_the_dag_of_airflow_is_python_with_the_command_untouched_by_templates(
    where: Where, missed: str, catchup: bool
) -> None:
    one = entry(HOSTILE, zone="Europe/Berlin", missed=missed)
    ((name, text),) = made("airflow", where, one).items()
    assert name == "tallybook_a_b_c_d_e_f.py"
    given = {
        keyword.arg: keyword.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    }
    command = ast.literal_eval(given["bash_command"])
    assert command.startswith("{% raw %}") and command.endswith("{% endraw %} ")
    assert HOSTILE in shlex.split(command.removeprefix("{% raw %}"))
    assert ast.literal_eval(given["catchup"]) is catchup
    assert ast.literal_eval(given["timezone"]) == "Europe/Berlin"


@pytest.mark.parametrize("kind", ["crontab", "kubernetes", "airflow", "github"])
@pytest.mark.parametrize("cron", ["0 6 L * *", "0 6 * * FRI#2", "0 6 * * 5L"])
def test_what_only_our_cron_knows_is_refused(where: Where, kind: str, cron: str) -> None:
    with pytest.raises(BadInput, match="knows no L, W and #"):
        made(kind, where, entry(cron=cron))


@pytest.mark.parametrize("kind", ["crontab", "kubernetes", "airflow", "github"])
def test_names_of_months_and_days_are_taken(where: Where, kind: str) -> None:
    (text,) = made(kind, where, entry(cron="0 6 * JUL MON-WED")).values()
    assert "0 6 * JUL MON-WED" in text


def test_two_entries_of_one_name_are_refused(where: Where) -> None:
    with pytest.raises(BadInput, match="a b and a-b would both be tallybook-a-b: rename one"):
        made("systemd", where, entry("a b"), entry("a-b"))


def test_the_command_prints_or_writes_and_overwrites_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runbooks.toml").write_text(
        '[[schedule]]\nrunbook = "backlog"\ncron = "30 2 * * *"\n', "utf-8"
    )
    command = ["runbook", "schedule", "--print", "kubernetes"]
    assert main(command) == 0
    assert 'kind: "CronJob"' in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    ((name, text),) = (f.values() for f in json.loads(capsys.readouterr().out)["files"])
    for _ in range(2):
        assert main([*command, "--to", "defs"]) == 0
        assert capsys.readouterr().out == f"defs/{name}\n"
    assert (tmp_path / "defs" / name).read_text("utf-8") == text
    (tmp_path / "defs" / name).write_text("mine", "utf-8")
    assert main([*command, "--to", "defs"]) == 2
    assert "is there and says something else" in capsys.readouterr().err
    assert main(["runbook", "schedule", "--to", "defs"]) == 2
