-- The frontier's statements, each under its name. All writes run inside BEGIN IMMEDIATE, so what a
-- step reads cannot change before it writes. The indexes are declared in the schema.
-- Statements that a step runs for every page write many {rows} at once (see write_rows), and return
-- their rows as one JSON array. {NAMES} in capitals are filled in from Python (see statements.py).

-- crawl: one crawl by name, with the version of the file, which another process may raise at any
-- time
SELECT *, {FILE_VERSION} FROM crawls WHERE name = ?;

-- crawls: all crawls, the newest first
SELECT *, {FILE_VERSION} FROM crawls ORDER BY created_at DESC, id DESC;

-- create_crawl: a new crawl
INSERT INTO crawls (name, state, rules, created_at) VALUES (?, '{NEW}', ?, ?);

-- start_crawl: set the rules of a crawl that starts; started_at keeps the time of its first start
UPDATE crawls
SET state = ?, rules = ?, sealed = ?, started_at = COALESCE(started_at, ?), finished_at = NULL
WHERE id = ?;

-- set_state: the crawl is paused, resumed, cancelled, finished, or runs again
UPDATE crawls SET state = ?, finished_at = ? WHERE id = ?;

-- seal: note that all seeds are in
UPDATE crawls SET sealed = 1 WHERE id = ?;

-- count: add a step's changes to the counters
UPDATE crawls
SET {COUNTED}, places = places + :places, latest = MAX(latest, :now), ahead = :ahead
WHERE id = :id;

-- sample: note how far the crawl is now; the previous sample becomes the earlier one
UPDATE crawls
SET earlier_at = sample_at, earlier_done = sample_done, sample_at = ?, sample_done = ?
WHERE id = ?;

-- add_hosts: create the hosts that do not exist yet
INSERT INTO hosts (crawl_id, host) VALUES {rows} ON CONFLICT DO NOTHING;

-- hosts_named: the names and schedules of hosts (a JSON array of names)
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

-- busiest_hosts: the hosts with the most work left
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ?
ORDER BY waiting + leased DESC, done DESC, host LIMIT ?;

-- slowest_hosts: the hosts with the highest latency, of those that have responded
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ? AND latency_s > 0
ORDER BY latency_s DESC, host LIMIT ?;

-- failing_hosts: the hosts with the most failures
SELECT {HOST} FROM {HOSTS} WHERE crawl_id = ? AND failed > 0 ORDER BY failed DESC, host LIMIT ?;

-- seen: which of these fingerprints (a JSON array) are known
SELECT json_group_array(fingerprint) FROM (
    SELECT fingerprint FROM tasks
    WHERE crawl_id = :crawl_id AND fingerprint IN (SELECT value FROM json_each(:fingerprints))
    UNION ALL
    SELECT fingerprint FROM remembered
    WHERE crawl_id = :crawl_id AND fingerprint IN (SELECT value FROM json_each(:fingerprints))
);

-- remember: store those of these fingerprints (a JSON array) that are not known
INSERT OR IGNORE INTO remembered
SELECT ?, value FROM json_each(?)
WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE crawl_id = ? AND fingerprint = value);

-- is_remembered: whether a fingerprint was done elsewhere
SELECT EXISTS (SELECT 1 FROM remembered WHERE crawl_id = ? AND fingerprint = ?);

-- add_tasks: add tasks whose fingerprints are new
INSERT INTO tasks (crawl_id, fingerprint, host_id, priority, state, place, chain, attempts, task)
VALUES {rows};

-- head_of_chain: the task of a chain that is under way, or else the first one that waits for its
-- turn
SELECT id, host_id, state FROM tasks
WHERE crawl_id = ? AND chain = ? AND state < {ENDED_FROM} ORDER BY state DESC, place, id LIMIT 1;

-- longest_chains: the chains with the most tasks left
SELECT chain, COUNT(*) FROM tasks
WHERE crawl_id = ? AND chain IS NOT NULL AND state < {ENDED_FROM}
GROUP BY chain ORDER BY COUNT(*) DESC, chain LIMIT ?;

