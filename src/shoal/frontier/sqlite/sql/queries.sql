-- The frontier's statements, each under its name. All writes run inside BEGIN IMMEDIATE, so what a
-- step reads cannot change before it writes. Indexes used are those of the schema.
-- What a step does for every page writes {rows}, and reads them as one JSON array: see write_rows.
-- What stands for {NAMES} in capitals is declared in Python: see statements.py.

-- crawl: the row of one crawl, by name; and the version of the file, which others may raise at any time
SELECT *, {FILE_VERSION} FROM crawls WHERE name = ?;

-- crawls: all of them, the newest first
SELECT *, {FILE_VERSION} FROM crawls ORDER BY created_at DESC, id DESC;

-- create_crawl: a crawl that nobody has started
INSERT INTO crawls (name, state, rules, created_at) VALUES (?, '{NEW}', ?, ?);

-- start_crawl: it runs by these rules; its first start is its start
UPDATE crawls
SET state = ?, rules = ?, sealed = ?, started_at = COALESCE(started_at, ?), finished_at = NULL
WHERE id = ?;

-- set_state: pause, resume, cancel, finish, or run again
UPDATE crawls SET state = ?, finished_at = ? WHERE id = ?;

-- seal: all seeds are in
UPDATE crawls SET sealed = 1 WHERE id = ?;

-- count: move the counters by what a step did
UPDATE crawls
SET {COUNTED}, places = places + :places, latest = MAX(latest, :now), ahead = :ahead
WHERE id = :id;

-- sample: remember how far the crawl was
UPDATE crawls
SET earlier_at = sample_at, earlier_done = sample_done, sample_at = ?, sample_done = ?
WHERE id = ?;

-- add_hosts: those that are seen for the first time
INSERT INTO hosts (crawl_id, host) VALUES {rows} ON CONFLICT DO NOTHING;

-- hosts_named: the schedules of hosts (a JSON array of names), behind their names
SELECT host, {SCHEDULE} FROM hosts WHERE crawl_id = ? AND host IN (SELECT value FROM json_each(?));

-- hosts: the schedules of hosts (a JSON array of ids)
SELECT {SCHEDULE} FROM hosts WHERE id IN (SELECT value FROM json_each(?));

-- ready_hosts: hosts that may be hit now, the longest ready first
SELECT id FROM hosts WHERE crawl_id = ? AND ready_at <= ? ORDER BY ready_at LIMIT ? OFFSET ?;

-- next_ready: when the next host may be hit
SELECT MIN(ready_at) FROM hosts WHERE crawl_id = ? AND ready_at IS NOT NULL;

-- next_due: when the next retry is ready or the next lease expires
SELECT MIN(due) FROM tasks WHERE crawl_id = ? AND due IS NOT NULL;

-- save_hosts: write schedules back
WITH saved ({SCHEDULE}, ready_at) AS (VALUES {rows})
UPDATE hosts SET {SCHEDULE_SAVED}, ready_at = s.ready_at
FROM saved AS s
WHERE hosts.id = s.id;

-- busiest_hosts: those with the most work left
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ?
ORDER BY waiting + leased DESC, done DESC, host LIMIT ?;

-- slowest_hosts: of those that have answered
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ? AND latency_s > 0
ORDER BY latency_s DESC, host LIMIT ?;

-- failing_hosts: of those that have failed
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ? AND failed > 0 ORDER BY failed DESC, host LIMIT ?;

-- seen: which of these fingerprints (a JSON array) are known
SELECT json_group_array(fingerprint) FROM (
    SELECT fingerprint FROM tasks
    WHERE crawl_id = :crawl_id AND fingerprint IN (SELECT value FROM json_each(:fingerprints))
    UNION ALL
    SELECT fingerprint FROM remembered
    WHERE crawl_id = :crawl_id AND fingerprint IN (SELECT value FROM json_each(:fingerprints))
);

-- remember: those of these fingerprints (a JSON array) that are not known
INSERT OR IGNORE INTO remembered
SELECT ?, value FROM json_each(?)
WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE crawl_id = ? AND fingerprint = value);

