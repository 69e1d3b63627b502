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
