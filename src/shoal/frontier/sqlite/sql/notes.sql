-- What coordinators share. Writes run inside BEGIN IMMEDIATE, so a term cannot end between the look
-- at it and the write.

-- leader: who led last, in which term, until when
SELECT holder, term, until FROM leader;

-- lead: from now on it is this one
INSERT OR REPLACE INTO leader (seat, holder, term, until) VALUES (1, ?, ?, ?);

-- resign: the term is over; its number is not used again
UPDATE leader SET until = 0 WHERE holder = ?;

-- write: a note takes the place of the one of that name
INSERT OR REPLACE INTO notes (shelf, name, text) VALUES (?, ?, ?);

-- delete: a note, by its topic and name
DELETE FROM notes WHERE shelf = ? AND name = ?;

-- read: one note
SELECT text FROM notes WHERE shelf = ? AND name = ?;

-- all: the notes on a topic
SELECT name, text FROM notes WHERE shelf = ? ORDER BY name;