-- is_remembered: whether it was done elsewhere
SELECT EXISTS (SELECT 1 FROM remembered WHERE crawl_id = ? AND fingerprint = ?);

-- add_tasks: tasks nobody has seen
INSERT INTO tasks (crawl_id, fingerprint, host_id, priority, state, place, chain, attempts, task)
VALUES {rows};

-- head_of_chain: the task of a chain that is under way, or else the first that waits for its turn
SELECT id, host_id, state FROM tasks
WHERE crawl_id = ? AND chain = ? AND state < {ENDED_FROM} ORDER BY state DESC, place, id LIMIT 1;

-- longest_chains: those with the most tasks left
SELECT chain, COUNT(*) FROM tasks
WHERE crawl_id = ? AND chain IS NOT NULL AND state < {ENDED_FROM}
GROUP BY chain ORDER BY COUNT(*) DESC, chain LIMIT ?;

-- free_task: nothing of its chain is before it any more
UPDATE tasks SET state = {WAITING}, place = ? WHERE id = ?;

-- best_tasks: a host's next tasks, best priority first, then by their turn; no suspects
SELECT json_group_array(json_array(id, fingerprint, attempts, hex(task))) FROM (
    SELECT id, fingerprint, attempts, task FROM tasks
    WHERE host_id = ? AND state = {WAITING} AND losses < {SUSPECT_AFTER}
    ORDER BY priority DESC, place, id LIMIT ?
);

-- count_tasks: how many of a host's tasks wait, suspects apart, up to so many
SELECT COUNT(*) FROM (
    SELECT 1 FROM tasks WHERE host_id = ? AND state = {WAITING} AND losses < {SUSPECT_AFTER} LIMIT ?
);

-- suspects: tasks that several workers died with, the oldest first
SELECT host_id, id, fingerprint, attempts, hex(task) FROM tasks
WHERE crawl_id = ? AND state = {WAITING} AND losses >= {SUSPECT_AFTER} ORDER BY id LIMIT ?;

-- holds_any: whether a worker holds anything
SELECT EXISTS (
    SELECT 1 FROM tasks WHERE crawl_id = ? AND state = {LEASED} AND worker = ?
);

-- lease_tasks: hand tasks out
WITH granted (id, token, reserved, shared) AS (VALUES {rows})
UPDATE tasks
SET token = g.token, reserved = g.reserved, shared = g.shared, state = {LEASED}, due = ?, worker = ?,
    since = ?
FROM granted AS g
WHERE tasks.id = g.id;

-- renew_lease: only while it is still ours
UPDATE tasks SET due = ? WHERE crawl_id = ? AND fingerprint = ? AND token = ? AND state = {LEASED};

-- renew_shares: of the hosts of shared leases (a JSON array of fingerprint and token) that are ours; not
-- those that are void: whether they have been struck yet is chance
UPDATE shares SET until = ?
WHERE share > 0 AND until > ? AND (host_id, worker) IN (
    SELECT t.host_id, t.worker FROM json_each(?) AS lease CROSS JOIN tasks AS t
    WHERE t.crawl_id = ? AND t.fingerprint = json_extract(lease.value, '$[0]')
      AND t.token = json_extract(lease.value, '$[1]') AND t.state = {LEASED} AND t.shared
);

-- owned_tasks: the tasks of leases (a JSON array of fingerprint and token), of those that are ours
SELECT json_group_array(
    json_array(t.token, t.id, t.host_id, t.chain, t.attempts, t.since, t.reserved, t.shared)
)
FROM json_each(?) AS lease CROSS JOIN tasks AS t
WHERE t.crawl_id = ? AND t.fingerprint = json_extract(lease.value, '$[0]')
  AND t.token = json_extract(lease.value, '$[1]') AND t.state = {LEASED};

-- move_tasks: their leases end; those that wait again are in front
WITH moved (id, state, attempts, due, kind, reason, detail) AS (VALUES {rows})
UPDATE tasks
SET state = m.state, attempts = m.attempts, due = m.due, kind = m.kind, reason = m.reason,
    detail = m.detail, place = 0, token = NULL, worker = NULL, since = ?
FROM moved AS m
WHERE tasks.id = m.id;

