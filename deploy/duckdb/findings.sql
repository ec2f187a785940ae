-- What the nodes had found, once each, the newest first.
SELECT max(written_at) AS seen_at, host, f.severity, f.kind, f.verdict, arg_max(f.text, written_at) AS said
FROM (SELECT written_at, status.host AS host, unnest(findings) AS f
	FROM read_json(getvariable('files'), maximum_object_size = 1 << 30, columns = {
	written_at: 'TIMESTAMP', status: 'STRUCT(host VARCHAR)',
	findings: 'STRUCT(id BIGINT, grade VARCHAR, severity VARCHAR, kind VARCHAR, verdict VARCHAR, "text" VARCHAR)[]'}))
WHERE f.grade = 'found'
GROUP BY host, f.id, f.severity, f.kind, f.verdict
ORDER BY seen_at DESC;
