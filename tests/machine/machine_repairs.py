"""What mends a book: the steps of a repair plan, and what an end of the machine left of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from machine_order import Row
from machine_rules import JobRules, silent
from machine_wishes import FAULTY, KEYS, PICKS, TOPICS

from tallybook.book import New
from tallybook.book.repairing import Step
from tallybook.entry import Invalidate, Put
from tallybook.ids import payload_digest
from tallybook.log.reader import history, segments

ON_ENTRY = st.sampled_from(["put", "put", "forget", "stale"])
ON_JOB = st.sampled_from(["requeue", "requeue", "cancel", "stale"])
RULES = {"requeue": ("dead", "cancelled"), "cancel": ("pending",), "stale": ("pending", "dead")}


class Repairs(JobRules):
    """Repair plans, and what a log has lost."""

    @rule(on=ON_ENTRY, key=KEYS, on_job=ON_JOB, pick=PICKS, topic=TOPICS, fault=FAULTY)
    def repair(self, on: str, key: str, on_job: str, pick: int, topic: str, fault: Any) -> None:
        """A plan of three steps: an entry, a job that is there, and a new job."""
        self.number += 1
        label = f"job {self.number:04}"
        rows: list[Row] = [self.on_entry(on, key), self.on_job(on_job, pick)]
        rows.append({"new": {"topic": topic, "payload": 1, "label": label}})
        new = New(topic, 1, f"plan {label}", enqueued_from=label)
        rows[-1]["new"]["key"] = f"plan {label}"
        steps = [row.pop("step") for row in rows[:2]] + [Step(3, new=new)]
        self.step(
            silent(lambda book: book.repair(label, steps, "applied")),
            lambda model: model.repair(label, [row for row in rows if row]),
            fault,
        )

    def on_entry(self, on: str, key: str) -> Row:
        entry = self.model.entries.get(key)
        version = (entry["version"] if entry else 0) + (on == "stale")
        write = Invalidate(key) if on == "forget" else Put(key, 7)
        digest = payload_digest(entry["value"]) if entry else ""
        row: Row = {"step": Step(1, key, version, digest, (write,))}
        return row if on == "stale" else row | {"key": key, "forget": on == "forget"}

    def on_job(self, on: str, pick: int) -> Row:
        """A step on a job in a fitting state; where there is none, or its lease is another by now,
        it is passed over."""
        fit = sorted(n for n, job in self.model.jobs.items() if job["status"] in RULES[on])
        if not fit:
            return {"step": Step(2, job_id="none", job_status="dead", rule="requeue")}
        label = fit[pick % len(fit)]
        job, ids = self.model.jobs[label], {n: job_id for job_id, n in self.labels.items()}
        asked = Step(
            2,
            job_id=ids[label],
            job_status=job["status"],
            lease_token=job["token"] + (on == "stale"),
            rule="requeue" if on == "stale" else on,
        )
        return {"step": asked} | ({} if on == "stale" else {"job": label, "rule": on})

    @rule()
    @precondition(lambda self: self.is_sound)
    def a_line_is_torn(self) -> None:
        """A process ended in the middle of an append: nothing that was acknowledged is in it."""
        with self.open_segment().open("ab") as file:
            file.write(b'{"v":1,"seq":')

    @rule()
    @precondition(lambda self: self.is_sound and self.lasting)
    def the_last_line_is_lost(self) -> None:
        """The machine ended before the last line was on disk: that event never was."""
        for book in self.books:
            self.die(book)
        path = self.open_segment()
        *kept, last = path.read_bytes().splitlines(keepends=True)
        is_of_writer = path.name.startswith(self.position.writer[:8])
        if is_of_writer and f'"seq":{self.position.seq},'.encode() in last and len(kept) > 1:
            path.write_bytes(b"".join(kept))
            agree = self.model.clocks_agree
            self.model, self.lasting = self.lasting[-1], self.lasting[:-1]
            self.model.clocks_agree = agree
            self.position = [position for _, position in history(self.layout)][-1]
            self.has_lost = True
        self.books = [self.opened(), self.opened()]

    def open_segment(self) -> Path:
        return segments(self.layout)[-1].path
