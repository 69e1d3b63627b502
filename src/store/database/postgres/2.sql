-- What was done with the archive. It outlives what it names.
CREATE TABLE audit (
  id      BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  owner   TEXT NOT NULL,
  at      BIGINT NOT NULL,
  verb    TEXT NOT NULL,
  face    TEXT NOT NULL,
  agent   TEXT,
  project TEXT NOT NULL,
  session TEXT,
  handle  TEXT
);
CREATE INDEX audit_owner ON audit(owner, id);
