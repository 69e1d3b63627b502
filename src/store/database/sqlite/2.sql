-- Originals whose words the next search puts into the index: so many came at once that a compaction would have waited.
CREATE TABLE pending (item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE) STRICT;