-- free_task: let a held-back task go, as no task of its chain is before it any more
UPDATE tasks SET state = {WAITING}, place = ? WHERE id = ?;

-- best_tasks: a host's next tasks without suspects, by priority and then by turn
SELECT json_group_array(json_array(id, fingerprint, attempts, hex(task))) FROM (
    SELECT id, fingerprint, attempts, task FROM tasks
    WHERE host_id = ? AND state = {WAITING} AND losses < {SUSPECT_AFTER}
    ORDER BY priority DESC, place, id LIMIT ?
);

-- count_tasks: how many tasks of a host wait, suspects excluded; counts no further than the limit
SELECT COUNT(*) FROM (
    SELECT 1 FROM tasks WHERE host_id = ? AND state = {WAITING} AND losses < {SUSPECT_AFTER} LIMIT ?
);

-- suspects: tasks with which several workers died, the oldest first
SELECT host_id, id, fingerprint, attempts, hex(task) FROM tasks
WHERE crawl_id = ? AND state = {WAITING} AND losses >= {SUSPECT_AFTER} ORDER BY id LIMIT ?;

-- holds_any: whether a worker holds any task
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

-- renew_lease: renew a lease that is still owned
UPDATE tasks SET due = ? WHERE crawl_id = ? AND fingerprint = ? AND token = ? AND state = {LEASED};

-- renew_shares: renew the shares of hosts of shared leases (a JSON array of fingerprint and token)
-- that are still owned. Void shares stay void, since it is chance whether they have been deleted
-- yet
UPDATE shares SET until = ?
WHERE share > 0 AND until > ? AND (host_id, worker) IN (
    SELECT t.host_id, t.worker FROM json_each(?) AS lease CROSS JOIN tasks AS t
    WHERE t.crawl_id = ? AND t.fingerprint = json_extract(lease.value, '$[0]')
      AND t.token = json_extract(lease.value, '$[1]') AND t.state = {LEASED} AND t.shared
);

-- owned_tasks: the tasks of those leases (a JSON array of fingerprint and token) that are still
-- owned
SELECT json_group_array(
    json_array(t.token, t.id, t.host_id, t.chain, t.attempts, t.since, t.reserved, t.shared)
)
FROM json_each(?) AS lease CROSS JOIN tasks AS t
WHERE t.crawl_id = ? AND t.fingerprint = json_extract(lease.value, '$[0]')
  AND t.token = json_extract(lease.value, '$[1]') AND t.state = {LEASED};

-- move_tasks: end the leases of tasks; those that wait again go to the front
WITH moved (id, state, attempts, due, kind, reason, detail) AS (VALUES {rows})
UPDATE tasks
SET state = m.state, attempts = m.attempts, due = m.due, kind = m.kind, reason = m.reason,
    detail = m.detail, place = 0, token = NULL, worker = NULL, since = ?
FROM moved AS m
WHERE tasks.id = m.id;

-- due_tasks: retries that are ready and leases that have expired, the longest due first
SELECT id, host_id, chain, state, losses, shared FROM tasks
WHERE crawl_id = ? AND due <= ? ORDER BY due LIMIT ?;

-- held_tasks: the tasks that a worker holds
SELECT id, host_id, chain, state, losses, shared FROM tasks
WHERE crawl_id = ? AND state = {LEASED} AND worker = ?;

-- holders: the workers that hold leases, or shares of hosts that are not void
SELECT worker FROM tasks WHERE crawl_id = :crawl_id AND state = {LEASED}
UNION
SELECT worker FROM shares JOIN hosts ON hosts.id = shares.host_id
WHERE hosts.crawl_id = :crawl_id AND shares.until > :now
ORDER BY worker;

-- wake_task: let a retry whose wait is over wait for its turn
UPDATE tasks SET state = {WAITING}, due = NULL, place = ? WHERE id = ?;

