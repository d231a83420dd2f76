-- Version 3: chains, and the coordinators' notes and leadership.
--
-- tasks.chain  tasks of one chain are handed out one after the other. Tasks held back by an earlier
--              one have state -1; their place is 0 for the target of a redirect, otherwise 1
-- leader       the current leader, its term, and until when it leads: see board.py
-- notes        small documents by topic (the column `shelf`) and name

ALTER TABLE tasks ADD COLUMN chain TEXT;

CREATE INDEX tasks_chained ON tasks (crawl_id, chain, state DESC, place, id)
WHERE chain IS NOT NULL AND state < 3;

CREATE TABLE leader (
    seat INTEGER PRIMARY KEY CHECK (seat = 1),
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    until REAL NOT NULL
);

CREATE TABLE notes (
    shelf TEXT NOT NULL,
    name TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (shelf, name)
) WITHOUT ROWID;
