//! Files as sources, and files put in place whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::format::Source;

/// An open file. Its length is fixed when it is opened: what an agent appends meanwhile does not exist for us.
#[derive(Debug)]
pub struct File {
    name: String,
    file: fs::File,
    len: u64,
}

impl File {
    /// Opens a regular file; directories, pipes and devices are refused before they can block.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let found = fs::metadata(path).map_err(|error| {
            let what = if error.kind() == std::io::ErrorKind::NotFound {
                "expected a session file, found nothing; `epitome sessions` lists the sessions"
            } else {
                "opening a session file"
            };
            Error::new(Kind::Input, what).at(&name, None).because(error)
        })?;
        if !found.is_file() {
            let what = if found.is_dir() { "a directory" } else { "a pipe, socket or device" };
            return Err(
                Error::new(Kind::Input, format!("expected a session file, found {what}")).at(&name, None)
            );
        }
        let file = fs::File::open(path).map_err(|error| {
            Error::new(Kind::Input, "opening a session file").at(&name, None).because(error)
        })?;
        let len = file
            .metadata()
            .map_err(|error| Error::new(Kind::Io, "asking for the length").at(&name, None).because(error))?
            .len();
        Ok(Self { name, file, len })
    }
}

impl Source for File {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        read_exact_at(&self.file, at, buffer).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                let what = format!(
                    "expected {} bytes at {at}, found fewer: the file was cut while it was read; try again",
                    buffer.len()
                );
                return Error::new(Kind::Changed, what).at(&self.name, None);
            }
            Error::new(Kind::Io, "reading").at(&self.name, None).because(error)
        })
    }
}

#[cfg(unix)]
fn read_exact_at(file: &fs::File, at: u64, buffer: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &fs::File, mut at: u64, mut buffer: &mut [u8]) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                at += read as u64;
                buffer = &mut buffer[read..];
            }
        }
    }
    Ok(())
}

/// Puts a file in place: written beside it, synced, renamed over it. An existing file's permissions are kept, a new
/// one is the owner's alone.
pub fn install(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |what: &str, error: std::io::Error| {
        Error::new(Kind::Io, format!("{what}; nothing was replaced"))
            .at(path.display().to_string(), None)
            .because(error)
    };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let beside: PathBuf = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let result = (|| {
        let mut file = new_file(&beside)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if let Err(error) = result {
        // Whatever is left of it is of no use; that it could not be removed changes nothing.
        let _ = fs::remove_file(&beside);
        return Err(fail("writing a file", error));
    }
    #[cfg(unix)]
    if let Ok(folder) = fs::File::open(folder) {
        folder.sync_all().map_err(|error| fail("syncing its folder", error))?;
    }
    Ok(())
}

/// Creates a file that only its owner may read.
fn new_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