-- lose_task: take back a task whose worker died; if it is not dead, it is the next to go
UPDATE tasks
SET state = ?, losses = losses + 1, due = NULL, kind = ?, reason = ?, detail = '', place = 0,
    token = NULL, worker = NULL, since = ?
WHERE id = ?;

-- drop_unended: drop all tasks that have not ended, and void their leases
UPDATE tasks
SET state = {DROPPED}, due = NULL, token = NULL, worker = NULL, reason = '{DROPPED_BY_CANCEL}'
WHERE crawl_id = ? AND state < {ENDED_FROM};

-- idle_hosts: note that no task of a crawl waits or is in flight any more
UPDATE hosts SET waiting = 0, leased = 0, shared = 0, sharers = 0, ready_at = NULL
WHERE crawl_id = ?;

-- dead_ids: matching dead tasks, the newest first
SELECT id, host_id, chain, since, fingerprint FROM tasks WHERE {FITTING}
ORDER BY since DESC, fingerprint DESC LIMIT :limit;

-- count_dead: how many dead tasks match
SELECT COUNT(*) FROM tasks WHERE {FITTING};

-- retry_task: give a dead task a fresh start
UPDATE tasks
SET state = ?, attempts = 0, losses = 0, kind = NULL, reason = '', detail = '', place = ?
WHERE id = ?;

-- purge_task: drop a dead task; the reason keeps why it was dead
UPDATE tasks SET state = {DROPPED}, kind = NULL, reason = '{PURGED}' || reason WHERE id = ?;

-- find_task: everything known about one task, by its fingerprint
SELECT {RECORD} FROM tasks WHERE crawl_id = ? AND fingerprint = ?;

-- tasks_of_host: everything known about a host's tasks, in the order in which they were added
SELECT {RECORD} FROM tasks
WHERE crawl_id = :crawl_id AND host_id IN (
    SELECT id FROM hosts WHERE crawl_id = :crawl_id AND host = :host
    UNION ALL
    SELECT -lanes.id FROM lanes JOIN hosts ON hosts.id = lanes.host_id
    WHERE hosts.crawl_id = :crawl_id AND hosts.host = :host
)
ORDER BY id;

-- dead_tasks: the records of matching dead tasks, the newest first
SELECT {RECORD} FROM tasks WHERE {FITTING} ORDER BY since DESC, fingerprint DESC LIMIT :limit;

-- leased_tasks: leased tasks; those whose leases expire first come first
SELECT fingerprint, task, attempts, worker, since, due FROM tasks
WHERE crawl_id = ? AND state = {LEASED} AND due IS NOT NULL ORDER BY due, id LIMIT ?;

-- count_failures: add failed tries by host and kind; host 0 stands for the crawl
INSERT INTO failures (crawl_id, host_id, kind, tries) VALUES {rows}
ON CONFLICT DO UPDATE SET tries = tries + excluded.tries;

-- failures: failed tries by kind, of hosts (a JSON array of ids)
SELECT host_id, kind, tries FROM failures
WHERE crawl_id = ? AND host_id IN (SELECT value FROM json_each(?));

-- keep_own_counts: store the new totals of the spiders' own counters
INSERT INTO own_counts (crawl_id, name, times) VALUES {rows}
ON CONFLICT DO UPDATE SET times = excluded.times;

-- own_counts: the spiders' own counters, by name
SELECT name, times FROM own_counts WHERE crawl_id = ? ORDER BY name;

-- save_robots: store a host's robots.txt, which all workers share
INSERT INTO robots (host_id, body) VALUES (?, ?)
ON CONFLICT (host_id) DO UPDATE SET body = excluded.body;

-- robots: the stored robots.txt of a host
SELECT body FROM robots JOIN hosts ON hosts.id = robots.host_id
WHERE hosts.crawl_id = ? AND hosts.host = ?;

-- shares: the workers' shares of a host's room
SELECT worker, share, until FROM shares WHERE host_id = ?;

-- share: give a worker a share of a host, until a time
INSERT OR REPLACE INTO shares (host_id, worker, share, until) VALUES (?, ?, ?, ?);

