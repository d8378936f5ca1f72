"""The pages themselves: links, places, order, and commands that are shown to be typed."""

from __future__ import annotations

import re
import socket
import tomllib
from pathlib import Path

import pytest
from house_pages import PAGES, ROOT, anchor, blocks, code, headings, links, page, section

from tallybook.cli import main


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    for link in links(path.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, fragment = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), f"{path.name}: {link}"
        if fragment:
            assert fragment in map(anchor, headings(file.read_text("utf-8"))), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_names_a_path_or_host_of_a_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    host = re.escape(socket.gethostname())
    assert not re.search(r"(?<![\w.])/(home|root|Users|work|mnt|var|tmp)/\w", text)
    assert str(Path.home()) + "/" not in text
    assert not re.search(rf"\b{host}(-[0-9a-f]{{8}}\b|/reports)", text)


def test_the_index_leads_to_every_page() -> None:
    told = {
        (ROOT / "docs" / link.partition("#")[0]).resolve() for link in links(page("docs/index.md"))
    }
    known = {path.resolve() for path in (ROOT / "docs").rglob("*.md")} - {ROOT / "docs/index.md"}
    assert known <= told


def test_decisions_are_numbered_without_a_gap_and_titled_with_their_number() -> None:
    found = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in found] == list(range(1, len(found) + 1))
    for number, path in enumerate(found, 1):
        assert path.read_text("utf-8").startswith(f"# {number}. ")


def test_every_make_target_is_told() -> None:
    (line,) = re.findall(r"^\.PHONY: (.+)$", page("Makefile"), re.MULTILINE)
    told = {
        word
        for span in code(page("CONTRIBUTING.md"))
        for word in re.findall(r"make ([\w-]+)", span)
    }
    assert told == set(line.split())


def test_every_command_shown_to_be_typed_is_there() -> None:
    targets = re.findall(r"^([\w-]+):", page("Makefile"), re.MULTILINE)
    known = {"make": targets, "tallybook": list(main.COMMANDS)}
    for path in PAGES:
        text = path.read_text("utf-8")
        shown = [body for kind, body in blocks(text) if kind == "console"]
        typed = [line[2:] for body in shown for line in body.splitlines() if line.startswith("$ ")]
        for line in [*typed, *code(text)]:
            words = re.match(r"(make|tallybook) ([a-z][\w-]*)", line)
            assert not words or words[2] in known[words[1]], f"{path.name}: {line}"
        first = {line.split()[0] for line in typed}
        assert first <= {*known, "cd", "export", "git", "mkdir"}, path.name


def test_the_layers_are_those_that_import_linter_holds() -> None:
    contract = tomllib.loads(page("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    known = {name for layer in contract["layers"] for name in layer.split(" | ")} - {"__main__"}
    lines = re.findall(
        r"^ {4}(\S.*?) {2,}", section(page("CONTRIBUTING.md"), "Layers"), re.MULTILINE
    )
    assert {word for line in lines for word in re.findall(r"\w+", line)} == known
