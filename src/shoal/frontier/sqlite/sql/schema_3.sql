-- Version 3: chains, and what coordinators share.
--
-- tasks.chain  tasks of one chain are handed out one after the other. Those that are held
--              back by one before them have state -1; of these the place is 0 for a redirect's
--              target, else 1
-- leader       who leads, until when, and in which term: see board.py
-- notes        small documents under names, by topic (the column is called shelf)

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
