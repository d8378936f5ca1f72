"""A secret is read by the kernel alone and stands in no file that a run leaves."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from urllib.parse import quote

import keyring
import pytest
from keyring.backend import KeyringBackend
from runbook_notebooks import answering, notebook

from tallybook import runbook
from tallybook.cli.main import main
from tallybook.errors import BadInput
from tallybook.runbook import secrets
from tallybook.runbook.kernels import Warm
from tallybook.runbook.secrets import Secret, secret

SECRET = 'hunter2 <&"\\ü/ swordfish'  # noqa: S105
SPILLS = """\
import base64, json, os, sys, urllib.parse
from IPython.display import HTML, display
from tallybook.runbook import secret
key = secret(api_token)
assert len(key) == 24 and key.startswith("hunter2")
print(key, repr(key), f"-{key}-", [key])
print(key, file=sys.stderr)
print(json.dumps(key), base64.b64encode(key.encode()), urllib.parse.quote(key))
display(HTML(f"<p>{key}</p>"), {"in": {"it": str(key)}})
os.write(2, key.encode())
key"""


def left(root: Path) -> str:
    """Every byte of every file under ``root``, as text."""
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) >= 6
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def forms() -> list[str]:
    coded = base64.b64encode(SECRET.encode()).decode().rstrip("=")
    return [SECRET, json.dumps(SECRET)[1:-1], escape(SECRET), quote(SECRET), coded, "swordfish"]


@pytest.mark.parametrize("last", [answering("info"), "raise ValueError(f'no entry for {key}')"])
def test_a_secret_is_in_no_file_of_a_run_and_not_in_its_history(
    place: Path, warm: Warm, last: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "key").write_text(SECRET + "\n", "utf-8")
    path = notebook(place / "small.ipynb", SPILLS, last)
    result = runbook.run(path, {"api_token": "file:key"}, warm=warm)
    assert result.status == ("clean" if "answer" in last else "failed")
    assert main(["runbook", "history", "--json"]) == 0
    told = left(place / "tallybook-out") + "".join(capfd.readouterr()) + str(result)
    assert not [form for form in forms() if form in told]
    assert "file:key" in told and "***" in told
    assert not (result.folder / "kernel.log").exists()


def test_the_kernel_of_a_run_reads_the_environment_that_the_run_had(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_KEY", SECRET)
    source = "from tallybook.runbook import secret\nprint(len(secret(api_token)))"
    path = notebook(place / "small.ipynb", source, answering("info"))
    result = runbook.run(path, {"api_token": "env:CLOUD_KEY"})
    assert "<pre>24\n</pre>" in result.report.read_text("utf-8")


def test_a_reference_that_leads_nowhere_is_refused_before_anything_runs(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook(place / "small.ipynb", answering("info"))
    monkeypatch.setattr(secrets, "find_spec", lambda _name: None)
    for given, said in (
        ("env:NO_SUCH", "env:NO_SUCH: the environment has no NO_SUCH"),
        ("file:nowhere", "file:nowhere: no such file to read"),
        ("keyring:cloud/me", "keyring:cloud/me: that needs keyring; run: pip install keyring"),
        ("hunter2!", "a secret is given by reference"),
    ):
        assert main(["runbook", "run", "small.ipynb", "-p", f"api_token={given}"]) == 2
        error = capsys.readouterr().err
        assert f"parameter api_token: {said}" in error and "hunter2!" not in error
    assert not (place / "tallybook-out").exists()


class Ring(KeyringBackend):
    """A keyring with one entry."""

    priority = 1  # type: ignore[assignment] # keyring types it as a property

    def get_password(self, service: str, username: str) -> str | None:
        return {("cloud", "me/you"): SECRET}.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        """Nothing is set by these tests."""
        raise NotImplementedError


def test_a_keyring_is_asked_by_service_and_user() -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    try:
        assert secret("keyring:cloud/me/you") == SECRET
        with pytest.raises(BadInput, match="the keyring has no such entry"):
            secret("keyring:cloud/you")
    finally:
        keyring.set_keyring(before)


def test_what_is_too_short_to_hide_or_not_there_is_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "abc-xyz")
    with pytest.raises(BadInput, match="env:SHORT is shorter than 8 characters") as caught:
        secret("env:SHORT")
    assert "abc-xyz" not in str(caught.value)
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff" * 9)
    for reference, said in (
        (f"file:{tmp_path / 'empty'}", "is empty"),
        (f"file:{tmp_path / 'binary'}", "no text in UTF-8"),
        (f"file:{tmp_path}", "Is a directory"),
        ("env:NO_SUCH", "the environment has no NO_SUCH"),
        ("vault:x", "given by reference"),
    ):
        with pytest.raises(BadInput, match=said):
            secret(reference)
    assert secret("") == ""


def test_a_secret_is_its_text_and_does_not_show_itself() -> None:
    one = Secret("swordfish")
    assert one == "swordfish" and f"{one}!" == "swordfish!"
    assert repr(one) == "'***'" and str([one]) == "['***']"


def test_every_line_of_a_secret_of_several_is_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(secrets, "_hidden", [])
    (tmp_path / "pem").write_text("-----BEGIN\nabcdefgh12345\n-----END\n", "utf-8")
    secret(f"file:{tmp_path / 'pem'}")
    message = {"text": "1 abcdefgh12345 2", "in": ["abcdefgh12345", {"x": 3}]}
    assert secrets.hidden(message) == {"text": "1 *** 2", "in": ["***", {"x": 3}]}
