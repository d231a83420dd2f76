-- Version 8: accounts, see core/identities.py. Their state as exits is in `exits`, their groups are
-- in `pools`.
--
-- accounts          `worker` is the worker that uses it, or empty. `body` has everything except the
--                   cookies
-- exits.used_at     for accounts: the rank among the usable ones, see identity_policy.rank_at
-- passages.account  the account that was lent; `exit` is then the exit that it leaves through
-- passages.expired  how often the task was sent back because its session had ended

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    is_banned INTEGER NOT NULL,
    body TEXT NOT NULL,
    jar BLOB NOT NULL DEFAULT x''
);

ALTER TABLE passages ADD COLUMN account TEXT NOT NULL DEFAULT '';

ALTER TABLE passages ADD COLUMN expired INTEGER NOT NULL DEFAULT 0;
