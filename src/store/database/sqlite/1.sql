-- Anything that has a handle.
CREATE TABLE item (
  id       INTEGER PRIMARY KEY,
  handle   TEXT NOT NULL UNIQUE,
  identity BLOB NOT NULL UNIQUE,          -- what the handle is made of, whole
  owner    TEXT NOT NULL,
  project  TEXT NOT NULL,                 -- '' belongs to the user
  sort     TEXT NOT NULL,                 -- original, compaction, memory, ask
  blob     INTEGER REFERENCES blob,       -- of an original
  tokens   INTEGER,
  bytes    INTEGER NOT NULL,
  at       INTEGER NOT NULL               -- last stored, ms
) STRICT;
CREATE INDEX item_blob ON item(blob) WHERE blob IS NOT NULL;
CREATE INDEX item_age ON item(sort, at);
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
-- Contents: a list of compressed chunks, each stored once, so that a session that has grown costs its growth.
CREATE TABLE blob (
  id   INTEGER PRIMARY KEY,
  sha  BLOB NOT NULL UNIQUE,
  size INTEGER NOT NULL
) STRICT;
CREATE TABLE chunk (
  id     INTEGER PRIMARY KEY,
  sha    BLOB NOT NULL UNIQUE,
  size   INTEGER NOT NULL,
  packed BLOB NOT NULL
) STRICT;
CREATE TABLE piece (
  blob  INTEGER NOT NULL REFERENCES blob ON DELETE CASCADE,
  seq   INTEGER NOT NULL,
  chunk INTEGER NOT NULL REFERENCES chunk,
  PRIMARY KEY (blob, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX piece_chunk ON piece(chunk);
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
CREATE TABLE count (
  id        INTEGER PRIMARY KEY,
  content   BLOB NOT NULL,
  estimator TEXT NOT NULL,
  tokens    INTEGER NOT NULL,
  UNIQUE (content, estimator)
) STRICT;
-- The words of item.id, as `words::indexed` makes them; the text itself is not stored twice.
CREATE VIRTUAL TABLE words USING fts5(
  body, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
