"""The package: a small base install, a quick start, and the notebooks carried inside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("duckdb", "polars", "altair", "papermill", "jupyterlab", "IPython", "pyarrow", "numpy")
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a user gets it."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


def python(code: str, cwd: Path | None = None) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_import_loads_nothing_heavy() -> None:
    loaded = python("import sys, tallybook; print(*sorted(sys.modules))").split()
    assert not [name for name in loaded if name.partition(".")[0] in HEAVY]


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom tallybook.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    print('MODULES', *sys.modules)"
    )
    loaded = python(code).rpartition("MODULES")[2].split()
    assert "tallybook.cli.main" in loaded
    assert not [name for name in loaded if name.partition(".")[0] in HEAVY]


def test_the_wheel_carries_notebooks_runbooks_and_the_sample_book(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("runbooks", "notebooks"):
        stored = {path.name for path in (ROOT / folder).glob("*.ipynb")}
        assert stored
        assert stored <= {Path(name).name for name in names if f"carried/{folder}/" in name}
    assert any("carried/data-samples/book/log/" in name for name in names)
    assert any(name.endswith(".sql") for name in names)


def test_a_base_install_stays_under_15_megabytes_and_works(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    site = next((home / "lib").glob("python3*")) / "site-packages"
    before = size(site)
    zipfile.ZipFile(wheel).extractall(site)
    for name in required(wheel):
        copy(name, site)
    assert size(site) - before < 15 * MEGABYTE
    code = "import tallybook; b = tallybook.Book.open('b'); print(b.enqueue('a', 1).is_new)"
    interpreter = str(home / "bin" / "python")
    done = subprocess.run(
        [interpreter, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    told = subprocess.run(
        [interpreter, "-m", "tallybook", "reconcile", "x.csv", "--key", "id"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 2
    assert "pip install 'tallybook[ops]'" in told.stderr


def required(wheel: Path) -> list[str]:
    """What an install with no extra needs, by the wheel's own metadata."""
    archive = zipfile.ZipFile(wheel)
    (name,) = [item for item in archive.namelist() if item.endswith(".dist-info/METADATA")]
    text = archive.read(name).decode()
    asked = [line.split()[1] for line in text.splitlines() if line.startswith("Requires-Dist")]
    lines = [line for line in text.splitlines() if line.startswith("Requires-Dist")]
    needed = [name for name, line in zip(asked, lines, strict=True) if "extra ==" not in line]
    return [re.split(r"[<>=;]", name)[0] for name in needed if has(re.split(r"[<>=;]", name)[0])]


def has(name: str) -> bool:
    """Whether a package is installed here; one for other Pythons is not."""
    try:
        return bool(distribution(name).files)
    except PackageNotFoundError:
        return False


def copy(name: str, site: Path) -> None:
    """Put an installed package into another environment."""
    for file in distribution(name).files or []:
        if ".." not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), site / file)


def size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
