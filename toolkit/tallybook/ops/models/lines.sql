-- one row a line of the segments, each cell typed; `fits` is false where a cell is of another kind
select
    replace(parse_filename(filename), '.ndjson.zst', '.ndjson') as segment,
    whole(v) as v,
    whole(seq) as seq,
    event,
    moment(occurred_at) as occurred_at,
    whole(boot_us) as boot_us,
    job_id,
    topic,
    payload,
    payload_digest,
    whole(priority) as priority,
    idempotency_key,
    correlation_id,
    enqueued_from,
    whole(max_attempts) as max_attempts,
    number(delay_ms) as delay_ms,
    moment(next_attempt_at) as next_attempt_at,
    resource,
    ordering_key,
    moment(expires_at) as expires_at,
    number(timeout_s) as timeout_s,
    worker,
    whole(lease_token) as lease_token,
    number(lease_ms) as lease_ms,
    moment(locked_until) as locked_until,
    moment(started_at) as started_at,
    number(duration_ms) as duration_ms,
    whole(attempt_count) as attempt_count,
    whole(rescue_count) as rescue_count,
    result,
    whole(http_status) as http_status,
    endpoint,
    flag(replayed) as replayed,
    number(retry_after_ms) as retry_after_ms,
    error_type,
    error,
    traceback,
    settle,
    reason,
    key,
    value,
    version,
    base_version,
    etag,
    last_modified,
    origin,
    flag(pending) as pending,
    number(ttl_s) as ttl_s,
    depends_on,
    value_schema,
    moment(synced_at) as synced_at,
    writer,
    node_id,
    host,
    whole(pid) as pid,
    boot_id,
    versions,
    previous_hash,
    previous_writer,
    whole(previous_seq) as previous_seq,
    whole(first_lost_seq) as first_lost_seq,
    whole(last_lost_seq) as last_lost_seq,
    whole(bytes) as bytes,
    whole(threads) as threads,
    topics,
    whole(keys) as keys,
    whole(events_read) as events_read,
    parity,
    coalesce(whole(v) = 1 and whole(seq) >= 0 and event is not null and moment(occurred_at) is not null, false)
    and (boot_us is null or whole(boot_us) is not null)
    and (priority is null or whole(priority) is not null)
    and (max_attempts is null or whole(max_attempts) is not null)
    and (delay_ms is null or number(delay_ms) is not null)
    and (next_attempt_at is null or moment(next_attempt_at) is not null)
    and (expires_at is null or moment(expires_at) is not null)
    and (timeout_s is null or number(timeout_s) is not null)
    and (lease_token is null or whole(lease_token) is not null)
    and (lease_ms is null or number(lease_ms) is not null)
    and (locked_until is null or moment(locked_until) is not null)
    and (started_at is null or moment(started_at) is not null)
    and (duration_ms is null or number(duration_ms) is not null)
    and (attempt_count is null or whole(attempt_count) is not null)
    and (rescue_count is null or whole(rescue_count) is not null)
    and (http_status is null or whole(http_status) is not null)
    and (replayed is null or flag(replayed) is not null)
    and (retry_after_ms is null or number(retry_after_ms) is not null)
    and (pending is null or flag(pending) is not null)
    and (ttl_s is null or number(ttl_s) is not null)
    and (synced_at is null or moment(synced_at) is not null)
    and (pid is null or whole(pid) is not null)
    and (previous_seq is null or whole(previous_seq) is not null)
    and (first_lost_seq is null or whole(first_lost_seq) is not null)
    and (last_lost_seq is null or whole(last_lost_seq) is not null)
    and (bytes is null or whole(bytes) is not null)
    and (threads is null or whole(threads) is not null)
    and (keys is null or whole(keys) is not null)
    and (events_read is null or whole(events_read) is not null) as fits
from read_json(
    $files, columns = $columns, format = 'newline_delimited', auto_detect = false,
    filename = true, maximum_object_size = $line_limit
)
