-- Version 8: accounts, see core/identities.py. As exits they are in `exits`, their groups in `pools`.
--
-- accounts          `worker` is who uses it, empty while nobody does. All of it but the cookies is in
--                   `body`
-- exits.used_at     of an account: its place among those that may be used, see identity_policy.rank_at
-- passages.account  the account that was lent; `exit` is then the one that it goes by
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
