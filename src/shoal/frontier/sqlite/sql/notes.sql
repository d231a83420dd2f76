-- The coordinators' shared notes and leadership. Writes run inside BEGIN IMMEDIATE, so a term
-- cannot end between checking it and writing.

-- leader: the last leader, its term, and until when it leads
SELECT holder, term, until FROM leader;

-- lead: set the leader, its term, and until when it leads
INSERT OR REPLACE INTO leader (seat, holder, term, until) VALUES (1, ?, ?, ?);

-- resign: end the term of a leader; its number is not used again
UPDATE leader SET until = 0 WHERE holder = ?;

-- write: write a note; it replaces one of the same topic and name
INSERT OR REPLACE INTO notes (shelf, name, text) VALUES (?, ?, ?);

-- delete: delete a note
DELETE FROM notes WHERE shelf = ? AND name = ?;

-- read: one note, by its topic and name
SELECT text FROM notes WHERE shelf = ? AND name = ?;

-- all: all notes of a topic
SELECT name, text FROM notes WHERE shelf = ? ORDER BY name;
