-- The archive in SQLite. `postgres.sql` holds the same tables.

-- Anything that has a handle.
CREATE TABLE item (
  id       INTEGER PRIMARY KEY,
  handle   TEXT NOT NULL UNIQUE,
  identity BLOB NOT NULL UNIQUE,          -- what the handle is made of, whole
  owner    TEXT NOT NULL,
  project  TEXT NOT NULL,                 -- '' belongs to the user
  sort     TEXT NOT NULL,                 -- original, compaction, memory, ask
  content  INTEGER REFERENCES content,    -- of an original
  tokens   INTEGER,
  bytes    INTEGER NOT NULL,
  at       INTEGER NOT NULL               -- last stored, ms
) STRICT;
CREATE INDEX item_content ON item(content) WHERE content IS NOT NULL;
CREATE INDEX item_age ON item(sort, at);
-- Handles that an item had in another project or on another machine.
CREATE TABLE alias (
  owner  TEXT NOT NULL,
  handle TEXT NOT NULL,
  item   INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
  PRIMARY KEY (owner, handle)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_item ON alias(item);
-- Where a session has it. One content may stand in several.
CREATE TABLE place (
  item    INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
  session TEXT NOT NULL,                  -- '' is of no session
  what    TEXT NOT NULL,                  -- session, message, output, compaction, memory
  call_id TEXT NOT NULL,                  -- '' has none
  tool    TEXT,
  message INTEGER,
  at      INTEGER NOT NULL,
  PRIMARY KEY (item, session, what, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX place_session ON place(session, at);
-- Contents: lists of chunks. Chunks are cut by content and stored once for each owner, so that a session that has grown
-- costs its growth, and compressed together, a pack at a time.
CREATE TABLE content (
  id    INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  sha   BLOB NOT NULL,
  size  INTEGER NOT NULL,
  UNIQUE (owner, sha)
) STRICT;
CREATE TABLE pack (
  id     INTEGER PRIMARY KEY,
  sha    BLOB NOT NULL UNIQUE,
  size   INTEGER NOT NULL,
  packed BLOB NOT NULL
) STRICT;
CREATE TABLE chunk (
  id    INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  sha   BLOB NOT NULL,
  size  INTEGER NOT NULL,
  pack  INTEGER NOT NULL REFERENCES pack,
  start INTEGER NOT NULL,                 -- of its bytes in the unpacked pack
  UNIQUE (owner, sha)
) STRICT;
CREATE INDEX chunk_pack ON chunk(pack);
CREATE TABLE part (
  content INTEGER NOT NULL REFERENCES content ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  chunk   INTEGER NOT NULL REFERENCES chunk,
  PRIMARY KEY (content, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX part_chunk ON part(chunk);
CREATE TABLE compaction (
  item    INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  session TEXT NOT NULL,
  at      INTEGER NOT NULL,
  summary TEXT NOT NULL,
  body    TEXT NOT NULL                   -- the rest, as JSON
) STRICT;
CREATE INDEX compaction_session ON compaction(session, at);
-- The originals that a compaction needs.
CREATE TABLE holds (
  compaction INTEGER NOT NULL REFERENCES compaction ON DELETE CASCADE,
  original   INTEGER NOT NULL REFERENCES item,
  PRIMARY KEY (compaction, original)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_original ON holds(original);
CREATE TABLE memory (
  item       INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  kind       TEXT NOT NULL,
  content    TEXT NOT NULL,
  created    INTEGER NOT NULL,
  pinned     INTEGER NOT NULL,
  tags       TEXT NOT NULL,               -- JSON array
  session    TEXT,
  superseded INTEGER REFERENCES memory    -- the newer one that says the same
) STRICT;
CREATE INDEX memory_superseded ON memory(superseded) WHERE superseded IS NOT NULL;
CREATE TABLE ask (
  item    INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  state   BLOB NOT NULL,                  -- zstd
  size    INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;
CREATE TABLE mark (
  owner   TEXT NOT NULL,
  project TEXT NOT NULL,
  name    TEXT NOT NULL,
  value   TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (owner, project, name)
) STRICT, WITHOUT ROWID;
-- The words of item.id, as `words::indexed` makes them; the text itself is not stored twice.
CREATE VIRTUAL TABLE words USING fts5(
  body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
-- Originals whose words the next search puts into the index: so many came at once that a compaction would have waited.
CREATE TABLE pending (item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE) STRICT;
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
-- Originals and compactions that stay, whatever their age.
CREATE TABLE pinned (item INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE) STRICT;
-- What was done with the archive. It outlives what it names.
CREATE TABLE audit (
  id      INTEGER PRIMARY KEY,
  owner   TEXT NOT NULL,
  at      INTEGER NOT NULL,
  verb    TEXT NOT NULL,                  -- of AuditVerb
  face    TEXT NOT NULL,                  -- of Face
  agent   TEXT,
  project TEXT NOT NULL,
  session TEXT,
  handle  TEXT
) STRICT;
CREATE INDEX audit_owner ON audit(owner, id);
