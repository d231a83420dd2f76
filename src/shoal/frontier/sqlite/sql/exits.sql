-- The frontier's statements about lanes, exits and pairs. As in queries.sql, all writes run inside
-- BEGIN IMMEDIATE, {rows} stands for many rows, and {NAMES} in capitals are filled in from Python.

-- add_lanes: create the lanes that do not exist yet
INSERT INTO lanes (crawl_id, host_id, pool) VALUES {rows} ON CONFLICT DO NOTHING;

-- lanes: lanes (a JSON array of ids)
SELECT {LANE} FROM lanes JOIN hosts ON hosts.id = lanes.host_id
WHERE lanes.id IN (SELECT value FROM json_each(?));

-- lanes_of_hosts: all lanes of hosts (a JSON array of ids)
SELECT {LANE} FROM lanes JOIN hosts ON hosts.id = lanes.host_id
WHERE lanes.host_id IN (SELECT value FROM json_each(?));

-- fullest_lanes: the lanes of a crawl with waiting tasks; those with the most come first
SELECT {LANE} FROM lanes JOIN hosts ON hosts.id = lanes.host_id
WHERE lanes.crawl_id = ? AND lanes.waiting > 0
ORDER BY lanes.waiting DESC, hosts.host, lanes.pool LIMIT ?;

-- ready_lanes: the lanes of a pool that have to be looked at, the longest ready first
SELECT ready_at, id FROM lanes
WHERE crawl_id = ? AND pool = ? AND ready_at <= ? ORDER BY ready_at LIMIT ?;

-- next_lane: when to look at the next lane of a pool
SELECT MIN(ready_at) FROM lanes WHERE crawl_id = ? AND pool = ? AND ready_at IS NOT NULL;

-- save_lanes: write lanes back
WITH saved (id, waiting, next_at, ready_at, body) AS (VALUES {rows})
UPDATE lanes SET waiting = s.waiting, next_at = s.next_at, ready_at = s.ready_at, body = s.body
FROM saved AS s
WHERE lanes.id = s.id;

-- wake_lanes: have the lanes of pools (a JSON array of names) looked at
UPDATE lanes SET next_at = 0, ready_at = 0
WHERE ready_at > 0 AND pool IN (SELECT value FROM json_each(?));

-- idle_lanes: note that no task of the crawl's lanes waits any more
UPDATE lanes SET waiting = 0, ready_at = NULL WHERE crawl_id = ?;

-- forget_lanes: delete the lanes of a crawl
DELETE FROM lanes WHERE crawl_id = ?;

-- lane_tasks: the next tasks of a lane in the order of best_tasks, with the blocks they met before
SELECT t.id, t.fingerprint, t.attempts, hex(t.task), COALESCE(p.blocks, 0), COALESCE(p.tried, '[]'),
    COALESCE(p.expired, 0)
FROM tasks AS t LEFT JOIN passages AS p ON p.task_id = t.id
WHERE t.host_id = ? AND t.state = {WAITING} AND t.losses < {SUSPECT_AFTER}
ORDER BY t.priority DESC, t.place, t.id LIMIT ?;

-- blocks_of: the blocks that a task met before
SELECT blocks, tried, expired FROM passages WHERE task_id = ?;

-- lend: store what is lent with leases
INSERT OR REPLACE INTO passages
    (task_id, exit, session, pool, leased_at, blocks, tried, account, expired)
VALUES {rows};

-- passages: what is lent to tasks (a JSON array of ids)
SELECT task_id, exit, session, pool, leased_at, blocks, tried, account, expired FROM passages
WHERE task_id IN (SELECT value FROM json_each(?)) AND exit IS NOT NULL;

-- passages_of_crawl: what is lent to the tasks of a crawl, for which hosts, and since when
SELECT p.exit, p.account, h.host, p.leased_at
FROM passages AS p JOIN tasks AS t ON t.id = p.task_id
JOIN lanes AS l ON l.id = -t.host_id JOIN hosts AS h ON h.id = l.host_id
WHERE t.crawl_id = ? AND (p.exit <> '' OR p.account <> '');

-- expired_passages: what is lent with expired leases, of any crawl
SELECT p.task_id, p.exit, p.account, h.host, p.leased_at
FROM passages AS p CROSS JOIN tasks AS t ON t.id = p.task_id JOIN crawls AS c ON c.id = t.crawl_id
JOIN lanes AS l ON l.id = -t.host_id JOIN hosts AS h ON h.id = l.host_id
WHERE (p.exit <> '' OR p.account <> '') AND t.due <= ? + c.ahead LIMIT ?;

-- unlend: take exits and accounts from tasks (a JSON array of ids) whose leases were not ended
UPDATE passages SET exit = '', account = '' WHERE task_id IN (SELECT value FROM json_each(?));

-- keep_blocks: take the exit from a task, and keep how often it was blocked or sent back
INSERT OR REPLACE INTO passages
    (task_id, exit, session, pool, leased_at, blocks, tried, account, expired)
VALUES (?, NULL, 0, '', 0, ?, ?, '', ?);

