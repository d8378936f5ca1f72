"""Long storms (``make torture``), each with a line of figures.

``TORTURE_SEED`` chooses the run (1); ``TORTURE_KILLS`` (500), ``TORTURE_FILLS`` (200),
``TORTURE_JUMPS`` (200), ``TORTURE_LIVES`` (3000) and ``TORTURE_WORLDS`` (300) how long it is.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import storms
import test_machine
import test_plans_simulated
from hypothesis import seed

SEED = int(os.environ.get("TORTURE_SEED", "1"))
KILLS = int(os.environ.get("TORTURE_KILLS", "500"))
FILLS = int(os.environ.get("TORTURE_FILLS", "200"))
JUMPS = int(os.environ.get("TORTURE_JUMPS", "200"))
WORLDS = int(os.environ.get("TORTURE_WORLDS", "300"))
LIVES = int(os.environ.get("TORTURE_LIVES", "3000"))


def test_kills_at_random_moments(tmp_path: Path) -> None:
    print("\n" + storms.kills(tmp_path, SEED, KILLS))


def test_a_crowd_that_claims_at_once(tmp_path: Path) -> None:
    print("\n" + storms.crowd(tmp_path, SEED, 20, 5000))


def test_a_disk_that_is_filled_at_random_moments(tmp_path: Path) -> None:
    print("\n" + storms.full_disk(tmp_path, SEED, 4000, FILLS))


def test_wall_clocks_moved_by_hours(tmp_path: Path) -> None:
    print("\n" + storms.clocks(tmp_path, SEED, JUMPS * 2, JUMPS))


def test_lives_of_a_book_beside_its_plain_model() -> None:
    began = time.monotonic()
    seed(SEED)(test_machine.BookMachine)
    test_machine.live(LIVES, 50)
    print(f"\nmachine: seed {SEED}, {LIVES} lives of 50 steps, {time.monotonic() - began:.1f} s")


def test_differences_of_worlds_explained_and_repaired(tmp_path: Path) -> None:
    began = time.monotonic()
    for world in range(WORLDS):
        test_plans_simulated.live(tmp_path / str(world), SEED * 1_000_000 + world, repaired=True)
    print(f"\nplans: seed {SEED}, {WORLDS} worlds, {time.monotonic() - began:.1f} s")
