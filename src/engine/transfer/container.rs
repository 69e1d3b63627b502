//! A session in one file, to be moved to another machine: a zstd stream of one line of JSON (the
//! [`Manifest`]) and then the bodies that it lists. `zstd -dc FILE | head -n 1` shows what is in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::{Digest, Handle, ItemKind, NewCompaction, unwrapped};
use history::error::{Error, ErrorKind, Result};
use sessions::Source;

/// The version that this program writes; newer ones are refused.
pub(crate) const VERSION: u32 = 1;

/// How every zstd stream begins; no session does.
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Maximum bytes of a manifest: some hundred thousand originals.
const LONGEST_MANIFEST: u64 = 64 << 20;

/// Binary logarithm of zstd's window (32 MiB), which is also the memory that unpacking takes.
const WINDOW: u32 = 25;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    #[serde(rename = "epitome-session")]
    pub(crate) version: u32,
    pub(crate) agent: String,
    /// The agent's id for the session.
    pub(crate) session: String,
    /// The name of the session's file.
    pub(crate) file: String,
    pub(crate) directory: Option<String>,
    /// The user's home on the machine of the export.
    pub(crate) home: String,
    /// The first is the session.
    pub(crate) bodies: Vec<ContainerBody>,
    pub(crate) compactions: Vec<ContainerCompaction>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContainerBody {
    #[serde(flatten)]
    pub(crate) belongs: Belongs,
    bytes: u64,
    sha256: String,
}

/// A sub-agent's session that its agent stores like any other session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContainerSubAgent {
    /// The agent's id for it.
    pub(crate) session: String,
    pub(crate) file: String,
}

/// What a body is, if it is neither the session itself nor an original.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Belongs {
    /// For a file beside the session's: its path relative to the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<String>,
    /// For a sub-agent's separate session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub_agent: Option<ContainerSubAgent>,
}

/// A compaction of the session or of a sub-agent's, with the originals that it removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContainerCompaction {
    /// Id of the sub-agent's session; `None` for the session itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub_agent: Option<String>,
    pub(crate) names: Names,
    /// Milliseconds since 1970.
    pub(crate) at: i64,
    #[serde(flatten)]
    pub(crate) about: NewCompaction,
    pub(crate) originals: Vec<ContainerOriginal>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContainerOriginal {
    pub(crate) names: Names,
    pub(crate) kind: ItemKind,
    pub(crate) message: Option<u32>,
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) tokens: u64,
    /// Index into the manifest's bodies.
    pub(crate) body: usize,
}

/// The handles by which the session's texts may refer to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) handle: Handle,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<Handle>,
}

/// Opens a body at its beginning; called twice, to hash and to write it.
pub(crate) type Open<'a> = Box<dyn Fn() -> Result<Box<dyn Read + 'a>> + 'a>;

impl ContainerBody {
    /// Measures and hashes what `open` reads.
    pub(crate) fn of(open: &Open<'_>, belongs: Belongs) -> Result<Self> {
        let mut hashed = HashingReader::new(open()?);
        std::io::copy(&mut hashed, &mut std::io::sink()).map_err(unwrapped)?;
        Ok(Self { belongs, bytes: hashed.bytes, sha256: hashed.digest().to_string() })
    }
}

/// Passes bytes on and hashes them.
struct HashingReader<R> {
    inner: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn digest(self) -> Digest {
        Digest(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads the bodies one after the other. Fails if one changed since the manifest was made.
struct Bodies<'a> {
    left: std::vec::IntoIter<(&'a ContainerBody, Open<'a>)>,
    now: Option<(&'a ContainerBody, HashingReader<Box<dyn Read + 'a>>)>,
}

impl Read for Bodies<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if let Some((_, now)) = &mut self.now {
                let read = now.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
            }
            if let Some((body, now)) = self.now.take()
                && (now.bytes != body.bytes || now.digest().to_string() != body.sha256)
            {
                let what = "the session was written to while it was exported; nothing was written; try again";
                return Err(std::io::Error::other(Error::new(ErrorKind::Changed, what)));
            }
            let Some((body, open)) = self.left.next() else { return Ok(0) };
            self.now = Some((body, HashingReader::new(open().map_err(std::io::Error::other)?)));
        }
    }
}