-- end_passages: delete the rows of tasks (a JSON array of ids) that have ended, or were never
-- blocked
DELETE FROM passages WHERE task_id IN (SELECT value FROM json_each(?));

-- forget_passages: delete the rows of a crawl's tasks, when it is forgotten or cancelled
DELETE FROM passages WHERE task_id IN (SELECT id FROM tasks WHERE crawl_id = ?);

-- starving_tasks: the waiting tasks of a lane, or a certain one of them
SELECT id, chain FROM tasks WHERE host_id = ? AND state = {WAITING} AND id = COALESCE(?, id)
ORDER BY priority DESC, place, id LIMIT ?;

-- starve_tasks: let tasks (a JSON array of ids) die for which no exit could be used
UPDATE tasks SET state = {DEAD}, kind = ?, reason = ?, detail = '', since = ?
WHERE id IN (SELECT value FROM json_each(?));

-- clock: the clock of the exits
SELECT latest, ahead, swept_at FROM exit_clock;

-- set_clock: store the latest time of the exits' clock
UPDATE exit_clock SET latest = MAX(latest, ?), ahead = ?;

-- note_sweep: store when pairs were last swept
UPDATE exit_clock SET swept_at = ?;

-- sweep_pairs: delete pairs that carry no information any more, up to a limit
DELETE FROM pairs WHERE (host, exit) IN (
    SELECT host, exit FROM pairs WHERE void_at <= ? ORDER BY void_at LIMIT ?
);

-- pools: all pools
SELECT name, rules, spent, listed FROM pools ORDER BY name;

-- put_pool: create or change a pool
INSERT INTO pools (name, rules, spent, listed) VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET rules = excluded.rules, listed = excluded.listed;

-- save_spent: store what a pool has cost
UPDATE pools SET spent = ? WHERE name = ?;

-- exits: exits (a JSON array of ids)
SELECT body FROM exits WHERE id IN (SELECT value FROM json_each(?));

-- exits_of_pool: all exits of a pool, listed or not
SELECT body FROM exits WHERE pool = ? ORDER BY id;

-- save_exits: write exits back
INSERT OR REPLACE INTO exits (id, pool, is_listed, session, used_at, free_at, out_until, body)
VALUES {rows};

-- cooling: at how many hosts each exit of a pool is cooling down
SELECT e.id, COUNT(*) FROM pairs AS p JOIN exits AS e ON e.id = p.exit
WHERE p.cool_until > ? AND e.pool = ? AND p.session = e.session GROUP BY e.id;

-- rested: exits of a pool that may be used at a host, the longest unused first
SELECT e.body, p.body FROM exits AS e INDEXED BY exits_rested
LEFT JOIN pairs AS p ON p.host = :host AND p.exit = e.id
WHERE e.pool = :pool AND e.free_at <= :now
  AND (p.exit IS NULL OR p.session <> e.session OR p.free_at <= :now)
ORDER BY e.used_at, e.id LIMIT :limit;

-- sticking: of those, the exits through which the host is visited since a time
SELECT e.body, p.body FROM pairs AS p INDEXED BY pairs_sticking JOIN exits AS e ON e.id = p.exit
WHERE p.host = :host AND p.since > 0 AND p.since > :since AND p.free_at <= :now
  AND e.pool = :pool AND e.free_at <= :now AND p.session = e.session
ORDER BY p.since LIMIT :limit;

-- next_free: when the next exit of a pool may be used
SELECT MIN(free_at) FROM exits WHERE pool = ? AND free_at IS NOT NULL;

-- outlook: counts of a pool's exits at a host: listed, out, cooling, usable, full; and when the
-- next one becomes usable that is not now. Pairs of exits that are out are ignored, so that all
-- hosts agree
SELECT COUNT(*), TOTAL(is_out), TOTAL(is_cooling AND NOT is_out), TOTAL(at <= :now),
    TOTAL(at = 9e999 AND NOT is_out AND NOT is_cooling), MIN(CASE WHEN at > :now THEN at END)
FROM (
    SELECT e.out_until > :now AS is_out,
        p.exit IS NOT NULL AND p.session = e.session AND p.cool_until > :now AS is_cooling,
        MAX(COALESCE(e.free_at, 9e999), CASE WHEN p.session = e.session THEN p.free_at ELSE 0 END)
            AS at
    FROM exits AS e LEFT JOIN pairs AS p
        ON p.host = :host AND p.exit = e.id AND e.out_until <= :now
    WHERE e.pool = :pool AND e.is_listed
);

-- pairs: pairs (a JSON array of host and exit)
SELECT p.host, p.exit, p.body FROM json_each(?) AS wanted CROSS JOIN pairs AS p
WHERE p.host = json_extract(wanted.value, '$[0]') AND p.exit = json_extract(wanted.value, '$[1]');

-- save_pairs: write pairs back
INSERT OR REPLACE INTO pairs (host, exit, session, since, free_at, cool_until, void_at, body)
VALUES {rows};

-- drop_pair: delete a pair that carries no information
DELETE FROM pairs WHERE host = ? AND exit = ?;
