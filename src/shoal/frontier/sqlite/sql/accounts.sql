-- The frontier's statements about accounts, and about lanes whose tasks need one certain account.
-- As in queries.sql, all writes run inside BEGIN IMMEDIATE, and {rows} stands for many rows.

-- accounts: the states of accounts (a JSON array of ids)
SELECT id, body FROM accounts WHERE id IN (SELECT value FROM json_each(?));

-- save_accounts: write accounts back, except for their cookies
INSERT INTO accounts (id, worker, is_banned, body) VALUES {rows}
ON CONFLICT (id) DO UPDATE
SET worker = excluded.worker, is_banned = excluded.is_banned, body = excluded.body;

-- jar_of_account: the cookies of an account
SELECT jar FROM accounts WHERE id = ?;

-- save_jar_of_account: store the cookies of an account
UPDATE accounts SET jar = ? WHERE id = ?;

-- jars_of_accounts: the cookies of accounts (a JSON array of ids)
SELECT id, jar FROM accounts WHERE id IN (SELECT value FROM json_each(?));

-- free_accounts: the accounts of a group that a worker may use now, in the order to use them
SELECT e.body FROM exits AS e INDEXED BY exits_rested
LEFT JOIN accounts AS a ON a.id = e.id
WHERE e.pool = :pool AND e.free_at <= :now AND COALESCE(a.worker, '') IN ('', :worker)
ORDER BY e.used_at, e.id LIMIT :limit;

-- any_free_account: whether the worker may use any account of the group now
SELECT 1 FROM exits AS e INDEXED BY exits_free
LEFT JOIN accounts AS a ON a.id = e.id
WHERE e.pool = :pool AND e.free_at <= :now AND COALESCE(a.worker, '') IN ('', :worker) LIMIT 1;

-- account_outlook: counts of a group's accounts: listed, out, banned; of the others, those that
-- some worker may use now, of these the ones that this worker uses already, and those that may be
-- used once a lease ends. Also when the next one becomes usable
SELECT COUNT(*), TOTAL(is_out), TOTAL(is_out AND is_banned), TOTAL(NOT is_out AND at <= :now),
    TOTAL(NOT is_out AND at <= :now AND worker = :worker), TOTAL(NOT is_out AND at = 9e999),
    MIN(CASE WHEN at > :now AND at < 9e999 THEN at END)
FROM (
    SELECT e.out_until > :now AS is_out, COALESCE(a.is_banned, 0) AS is_banned,
        COALESCE(e.free_at, 9e999) AS at, a.worker
    FROM exits AS e LEFT JOIN accounts AS a ON a.id = e.id
    WHERE e.pool = :pool AND e.is_listed
);

-- renew_lease_of_account: as renew_lease, unless the account of the lease was taken back
UPDATE tasks SET due = ? WHERE crawl_id = ? AND fingerprint = ? AND token = ? AND state = {LEASED}
  AND EXISTS (SELECT 1 FROM passages WHERE task_id = tasks.id AND account <> '');

-- ready_lanes_of_accounts: as ready_lanes, for the lanes of a group whose tasks need one certain
-- account. Lanes whose account is merely in use are left out, and keep their place
SELECT l.ready_at, l.id FROM lanes AS l
LEFT JOIN exits AS e ON e.id = l.pool LEFT JOIN accounts AS a ON a.id = l.pool
WHERE l.crawl_id = :crawl_id AND l.pool >= :group || '#' AND l.pool < :group || '$'
  AND l.ready_at <= :crawl_now AND NOT ({IN_USE})
ORDER BY l.ready_at LIMIT :limit;

-- next_lane_of_accounts: when to look at the next of these lanes
SELECT MIN(CASE WHEN {IN_USE} THEN MAX(l.ready_at, :crawl_now + {BUSY_WAIT_S}) ELSE l.ready_at END)
FROM lanes AS l
LEFT JOIN exits AS e ON e.id = l.pool LEFT JOIN accounts AS a ON a.id = l.pool
WHERE l.crawl_id = :crawl_id AND l.pool >= :group || '#' AND l.pool < :group || '$'
  AND l.ready_at IS NOT NULL;

-- wake_lanes_of_accounts: have those lanes of groups (a JSON array of names) looked at whose tasks
-- need one certain account
UPDATE lanes SET next_at = 0, ready_at = 0
WHERE ready_at > 0 AND EXISTS (
    SELECT 1 FROM json_each(?) AS named
    WHERE lanes.pool >= named.value || '#' AND lanes.pool < named.value || '$'
);
