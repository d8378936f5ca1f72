-- name: differences
-- one row a value of a dimension and a way in which the slice differs by it from the rest of the span, most first
--
-- Counted are leases that ended: n of them, failed among them, the time that they took. For a value v:
--
--     occurs       excess = n / N in the slice - n / N in the rest
--     fails        excess = (failed - n * failed share of v in the rest) / N in the slice
--     takes longer excess = (time - n * mean time of v in the rest) / time of all in the slice
--
-- Each is a share of the slice: of its leases, of its leases, of its time: what is there beyond, or short of, what the
-- rest leads to expect. That is the measure, and the order is by its size. Where the rest has no lease of v, the
-- expectation is that of the rest as a whole. deviations is the difference over its standard error (pooled share for
-- the first two, Welch's for the third); below $deviations, or with an excess below $least, it is left out as chance.
-- A value that every lease has, here and in the rest, fails and takes as long as all do: it tells nothing.
with counted as (
    select
        cells.id,
        sum(n) filter (where grain >= $first and grain < $last) as n,
        sum(failed) filter (where grain >= $first and grain < $last) as failed,
        sum(busy_us) filter (where grain >= $first and grain < $last) as busy,
        sum(busy_sq) filter (where grain >= $first and grain < $last) as busy_sq,
        sum(n) filter (where grain < $first or grain >= $last) as rest_n,
        sum(failed) filter (where grain < $first or grain >= $last) as rest_failed,
        sum(busy_us) filter (where grain < $first or grain >= $last) as rest_busy,
        sum(busy_sq) filter (where grain < $first or grain >= $last) as rest_busy_sq
    from incident_cells as cells
    group by cells.id
),
named as (
    select
        names.dimension,
        names.name,
        cast(coalesce(n, 0) as double) as n,
        coalesce(failed, 0) as failed,
        coalesce(busy, 0) as busy,
        coalesce(busy_sq, 0) as busy_sq,
        cast(coalesce(rest_n, 0) as double) as rest_n,
        coalesce(rest_failed, 0) as rest_failed,
        coalesce(rest_busy, 0) as rest_busy,
        coalesce(rest_busy_sq, 0) as rest_busy_sq,
        counted.id
    from counted
    inner join incident_names as names on names.id = counted.id
),
whole as (
    select
        sum(n) as all_n,
        sum(busy) as all_busy,
        sum(rest_n) as all_rest_n,
        sum(rest_failed) / nullif(sum(rest_n), 0) as all_rest_failing,
        sum(rest_busy) / nullif(sum(rest_n), 0) as all_rest_mean,
        sum(rest_busy_sq) / nullif(sum(rest_n), 0) - pow(sum(rest_busy) / nullif(sum(rest_n), 0), 2) as all_rest_variance
    from named
    where dimension = 'topic'
),
expected as (
    select
        named.*,
        whole.*,
        failed / nullif(n, 0) as failing,
        case when rest_n > 0 then rest_failed / rest_n else all_rest_failing end as rest_failing,
        busy / nullif(n, 0) as mean,
        case when rest_n > 0 then rest_busy / rest_n else all_rest_mean end as rest_mean,
        greatest(busy_sq / nullif(n, 0) - pow(busy / nullif(n, 0), 2), 0) as variance,
        greatest(case when rest_n > 0 then rest_busy_sq / rest_n - pow(rest_busy / rest_n, 2)
            else all_rest_variance end, 0) as rest_variance,
        case when rest_n > 0 then rest_n else all_rest_n end as beside_n
    from named
    cross join whole
    where all_n > 0 and all_rest_n > 0
),
pooled as (
    select
        *,
        (n + rest_n) / (all_n + all_rest_n) as share,
        (failed + rest_failing * beside_n) / nullif(n + beside_n, 0) as pooled_failing
    from expected
),
ways as (
    select
        dimension, name, id, 'occurs' as way, n, rest_n,
        n / all_n as here,
        rest_n / all_rest_n as elsewhere,
        n / all_n - rest_n / all_rest_n as excess,
        sqrt(share * (1 - share) * (1 / all_n + 1 / all_rest_n)) as deviation,
        n / all_n - rest_n / all_rest_n as difference
    from pooled
    union all
    select
        dimension, name, id, 'fails', n, rest_n,
        failing,
        rest_failing,
        n * (failing - rest_failing) / all_n,
        sqrt(pooled_failing * (1 - pooled_failing) * (1 / n + 1 / beside_n)),
        failing - rest_failing
    from pooled
    where dimension not in ('error', 'attempt') and n > 0 and n + rest_n < all_n + all_rest_n
    union all
    select
        dimension, name, id, 'takes longer', n, rest_n,
        mean / 1000000.0,
        rest_mean / 1000000.0,
        n * (mean - rest_mean) / nullif(all_busy, 0),
        sqrt(variance / n + rest_variance / beside_n),
        mean - rest_mean
    from pooled
    where dimension not in ('error', 'attempt') and n > 1 and n + rest_n < all_n + all_rest_n
)
select
    dimension,
    name,
    way,
    excess,
    here,
    elsewhere,
    cast(n as bigint) as n,
    cast(rest_n as bigint) as rest_n,
    difference / nullif(deviation, 0) as deviations,
    id
from ways
where abs(excess) >= $least and abs(difference) >= $deviations * deviation and name <> '(none)'
order by abs(excess) desc, dimension, name, way;
