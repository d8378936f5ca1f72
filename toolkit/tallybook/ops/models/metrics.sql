-- one row an interval and worker of the rolling metrics; a cell that is no number is null
select
    try_strptime(interval_started_at, ['%Y-%m-%dT%H:%M:%S.%fZ', '%Y-%m-%dT%H:%M:%SZ']) at time zone 'UTC'
        as interval_started_at,
    try_strptime(interval_ended_at, ['%Y-%m-%dT%H:%M:%S.%fZ', '%Y-%m-%dT%H:%M:%SZ']) at time zone 'UTC'
        as interval_ended_at,
    node_id,
    worker,
    try_cast(pending as bigint) as pending,
    try_cast(leased as bigint) as leased,
    try_cast(done as bigint) as done,
    try_cast(dead as bigint) as dead,
    try_cast(cancelled as bigint) as cancelled,
    try_cast(oldest_pending_s as double) as oldest_pending_s,
    try_cast(enqueued as bigint) as enqueued,
    try_cast(done_count as bigint) as done_count,
    try_cast(retried_count as bigint) as retried_count,
    try_cast(dead_count as bigint) as dead_count,
    try_cast(rescued_count as bigint) as rescued_count,
    try_cast(lease_timeout_count as bigint) as lease_timeout_count,
    try_cast(refused_count as bigint) as refused_count,
    try_cast(in_process as bigint) as in_process,
    try_cast(wait_p50_ms as double) as wait_p50_ms,
    try_cast(wait_p95_ms as double) as wait_p95_ms,
    try_cast(wait_p99_ms as double) as wait_p99_ms,
    try_cast(wait_mean_ms as double) as wait_mean_ms,
    try_cast(run_p50_ms as double) as run_p50_ms,
    try_cast(run_p95_ms as double) as run_p95_ms,
    try_cast(run_p99_ms as double) as run_p99_ms,
    try_cast(run_mean_ms as double) as run_mean_ms,
    try_cast(cache_hits as bigint) as cache_hits,
    try_cast(cache_misses as bigint) as cache_misses,
    try_cast(book_bytes as bigint) as book_bytes
from metric_cells
