-- one row a line of the files in `sources`, each cell typed; a line that does not fit fails the whole read
select
    sources.base + whole(cells.seq) as position,
    sources.segment,
    sources.writer,
    sources.boot_id,
    sources.node_id,
    whole(cells.seq) as seq,
    cells.event,
    moment(cells.occurred_at) as occurred_at,
    whole(cells.boot_us) as boot_us,
    cells.job_id,
    cells.topic,
    cells.payload,
    cells.payload_digest,
    whole(cells.priority) as priority,
    cells.idempotency_key,
    cells.correlation_id,
    cells.enqueued_from,
    whole(cells.max_attempts) as max_attempts,
    number(cells.delay_ms) as delay_ms,
    moment(cells.next_attempt_at) as next_attempt_at,
    cells.resource,
    cells.ordering_key,
    moment(cells.expires_at) as expires_at,
    number(cells.timeout_s) as timeout_s,
    cells.worker,
    whole(cells.lease_token) as lease_token,
    number(cells.lease_ms) as lease_ms,
    moment(cells.locked_until) as locked_until,
    moment(cells.started_at) as started_at,
    number(cells.duration_ms) as duration_ms,
    whole(cells.attempt_count) as attempt_count,
    whole(cells.rescue_count) as rescue_count,
    cells.result,
    whole(cells.http_status) as http_status,
    cells.endpoint,
    flag(cells.replayed) as replayed,
    number(cells.retry_after_ms) as retry_after_ms,
    cells.error_type,
    cells.error,
    cells.traceback,
    cells.settle,
    cells.reason,
    cells.key,
    cells.value,
    cells.version,
    cells.base_version,
    cells.etag,
    cells.last_modified,
    cells.origin,
    flag(cells.pending) as pending,
    number(cells.ttl_s) as ttl_s,
    cells.depends_on,
    cells.value_schema,
    moment(cells.synced_at) as synced_at,
    cells.host,
    whole(cells.pid) as pid,
    cells.versions,
    cells.previous_hash,
    cells.previous_writer,
    whole(cells.previous_seq) as previous_seq,
    whole(cells.first_lost_seq) as first_lost_seq,
    whole(cells.last_lost_seq) as last_lost_seq,
    whole(cells.bytes) as bytes,
    whole(cells.threads) as threads,
    cells.topics,
    whole(cells.keys) as keys,
    whole(cells.events_read) as events_read,
    cells.parity,
    cells.writer as named_writer
from read_json(
    $files, columns = $columns, format = 'newline_delimited', auto_detect = false,
    filename = true, maximum_object_size = $line_limit
) as cells
inner join sources on sources.file = cells.filename
where case
    when cells.event is not null and cells.seq is not null and cells.occurred_at is not null
        and whole(cells.v) = 1 and whole_fits(cells.v)
        and whole(cells.seq) >= 0
        and whole_fits(cells.seq)
        and moment_fits(cells.occurred_at)
        and whole_fits(cells.boot_us)
        and whole_fits(cells.priority)
        and whole_fits(cells.max_attempts)
        and number_fits(cells.delay_ms)
        and moment_fits(cells.next_attempt_at)
        and moment_fits(cells.expires_at)
        and number_fits(cells.timeout_s)
        and whole_fits(cells.lease_token)
        and number_fits(cells.lease_ms)
        and moment_fits(cells.locked_until)
        and moment_fits(cells.started_at)
        and number_fits(cells.duration_ms)
        and whole_fits(cells.attempt_count)
        and whole_fits(cells.rescue_count)
        and whole_fits(cells.http_status)
        and flag_fits(cells.replayed)
        and number_fits(cells.retry_after_ms)
        and flag_fits(cells.pending)
        and number_fits(cells.ttl_s)
        and moment_fits(cells.synced_at)
        and whole_fits(cells.pid)
        and whole_fits(cells.previous_seq)
        and whole_fits(cells.first_lost_seq)
        and whole_fits(cells.last_lost_seq)
        and whole_fits(cells.bytes)
        and whole_fits(cells.threads)
        and whole_fits(cells.keys)
        and whole_fits(cells.events_read)
        then true
    else error('a cell is of another kind')
end
