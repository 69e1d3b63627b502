-- The tables of SQLite's version 4 (see schema.rs), each number 64 bits wide. Packs are objects that `pack` names.
CREATE TABLE content (
  id    BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  owner TEXT NOT NULL,
  sha   BYTEA NOT NULL,
  size  BIGINT NOT NULL,
  UNIQUE (owner, sha)
);
CREATE TABLE pack (
  id     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  sha    BYTEA NOT NULL UNIQUE,
  size   BIGINT NOT NULL,
  stored BIGINT NOT NULL,                -- bytes of the object
  name   TEXT NOT NULL                   -- of the object
);
CREATE TABLE chunk (
  id    BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  owner TEXT NOT NULL,
  sha   BYTEA NOT NULL,
  size  BIGINT NOT NULL,
  pack  BIGINT NOT NULL REFERENCES pack,
  start BIGINT NOT NULL,
  UNIQUE (owner, sha)
);
CREATE INDEX chunk_pack ON chunk(pack);
CREATE TABLE part (
  content BIGINT NOT NULL REFERENCES content ON DELETE CASCADE,
  seq     BIGINT NOT NULL,
  chunk   BIGINT NOT NULL REFERENCES chunk,
  PRIMARY KEY (content, seq)
);
CREATE INDEX part_chunk ON part(chunk);
CREATE TABLE item (
  id       BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  handle   TEXT NOT NULL UNIQUE,
  identity BYTEA NOT NULL UNIQUE,
  owner    TEXT NOT NULL,
  project  TEXT NOT NULL,
  sort     TEXT NOT NULL,
  content  BIGINT REFERENCES content,
  tokens   BIGINT,
  bytes    BIGINT NOT NULL,
  at       BIGINT NOT NULL
);
CREATE INDEX item_owner ON item(owner, sort, at);
CREATE INDEX item_age ON item(sort, at);
CREATE INDEX item_content ON item(content) WHERE content IS NOT NULL;
CREATE TABLE alias (
  owner  TEXT NOT NULL,
  handle TEXT NOT NULL,
  item   BIGINT NOT NULL REFERENCES item ON DELETE CASCADE,
  PRIMARY KEY (owner, handle)
);
CREATE INDEX alias_item ON alias(item);
CREATE TABLE place (
  item    BIGINT NOT NULL REFERENCES item ON DELETE CASCADE,
  session TEXT NOT NULL,
  what    TEXT NOT NULL,
  call_id TEXT NOT NULL,
  tool    TEXT,
  message BIGINT,
  at      BIGINT NOT NULL,
  PRIMARY KEY (item, session, what, call_id)
);
CREATE INDEX place_session ON place(session, at);
CREATE TABLE compaction (
  item    BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  session TEXT NOT NULL,
  at      BIGINT NOT NULL,
  summary TEXT NOT NULL,
  body    TEXT NOT NULL
);
CREATE INDEX compaction_session ON compaction(session, at);
CREATE TABLE holds (
  compaction BIGINT NOT NULL REFERENCES compaction ON DELETE CASCADE,
  original   BIGINT NOT NULL REFERENCES item,
  PRIMARY KEY (compaction, original)
);
CREATE INDEX holds_original ON holds(original);
CREATE TABLE memory (
  item       BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  kind       TEXT NOT NULL,
  content    TEXT NOT NULL,
  created    BIGINT NOT NULL,
  pinned     BIGINT NOT NULL,
  tags       TEXT NOT NULL,
  session    TEXT,
  superseded BIGINT REFERENCES memory
);
CREATE INDEX memory_superseded ON memory(superseded) WHERE superseded IS NOT NULL;
CREATE TABLE ask (
  item    BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE,
  state   BYTEA NOT NULL,
  size    BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE TABLE mark (
  owner   TEXT NOT NULL,
  project TEXT NOT NULL,
  name    TEXT NOT NULL,
  value   TEXT NOT NULL,
  at      BIGINT NOT NULL,
  PRIMARY KEY (owner, project, name)
);
CREATE TABLE count (
  id        BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  content   BYTEA NOT NULL,
  estimator TEXT NOT NULL,
  tokens    BIGINT NOT NULL,
  UNIQUE (content, estimator)
);
-- Several rows for a long text: a tsvector holds 16,383 positions.
CREATE TABLE words (
  item BIGINT NOT NULL REFERENCES item ON DELETE CASCADE,
  body TSVECTOR NOT NULL
);
CREATE INDEX words_item ON words(item);
CREATE INDEX words_body ON words USING gin(body);
CREATE TABLE pending (item BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE);
CREATE TABLE conversation (
  id      BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  owner   TEXT NOT NULL,
  project TEXT NOT NULL,
  session TEXT NOT NULL,
  UNIQUE (owner, project, session)
);
CREATE TABLE passage (
  id           BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  conversation BIGINT NOT NULL REFERENCES conversation,
  item         BIGINT NOT NULL REFERENCES item ON DELETE CASCADE,
  message      BIGINT NOT NULL,
  kinds        BIGINT NOT NULL,
  at           BIGINT NOT NULL,
  hash         BYTEA NOT NULL,
  body         TEXT NOT NULL,
  UNIQUE (conversation, hash)
);
CREATE INDEX passage_item ON passage(item);
-- Holds tokens of owner, project, session, agent and kinds besides the words.
CREATE TABLE passage_words (
  passage BIGINT NOT NULL REFERENCES passage ON DELETE CASCADE,
  body    TSVECTOR NOT NULL
);
CREATE INDEX passage_words_passage ON passage_words(passage);
CREATE INDEX passage_words_body ON passage_words USING gin(body);
CREATE TABLE unindexed (item BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE);
CREATE FUNCTION session_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO epitome.unindexed (item) VALUES (new.item) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER session_archived AFTER INSERT ON place FOR EACH ROW WHEN (new.what = 'session')
  EXECUTE FUNCTION session_archived();
CREATE TABLE pinned (item BIGINT PRIMARY KEY REFERENCES item ON DELETE CASCADE);
