"""What the machine does to jobs, and their plain model with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from core_steps import outcome
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from machine_book import FITTING, BookModel
from machine_order import Row
from machine_steps import Steps, wall_us
from machine_wishes import (
    ENDS,
    FAULTY,
    HOW,
    LEASES,
    NEW,
    PICKS,
    PLAIN,
    TOPICS,
    WANTED,
    WORKERS,
)

from tallybook import Book
from tallybook.book import Held, New, Settled, Want
from tallybook.clock import to_text
from tallybook.entry import Put
from tallybook.job import Job

has_jobs = precondition(lambda self: bool(self.model.jobs))
has_leases = precondition(lambda self: bool(self.taken))


class JobRules(Steps):
    """What can be done to jobs."""

    # enqueue

    @rule(new=st.lists(NEW, min_size=1, max_size=4), fault=FAULTY)
    def enqueue(self, new: list[Row], fault: Any) -> None:
        wished = [self.wish(one) for one in new]

        def act(book: Book) -> list[tuple[str, bool, tuple[str, ...]]]:
            receipts = book.enqueue_many([made for made, _ in wished])
            return [(told.job_id, told.is_new, told.superseded) for told in receipts]

        self.step(act, lambda model: model.enqueue([row for _, row in wished]), fault)

    def wish(self, new: Row) -> tuple[New, Row]:
        """One job to enqueue, for the book and for the model."""
        self.number += 1
        label = f"job {self.number:04}"
        row = {name: value for name, value in new.items() if name != "at_in"} | {"label": label}
        row["latest"] = bool(new["latest"] and new["order"])
        at = None
        if new["at_in"] is not None:
            at = self.clock.moment().now + timedelta(seconds=new["at_in"])
            row |= {"at": wall_us(to_text(at)), "delay": None}
        made = New(
            new["topic"],
            new["payload"],
            new["key"],
            new["priority"],
            row.get("delay"),
            at,
            enqueued_from=label,
            expires_after_s=new["expires"],
            ordering_key=new["order"],
            resource=new["res"],
            keep_latest=row["latest"],
        )
        return made, row

    # claim and settle

    @rule(worker=WORKERS, topics=WANTED, lease=LEASES, limit=st.integers(1, 4), fault=FAULTY)
    def claim(self, worker: str, topics: Any, lease: int, limit: int, fault: Any) -> None:
        want = Want(worker, topics, lease, limit)
        self.step(
            lambda book: [job.job_id for job in book.claim_many(want)],
            lambda model: model.claim(worker, topics, limit, lease),
            fault,
        )

    @rule(worker=WORKERS, topics=WANTED, hows=st.lists(HOW, min_size=1, max_size=3), fault=FAULTY)
    def work(self, worker: str, topics: Any, hows: list[Row], fault: Any) -> None:
        """Claim some jobs and settle those, with nothing in between."""
        self.claim(worker, topics, 30, len(hows), None)
        newest = [job for job in self.taken if self.model.has_lease(*self.tokens([job])[0])]
        if newest:
            self.turn(list(enumerate(hows[: len(newest)])), None, fault)

    @rule(topic=TOPICS, how=HOW, order=st.sampled_from(["o", "q"]), fault=FAULTY)
    def a_line(self, topic: str, how: Row, order: str, fault: Any) -> None:
        """Two jobs of an ordering key: the first is worked on, then the other; one comes back."""
        before = set(self.model.jobs)
        self.enqueue([PLAIN | {"topic": topic, "order": order} for _ in range(2)], None)
        self.work("w1", (topic,), [how], None)
        self.claim("w2", (topic,), 30, 2, fault)
        first = min(set(self.model.jobs) - before, default=None)
        if first:
            self.steer_these("requeue", [first], None)

    @rule(ends=ENDS, fault=FAULTY)
    @has_leases
    def settle(self, ends: list[tuple[int, Row]], fault: Any) -> None:
        self.turn(ends, None, fault)

    @rule(
        ends=ENDS,
        worker=WORKERS,
        topics=WANTED,
        limit=st.integers(1, 3),
        fault=FAULTY,
    )
    @has_leases
    def settle_and_claim(
        self, ends: list[tuple[int, Row]], worker: str, topics: Any, limit: int, fault: Any
    ) -> None:
        self.turn(ends, Want(worker, topics, 20, limit), fault)

    def turn(self, ends: list[tuple[int, Row]], want: Want | None, fault: Any) -> None:
        settled, rows = zip(*(self.ended(self.lease(pick), how) for pick, how in ends), strict=True)

        def act(book: Book) -> tuple[set[str], list[str]]:
            turn = book.turn(settled, want)
            return {self.labels[n] for n in turn.refused}, [job.job_id for job in turn.jobs]

        def plan(model: BookModel) -> tuple[set[str], list[str]]:
            if want is None:
                return model.settle(list(rows)), []
            chosen = None if model.lets_through(rows) else model.choose(want.topics, want.limit)
            refused = model.settle(list(rows))
            chosen = chosen or model.choose(want.topics, want.limit)
            return refused, model.take(want.worker, 20, *chosen)

        self.step(act, plan, fault)

    def lease(self, pick: int) -> Job:
        """A lease: those that hold, the newest first, then those that are over."""
        newest = self.taken[::-1]
        over = [job for job in newest if not self.model.has_lease(*self.tokens([job])[0])]
        found = [job for job in newest if job not in over] + over
        return found[pick % len(found)]

    def ended(self, job: Job, how: Row) -> tuple[Settled, Row]:
        """The end of a run, for the book and for the model."""
        row = dict(how)
        until = row.pop("until_in", None)
        if until is not None:
            at = to_text(self.clock.moment().now + timedelta(seconds=until))
            row["until"] = wall_us(at)
        kind, failed = how["kind"], how["kind"] in ("retry", "dead")
        told = outcome(
            self.books[self.who],
            job,
            kind,
            after_s=how.get("after"),
            until=at if until is not None else None,
            counted=how.get("counted", True),
            error_type="E" if failed else None,
            result="fine" if kind == "done" else None,
        )
        puts = [put_of(put) for put in how.get("puts", ())]
        label = self.labels[job.job_id]
        return Settled(told, puts), {"label": label, "token": job.lease_token, "how": row}

    @rule(pick=PICKS, more=PICKS, lease=LEASES, fault=FAULTY)
    @has_leases
    def extend(self, pick: int, more: int, lease: int, fault: Any) -> None:
        jobs = [self.lease(pick), self.lease(more)]
        self.step(
            lambda book: [held.job_id for held in book.extend(helds(jobs), "w1", lease)],
            lambda model: model.extend(self.tokens(jobs), lease),
            fault,
        )

    @rule(pick=PICKS, more=PICKS, fault=FAULTY)
    @has_leases
    def release(self, pick: int, more: int, fault: Any) -> None:
        self.give_back([self.lease(pick), self.lease(more)], fault)

    def give_back(self, jobs: list[Job], fault: Any) -> None:
        self.step(
            silent(lambda book: book.release(helds(jobs), "stopping")),
            lambda model: model.release(self.tokens(jobs)),
            fault,
        )

    @rule(pick=PICKS, fault=FAULTY)
    @has_leases
    def release_by_hand(self, pick: int, fault: Any) -> None:
        self.take_by_hand(self.lease(pick), fault)

    def take_by_hand(self, job: Job, fault: Any) -> None:
        self.step(
            lambda book: book.release_by_hand(job, "by hand"),
            lambda model: model.release_by_hand(self.labels[job.job_id], job.lease_token),
            fault,
        )

    def tokens(self, jobs: list[Job]) -> list[tuple[str, int]]:
        return [(self.labels[job.job_id], job.lease_token) for job in jobs]

    @rule(fault=FAULTY)
    def rescue(self, fault: Any) -> None:
        self.step(silent(Book.rescue), BookModel.rescue, fault)

    @rule(worker=WORKERS, fault=FAULTY)
    def worker_dies(self, worker: str, fault: Any) -> None:
        self.step(
            silent(lambda book: book.rescue_of(worker)),
            lambda model: model.rescue_of(worker),
            fault,
        )

    # by hand, and by time alone

    @rule(
        verb=st.sampled_from(["requeue", "discard", "cancel"]),
        picks=st.lists(PICKS, min_size=1, max_size=3),
        fault=FAULTY,
    )
    @has_jobs
    def steer(self, verb: str, picks: list[int], fault: Any) -> None:
        fit = FITTING[verb]
        labels = sorted(self.model.jobs, key=lambda n: self.model.jobs[n]["status"] not in fit)
        chosen = [labels[pick % len(labels)] for pick in picks]
        self.steer_these(verb, chosen, fault)

    def steer_these(self, verb: str, chosen: list[str], fault: Any) -> None:
        ids = [job_id for job_id, label in self.labels.items() if label in chosen]
        self.step(
            silent(lambda book: book.steer(verb, ids, "by hand")),
            lambda model: model.steer(verb, chosen),
            fault,
        )

    @rule(pick=PICKS, then=st.sampled_from(["release", "by hand", "death"]), fault=FAULTY)
    @has_leases
    def cancel_one_that_runs(self, pick: int, then: str, fault: Any) -> None:
        job = self.lease(pick)
        label = self.labels[job.job_id]
        self.step(
            silent(lambda book: book.steer("cancel", [job.job_id], "by hand")),
            lambda model: model.steer("cancel", [label]),
        )
        if then == "release":
            self.give_back([job], fault)
        elif then == "by hand":
            self.take_by_hand(job, fault)
        else:
            self.worker_dies(job.locked_by or "", fault)

    @rule(topic=TOPICS, pause=st.sampled_from([False, False, True]), fault=FAULTY)
    def pause_or_resume(self, topic: str, pause: bool, fault: Any) -> None:
        self.step(
            lambda book: (book.pause if pause else book.resume)(topic, "by hand"),
            lambda model: model.switch(topic, pause),
            fault,
        )

    @rule(verb=st.sampled_from(["expire", "prune"]), fault=FAULTY)
    def expire_or_prune(self, verb: str, fault: Any) -> None:
        self.step(silent(getattr(Book, verb)), getattr(BookModel, verb), fault)


def put_of(put: Row) -> Put:
    return Put(
        put["key"],
        put["value"],
        base_version=put["base"],
        ttl_s=put["ttl"],
        depends_on=put["depends"],
    )


def helds(jobs: list[Job]) -> list[Held]:
    return [Held(job.job_id, job.lease_token) for job in jobs]


def silent(verb: Callable[[Book], object]) -> Callable[[Book], None]:
    """A verb whose answer is not compared: the log says what it did."""

    def act(book: Book) -> None:
        verb(book)

    return act
