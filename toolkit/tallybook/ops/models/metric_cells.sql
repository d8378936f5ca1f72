-- one row an interval and worker, every cell as the text that the file holds
create table metric_cells (
    interval_started_at varchar, interval_ended_at varchar, node_id varchar, worker varchar,
    pending varchar, leased varchar, done varchar, dead varchar, cancelled varchar,
    oldest_pending_s varchar, enqueued varchar, done_count varchar, retried_count varchar,
    dead_count varchar, rescued_count varchar, lease_timeout_count varchar, refused_count varchar,
    in_process varchar, wait_p50_ms varchar, wait_p95_ms varchar, wait_p99_ms varchar,
    wait_mean_ms varchar, run_p50_ms varchar, run_p95_ms varchar, run_p99_ms varchar,
    run_mean_ms varchar, cache_hits varchar, cache_misses varchar, book_bytes varchar
)
