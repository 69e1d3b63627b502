-- What was said in archived sessions, each text once a session, for searching.
CREATE TABLE conversation (
  id      INTEGER PRIMARY KEY,
  owner   TEXT NOT NULL,
  project TEXT NOT NULL,
  session TEXT NOT NULL,
  UNIQUE (owner, project, session)
) STRICT;
CREATE TABLE passage (
  id           INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL REFERENCES conversation,
  item         INTEGER NOT NULL REFERENCES item ON DELETE CASCADE, -- the newest archived session that has it
  message      INTEGER NOT NULL,
  kinds        INTEGER NOT NULL,          -- bits of PassageKind
  at           INTEGER NOT NULL,
  hash         BLOB NOT NULL,             -- XXH3-128 of body
  body         TEXT NOT NULL,             -- without secrets and private passages
  UNIQUE (conversation, hash)
) STRICT;
CREATE INDEX passage_item ON passage(item);
-- Rows are those of passage; `about` holds tokens of owner, project, session, agent and kinds.
CREATE VIRTUAL TABLE passage_words USING fts5(
  body, about, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER passage_deleted AFTER DELETE ON passage BEGIN
  DELETE FROM passage_words WHERE rowid = old.id;
END;
-- Archived sessions whose passages are not in the index yet.
CREATE TABLE unindexed (item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE) STRICT;
CREATE TRIGGER session_archived AFTER INSERT ON place WHEN new.what = 'session' BEGIN
  INSERT OR IGNORE INTO unindexed (item) VALUES (new.item);
END;
INSERT INTO unindexed SELECT DISTINCT item FROM place WHERE what = 'session';
-- Originals and compactions that stay, whatever their age.
CREATE TABLE pinned (item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE) STRICT;