-- shared_hosts: the hosts of which a worker has a share
SELECT host_id FROM shares JOIN hosts ON hosts.id = shares.host_id
WHERE hosts.crawl_id = ? AND shares.worker = ?;

-- unshare: remove a worker's share of a host
DELETE FROM shares WHERE host_id = ? AND worker = ?;

-- void_shares: delete the shares of a host that have expired: their workers were not heard from
DELETE FROM shares WHERE host_id = ? AND until <= ?;

-- forget_shares: delete all shares of a crawl, when it is forgotten or cancelled
DELETE FROM shares WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- beat: store a worker's sign of life
INSERT INTO workers (crawl_id, worker, seen_at, body) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at, body = excluded.body;

-- strike_workers: delete workers that were last heard from too long ago
DELETE FROM workers WHERE crawl_id = ? AND seen_at < ?;

-- workers: the workers heard from since a time
SELECT body FROM workers WHERE crawl_id = ? AND seen_at >= ? ORDER BY worker;

-- forget_workers: delete the workers of a crawl
DELETE FROM workers WHERE crawl_id = ?;

-- forget_robots: delete all robots.txt of a crawl
DELETE FROM robots WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- jar: the cookies of a chain
SELECT jar FROM jars WHERE crawl_id = ? AND chain = ?;

-- save_jar: store the cookies of a chain
INSERT INTO jars (crawl_id, chain, jar) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET jar = excluded.jar;

-- delete_jar: delete the cookies of a chain that has none any more, or no tasks left
DELETE FROM jars WHERE crawl_id = ? AND chain = ?;

-- strip_cookies: remove the cookies that a redirect gave to a task, once they are no longer needed
UPDATE tasks SET task = CAST(json_remove(CAST(task AS TEXT), '$.cookies') AS BLOB) WHERE id = ?;

-- forget_jars: delete all jars of a crawl, when it is forgotten or cancelled
DELETE FROM jars WHERE crawl_id = ?;

-- forget_tasks: delete all tasks of a crawl
DELETE FROM tasks WHERE crawl_id = ?;

-- forget_remembered: delete all remembered fingerprints of a crawl
DELETE FROM remembered WHERE crawl_id = ?;

-- forget_failures: delete the counts of failures of a crawl
DELETE FROM failures WHERE crawl_id = ?;

-- forget_own_counts: delete the spiders' own counters of a crawl
DELETE FROM own_counts WHERE crawl_id = ?;

-- forget_alike: delete the counts of shapes of a crawl
DELETE FROM alike WHERE host_id IN (SELECT id FROM hosts WHERE crawl_id = ?);

-- forget_hosts: delete the hosts of a crawl
DELETE FROM hosts WHERE crawl_id = ?;

-- forget_crawl: delete a crawl itself, after everything that belongs to it
DELETE FROM crawls WHERE id = ?;

-- alike: how many links of a host were queued, for shapes of addresses (a JSON array)
SELECT shape, pages FROM alike WHERE host_id = ? AND shape IN (SELECT value FROM json_each(?));

-- count_alike: add to the numbers of links queued and kept out, by shape
INSERT INTO alike (host_id, shape, pages, kept_out) VALUES {rows}
ON CONFLICT DO UPDATE SET
    pages = pages + excluded.pages,
    kept_out = kept_out + excluded.kept_out;

-- count_shapes: how many shapes of a host are counted
SELECT COUNT(*) FROM alike WHERE host_id = ? AND shape <> '';

-- forget_shapes: delete the shapes of a host that were met only once
DELETE FROM alike WHERE host_id = ? AND pages <= 1 AND kept_out = 0 AND shape <> '';

-- traps: the hosts and shapes from which most links were kept out
SELECT host, shape, kept_out FROM alike JOIN hosts ON hosts.id = alike.host_id
WHERE hosts.crawl_id = ? AND kept_out > 0
ORDER BY kept_out DESC, host, shape LIMIT ?;