/// Writes a container; returns its size in bytes.
///
/// # Errors
/// [`ErrorKind::Refused`] if the file exists.
pub(crate) fn write<'a>(path: &Path, manifest: &'a Manifest, open: Vec<Open<'a>>) -> Result<u64> {
    let line = format!("{}\n", history::json::compact(manifest));
    let bodies = Bodies { left: manifest.bodies.iter().zip(open).collect::<Vec<_>>().into_iter(), now: None };
    let mut packed = zstd::stream::read::Encoder::new(line.as_bytes().chain(bodies), 3)
        .and_then(|mut it| {
            it.long_distance_matching(true)?;
            it.window_log(WINDOW)?;
            it.include_checksum(true)?;
            Ok(it)
        })
        .map_err(|error| Error::new(ErrorKind::Bug, "compressing: expected to begin").because(error))?;
    crate::files::create_from(path, &mut packed, path)
}

/// Whether a file begins as a container does.
pub(crate) fn is_container(source: &dyn Source) -> bool {
    source.len() >= 4 && source.bytes(0..4).is_ok_and(|it| it == ZSTD)
}

/// A container whose bodies were unpacked into a temporary file and checked against their hashes.
pub(crate) struct Unpacked {
    pub(crate) manifest: Manifest,
    file: fs::File,
    path: PathBuf,
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

pub(crate) struct StoredBody<'a> {
    file: &'a fs::File,
    from: u64,
    len: u64,
}

impl Source for StoredBody<'_> {
    fn name(&self) -> &str {
        "a session in an .epitome file"
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        crate::files::read_exact_at(self.file, self.from + at, buffer)
            .map_err(|error| Error::new(ErrorKind::Io, "reading what was unpacked").because(error))
    }
}

impl Unpacked {
    /// A body by its index in the manifest, which [`unpack`] has checked.
    pub(crate) fn body(&self, number: usize) -> StoredBody<'_> {
        let bodies = &self.manifest.bodies;
        let from = bodies.iter().take(number).map(|it| it.bytes).sum();
        StoredBody { file: &self.file, from, len: bodies.get(number).map_or(0, |it| it.bytes) }
    }
}

/// Unpacks a container into a file in `folder`, and checks all of it.
pub(crate) fn unpack(path: &Path, folder: &Path) -> Result<Unpacked> {
    let broken = |found: &str| {
        let what = format!("expected a session exported by epitome, found {found}; nothing was imported");
        Error::new(ErrorKind::Input, what).at_path(path)
    };
    let damaged = |error: std::io::Error| broken("it cut or damaged").because(error);
    let packed = crate::files::open(path).map_err(damaged)?;
    let mut content = BufReader::new(zstd::stream::read::Decoder::new(packed).map_err(damaged)?);
    let mut line = Vec::new();
    content.by_ref().take(LONGEST_MANIFEST).read_until(b'\n', &mut line).map_err(damaged)?;
    let value: serde_json::Value = serde_json::from_slice(&line).map_err(|_| broken("something else"))?;
    match value["epitome-session"].as_u64() {
        None => return Err(broken("something else")),
        Some(version) if version > u64::from(VERSION) => {
            return Err(broken(&format!(
                "version {version}, which is newer than this program; upgrade epitome"
            )));
        }
        Some(_) => {}
    }
    let manifest: Manifest =
        serde_json::from_value(value).map_err(|error| broken("its list unreadable").because(error))?;
    let originals = manifest.compactions.iter().flat_map(|it| &it.originals);
    if manifest.bodies.is_empty() || originals.clone().any(|it| it.body >= manifest.bodies.len()) {
        return Err(broken("its list incomplete"));
    }
    let place = folder.join(format!("importing-{}.tmp", std::process::id()));
    let io = |error: std::io::Error| {
        Error::new(ErrorKind::Io, "unpacking; nothing was imported").at_path(&place).because(error)
    };
    fs::create_dir_all(folder).map_err(io)?;
    let file = crate::files::new_file(&place).map_err(io)?;
    let out = Unpacked { manifest, file, path: place.clone() };
    let mut writer = &out.file;
    let mut block = vec![0; 1 << 16];
    for (number, body) in out.manifest.bodies.iter().enumerate() {
        let mut hashed = HashingReader::new(content.by_ref().take(body.bytes));
        loop {
            let read = hashed.read(&mut block).map_err(damaged)?;
            if read == 0 {
                break;
            }
            writer.write_all(block.get(..read).unwrap_or_default()).map_err(io)?;
        }
        if hashed.bytes != body.bytes || hashed.digest().to_string() != body.sha256 {
            return Err(broken(&format!("body {number} of {} cut or damaged", out.manifest.bodies.len())));
        }
    }
    // Read to the end of the stream, so that its checksum is verified too.
    match content.read(&mut block) {
        Ok(0) => Ok(out),
        Ok(_) => Err(broken("more than it lists")),
        Err(error) => Err(damaged(error)),
    }
}
