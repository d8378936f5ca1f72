from __future__ import annotations

from collections import Counter

import pytest

from tallybook.demo import faults
from tallybook.demo.faults import plan

RECORDS = [f"R{number:04d}" for number in range(500)]


@pytest.mark.parametrize("seed", range(50))
def test_no_kind_is_empty_at_any_seed(seed):
    for records in (RECORDS, RECORDS[:20]):
        made = plan(seed, records, 2.0)
        kinds = Counter(fault.kind for fault in made.first.values())
        assert set(kinds) == {
            faults.ANSWER_LOST,
            faults.UNAVAILABLE,
            faults.TOO_MANY,
            faults.SLOW,
            faults.TOO_SLOW,
            faults.REFUSED,
        }
        assert kinds[faults.SLOW] + kinds[faults.TOO_SLOW] <= faults.AT_MOST_SLOW


def test_a_fault_depends_on_seed_record_and_attempt_alone():
    one, other = plan(7, RECORDS, 2.0), plan(7, reversed(RECORDS), 2.0)
    wanted = [(record, attempt) for record in RECORDS for attempt in range(1, 6)]
    assert [one.at(*pair) for pair in wanted] == [other.at(*pair) for pair in reversed(wanted)][
        ::-1
    ]
    assert plan(8, RECORDS, 2.0) != one


def test_from_the_fourth_attempt_on_only_refused_records_fail():
    made = plan(1, RECORDS, 2.0)
    left = {record for record in RECORDS if made.at(record, 4)}
    assert left == {name for name, fault in made.first.items() if fault.kind == faults.REFUSED}


def test_a_refused_record_is_refused_at_each_attempt():
    made = plan(1, RECORDS, 2.0)
    refused = next(name for name, fault in made.first.items() if fault.kind == faults.REFUSED)
    assert {made.at(refused, attempt) for attempt in range(1, 9)} == {faults.Fault(faults.REFUSED)}


def test_a_victim_meets_no_fault():
    for seed in range(20):
        made = plan(seed, RECORDS, 2.0)
        assert not any(made.at(victim, attempt) for victim in made.victims for attempt in (1, 2, 3))
        assert len(set(made.victims)) == 2


def test_later_attempts_meet_faults_too():
    made = plan(1, RECORDS, 2.0)
    kinds = Counter(fault.kind for record in RECORDS if (fault := made.at(record, 2)))
    assert kinds[faults.ANSWER_LOST] > 5
    assert kinds[faults.UNAVAILABLE] > 5
