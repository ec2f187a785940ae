-- The time of each function by size and minute, over all ranks, of what ran since the file before.
SELECT date_trunc('minute', written_at) AS minute, r.comm_name, r.func, r.size_class,
	sum(r.since_previous.timed)::BIGINT AS timed,
	sum(r.since_previous.timed_ns) / sum(r.since_previous.timed) / 1e6 AS mean_ms
FROM (SELECT written_at, unnest("rows") AS r FROM read_json(getvariable('files'), maximum_object_size = 1 << 30, columns = {
	written_at: 'TIMESTAMP',
	"rows": 'STRUCT(comm_name VARCHAR, func VARCHAR, size_class BIGINT, since_previous STRUCT(timed BIGINT, timed_ns BIGINT))[]'}))
WHERE r.since_previous.timed > 0
GROUP BY ALL
ORDER BY ALL;
