-- Ranks that others waited for, over all nodes and times of the files, the most expensive first.
SELECT r.job, r.comm_name, r.world_rank, r.host, r.pid,
	max(r.blame) AS share_of_the_others_time, max(r.last) AS last_in, count(*) AS files
FROM (SELECT unnest(ranks) AS r FROM read_json(getvariable('files'), maximum_object_size = 1 << 30, columns = {
	ranks: 'STRUCT(job VARCHAR, comm_name VARCHAR, world_rank INT, host VARCHAR, pid INT, blame DOUBLE, "last" DOUBLE, late BOOLEAN)[]'}))
WHERE r.late
GROUP BY ALL
ORDER BY share_of_the_others_time DESC
LIMIT 20;
