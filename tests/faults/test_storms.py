"""Short storms: real processes, killed, crowded, out of room, out of time. Long ones: torture."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import storms

from tallybook import Book

needs_mount = pytest.mark.skipif(
    not storms.can_mount() and "CI" not in os.environ, reason="needs the right to mount a tmpfs"
)
needs_faketime = pytest.mark.skipif(
    not storms.FAKETIME.exists() and "CI" not in os.environ,
    reason="libfaketime (Debian package libfaketime) is not installed",
)


def test_no_job_is_lost_and_no_leases_overlap_while_workers_are_killed(tmp_path: Path) -> None:
    """F6, F9: a dead worker's jobs run again without user code, and the log says so."""
    print(storms.kills(tmp_path, seed=1, count=6))


def test_twenty_processes_that_claim_at_once_share_the_jobs(tmp_path: Path) -> None:
    """F18: no claim fails because another writer commits between its read and its write."""
    print(storms.crowd(tmp_path, seed=1, processes=20, jobs=200))


@needs_mount
def test_a_disk_that_runs_full_again_and_again_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    """F23: and it goes on as soon as there is room."""
    print(storms.full_disk(tmp_path, seed=1, jobs=400, fills=12))


@needs_mount
def test_on_a_small_disk_the_wal_does_not_take_the_room_of_its_own_checkpoint(
    tmp_path: Path,
) -> None:
    with storms.small_disk(tmp_path) as disk, Book.open(disk / "book") as book:
        for number in range(500):
            book.enqueue("a", number)
        wal = (disk / "book" / "state.db-wal").stat().st_size
        assert wal < disk_size(disk) / 2, "what is checkpointed is twice there meanwhile"


def disk_size(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_blocks * found.f_frsize


@needs_faketime
def test_no_live_job_is_taken_whatever_the_wall_clocks_of_the_workers_say(tmp_path: Path) -> None:
    """F15: leases are judged by boot time."""
    print(storms.clocks(tmp_path, seed=1, jobs=16, jumps=8))
