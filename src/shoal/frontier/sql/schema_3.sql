-- Version 3: chains, pages that had not changed, and what coordinators share.
--
-- tasks.chain  tasks of one chain are handed out one after the other, in the order of their ids;
--              those that wait for one before them have state -1
-- leaders      who leads, until when, and in which term: see notes.py
-- notes        small documents under names

ALTER TABLE crawls ADD COLUMN unchanged INTEGER NOT NULL DEFAULT 0;

ALTER TABLE tasks ADD COLUMN chain TEXT;

CREATE INDEX tasks_chain ON tasks (crawl_id, chain, state, id) WHERE chain IS NOT NULL;

CREATE TABLE leaders (
    office TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE notes (
    name TEXT PRIMARY KEY,
    text BLOB NOT NULL
) WITHOUT ROWID;