-- due_tasks: retries that are ready and leases that have expired, the longest due first
SELECT id, host_id, chain, state, losses, shared FROM tasks
WHERE crawl_id = ? AND due <= ? ORDER BY due LIMIT ?;

-- held_tasks: what one worker holds
SELECT id, host_id, chain, state, losses, shared FROM tasks
WHERE crawl_id = ? AND state = {LEASED} AND worker = ?;

-- holders: who holds leases, or shares of hosts that are not void
SELECT worker FROM tasks WHERE crawl_id = :crawl_id AND state = {LEASED}
UNION
SELECT worker FROM shares JOIN hosts ON hosts.id = shares.host_id
WHERE hosts.crawl_id = :crawl_id AND shares.until > :now
ORDER BY worker;

-- wake_task: a retry's wait is over
UPDATE tasks SET state = {WAITING}, due = NULL, place = ? WHERE id = ?;

-- lose_task: its worker died; it is the next one to go
UPDATE tasks
SET state = ?, losses = losses + 1, due = NULL, kind = ?, reason = ?, detail = '', place = 0,
    token = NULL, worker = NULL, since = ?
WHERE id = ?;

-- drop_unended: everything that has not ended is dropped, its leases void
UPDATE tasks
SET state = {DROPPED}, due = NULL, token = NULL, worker = NULL, reason = '{DROPPED_BY_CANCEL}'
WHERE crawl_id = ? AND state < {ENDED_FROM};

-- idle_hosts: nothing waits any more, nothing is in flight
UPDATE hosts SET waiting = 0, leased = 0, shared = 0, sharers = 0, ready_at = NULL
WHERE crawl_id = ?;

-- dead_ids: some dead tasks that fit, the newest first
SELECT id, host_id, chain, since, fingerprint FROM tasks WHERE {FITTING}
ORDER BY since DESC, fingerprint DESC LIMIT :limit;

-- count_dead: how many dead tasks fit
SELECT COUNT(*) FROM tasks WHERE {FITTING};

-- retry_task: of a dead task, a fresh start
UPDATE tasks
SET state = ?, attempts = 0, losses = 0, kind = NULL, reason = '', detail = '', place = ?
WHERE id = ?;

-- purge_task: a dead task is dropped; why it was dead stays known
UPDATE tasks SET state = {DROPPED}, kind = NULL, reason = '{PURGED}' || reason WHERE id = ?;

-- find_task: all that is known of one URL
SELECT {RECORD} FROM tasks WHERE crawl_id = ? AND fingerprint = ?;

-- tasks_of_host: all that is known of a host's tasks, in the order they were added
SELECT {RECORD} FROM tasks
WHERE crawl_id = :crawl_id AND host_id IN (
    SELECT id FROM hosts WHERE crawl_id = :crawl_id AND host = :host
    UNION ALL
    SELECT -lanes.id FROM lanes JOIN hosts ON hosts.id = lanes.host_id
    WHERE hosts.crawl_id = :crawl_id AND hosts.host = :host
)
ORDER BY id;

-- dead_tasks: dead letters that fit, the newest first
SELECT {RECORD} FROM tasks WHERE {FITTING} ORDER BY since DESC, fingerprint DESC LIMIT :limit;

-- leased_tasks: what workers hold, those first whose leases expire first
SELECT fingerprint, task, attempts, worker, since, due FROM tasks
WHERE crawl_id = ? AND state = {LEASED} AND due IS NOT NULL ORDER BY due, id LIMIT ?;

-- count_failures: tries have failed; host 0 stands for the crawl
INSERT INTO failures (crawl_id, host_id, kind, tries) VALUES {rows}
ON CONFLICT DO UPDATE SET tries = tries + excluded.tries;

-- failures: by kind, of hosts (a JSON array of ids)
SELECT host_id, kind, tries FROM failures
WHERE crawl_id = ? AND host_id IN (SELECT value FROM json_each(?));

-- keep_own_counts: how much there is by now
INSERT INTO own_counts (crawl_id, name, times) VALUES {rows}
ON CONFLICT DO UPDATE SET times = excluded.times;

