-- Chunks are cut by content and stored once for each owner; new ones are compressed together, a pack at a time. What was
-- a chunk (1 MiB of an original, whoever's) becomes a pack with one chunk: nothing is copied, `doctor --fix` cuts anew.
ALTER TABLE chunk RENAME TO pack;
CREATE TABLE content (
  id    INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  sha   BLOB NOT NULL,
  size  INTEGER NOT NULL,
  UNIQUE (owner, sha)
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
-- Handles that an item had in another project or on another machine.
CREATE TABLE alias (
  owner  TEXT NOT NULL,
  handle TEXT NOT NULL,
  item   INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
  PRIMARY KEY (owner, handle)
) STRICT, WITHOUT ROWID;
CREATE INDEX alias_item ON alias(item);
INSERT INTO content (owner, sha, size)
  SELECT DISTINCT i.owner, b.sha, b.size FROM item i JOIN blob b ON b.id = i.blob;
INSERT INTO chunk (owner, sha, size, pack, start)
  SELECT DISTINCT i.owner, k.sha, k.size, k.id, 0
  FROM item i JOIN piece p ON p.blob = i.blob JOIN pack k ON k.id = p.chunk;
INSERT INTO part (content, seq, chunk)
  SELECT c.id, p.seq, h.id FROM content c JOIN blob b ON b.sha = c.sha JOIN piece p ON p.blob = b.id
  JOIN pack k ON k.id = p.chunk JOIN chunk h ON h.owner = c.owner AND h.sha = k.sha;
ALTER TABLE item ADD COLUMN content INTEGER REFERENCES content;
UPDATE item SET blob = NULL, content =
  (SELECT c.id FROM blob b JOIN content c ON c.sha = b.sha AND c.owner = item.owner WHERE b.id = item.blob)
  WHERE blob IS NOT NULL;
CREATE INDEX item_content ON item(content) WHERE content IS NOT NULL;
DROP INDEX item_blob;
DROP TABLE piece;
ALTER TABLE item DROP COLUMN blob;
DROP TABLE blob;