-- own_counts: by name
SELECT name, times FROM own_counts WHERE crawl_id = ? ORDER BY name;

-- save_robots: shared by all workers
INSERT INTO robots (host_id, body) VALUES (?, ?)
ON CONFLICT (host_id) DO UPDATE SET body = excluded.body;

-- robots: what a worker stored
SELECT body FROM robots JOIN hosts ON hosts.id = robots.host_id
WHERE hosts.crawl_id = ? AND hosts.host = ?;

-- shares: what workers have of a host's room
SELECT worker, share, until FROM shares WHERE host_id = ?;

-- share: so much is a worker's until then
INSERT OR REPLACE INTO shares (host_id, worker, share, until) VALUES (?, ?, ?, ?);

-- shared_hosts: the hosts that a worker has a part in
SELECT host_id FROM shares JOIN hosts ON hosts.id = shares.host_id
WHERE hosts.crawl_id = ? AND shares.worker = ?;

-- unshare: a worker has no part in it any more
DELETE FROM shares WHERE host_id = ? AND worker = ?;

-- void_shares: those of workers that were not heard of
DELETE FROM shares WHERE host_id = ? AND until <= ?;

-- forget_shares: with their crawl, or its leases
DELETE FROM shares WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- beat: a worker's sign of life
INSERT INTO workers (crawl_id, worker, seen_at, body) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body;

-- strike_workers: those that were last heard of too long ago
DELETE FROM workers WHERE crawl_id = ? AND seen_at < ?;

-- workers: those that were heard of since then
SELECT body FROM workers WHERE crawl_id = ? AND seen_at >= ? ORDER BY worker;

-- forget_workers: with their crawl
DELETE FROM workers WHERE crawl_id = ?;

-- forget_robots: with its crawl
DELETE FROM robots WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- jar: the cookies of a chain
SELECT jar FROM jars WHERE crawl_id = ? AND chain = ?;

-- save_jar: the cookies of a chain, from now on
INSERT INTO jars (crawl_id, chain, jar) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET jar = excluded.jar;

-- delete_jar: it is empty, or nothing of its chain is left
DELETE FROM jars WHERE crawl_id = ? AND chain = ?;

-- strip_cookies: what a redirect brought along is not needed any more
UPDATE tasks SET task = CAST(json_remove(CAST(task AS TEXT), '$.cookies') AS BLOB) WHERE id = ?;

-- forget_jars: with their crawl, or its tasks
DELETE FROM jars WHERE crawl_id = ?;

-- forget_tasks: with its crawl
DELETE FROM tasks WHERE crawl_id = ?;

-- forget_remembered: with its crawl
DELETE FROM remembered WHERE crawl_id = ?;

-- forget_failures: with their crawl
DELETE FROM failures WHERE crawl_id = ?;

-- forget_own_counts: with their crawl
DELETE FROM own_counts WHERE crawl_id = ?;

-- forget_alike: with its hosts
DELETE FROM alike WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- forget_hosts: with its crawl
DELETE FROM hosts WHERE crawl_id = ?;

-- forget_crawl: with all that belongs to it
DELETE FROM crawls WHERE id = ?;

-- alike: how many links of a host were queued with addresses of these shapes (a JSON array)
SELECT shape, pages FROM alike WHERE host_id = ? AND shape IN (SELECT value FROM json_each(?));

-- count_alike: so many were queued, and so many kept out
INSERT INTO alike (host_id, shape, pages, kept_out) VALUES {rows}
ON CONFLICT DO UPDATE SET
    pages = pages + excluded.pages,
    kept_out = kept_out + excluded.kept_out;

-- count_shapes: how many shapes are kept of a host
SELECT COUNT(*) FROM alike WHERE host_id = ? AND shape <> '';

-- forget_shapes: those of a host that were met once
DELETE FROM alike WHERE host_id = ? AND pages <= 1 AND kept_out = 0 AND shape <> '';

-- traps: of what most links were kept out
SELECT host, shape, kept_out FROM alike JOIN hosts ON hosts.id = alike.host_id
WHERE hosts.crawl_id = ? AND kept_out > 0
ORDER BY kept_out DESC, host, shape LIMIT ?;
