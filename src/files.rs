//! Files as sources, and atomic writes.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use history::error::{Error, ErrorKind, Result};
use sessions::Source;

/// An open file. Its length is fixed on opening: bytes appended later are ignored.
#[derive(Debug)]
pub struct File {
    name: String,
    file: fs::File,
    len: u64,
}

impl File {
    /// Opens a regular file; directories, pipes and devices are refused, since opening them may block.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |kind, what, error: io::Error| Error::new(kind, what).at_path(path).because(error);
        let found = fs::metadata(path).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                let what = "no such file; `epitome sessions` lists the sessions";
                return Error::new(ErrorKind::Input, what).at_path(path);
            }
            failed(ErrorKind::Input, "opening a session file", error)
        })?;
        if !found.is_file() {
            let what = if found.is_dir() { "a directory" } else { "a pipe, socket or device" };
            let what = format!("expected a session file, found {what}");
            return Err(Error::new(ErrorKind::Input, what).at_path(path));
        }
        let file = open(path).map_err(|it| failed(ErrorKind::Input, "opening a session file", it))?;
        let about = file.metadata().map_err(|it| failed(ErrorKind::Io, "asking for the length", it))?;
        let (name, len) = (path.display().to_string(), about.len());
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
            if error.kind() == io::ErrorKind::UnexpectedEof {
                let what = format!(
                    "expected {} bytes at {at}, found fewer: the file was truncated while it was read; try again",
                    buffer.len()
                );
                return Error::new(ErrorKind::Changed, what).at(&self.name, None);
            }
            Error::new(ErrorKind::Io, "reading").at(&self.name, None).because(error)
        })
    }
}

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &fs::File, at: u64, buffer: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &fs::File, mut at: u64, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                at += read as u64;
                buffer = &mut buffer[read..];
            }
        }
    }
    Ok(())
}

/// Opens a regular file for reading. Anything else is refused without blocking: a plain open of a FIFO waits
/// for a writer.
pub fn open(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a regular file")),
    }
}

/// Reads a source from start to end.
pub struct Reading<'a> {
    source: &'a dyn Source,
    at: u64,
}

impl<'a> Reading<'a> {
    pub fn of(source: &'a dyn Source) -> Self {
        Self { source, at: 0 }
    }
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let many = (self.source.len() - self.at).min(buffer.len() as u64) as usize;
        self.source.read_at(self.at, &mut buffer[..many]).map_err(io::Error::other)?;
        self.at += many as u64;
        Ok(many)
    }
}

/// The last `most` bytes of a regular file.
pub fn tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file, opened by [`open`].
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// The text of a file below `folder`, which must be canonical. `None` if the file is outside it (also through
/// a link), larger than a megabyte, or not text.
pub fn text_below(folder: &Path, path: &str) -> Option<String> {
    const LARGEST: u64 = 1 << 20;
    let path = fs::canonicalize(folder.join(path)).ok()?;
    let found = fs::metadata(&path).ok()?;
    if !path.starts_with(folder) || !found.is_file() || found.len() > LARGEST {
        return None;
    }
    read_to_string(&path).ok()
}

/// A path with symbolic links resolved; unchanged if it does not exist.
pub fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Creates a folder and its parents. `what` begins the error's message: "making a folder for the manual".
pub fn make_folder(folder: &Path, what: &str) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::new(ErrorKind::Io, what).at_path(folder).because(error))
}

/// Writes a file atomically: written beside it, synced, renamed over it. An existing file's permissions are
/// kept; a new one is readable only by its owner. A device or pipe (`/dev/null`) is written to directly.
pub fn install(path: &Path, bytes: &[u8]) -> Result<()> {
    install_from(path, &mut &*bytes).map(drop)
}

/// As [`install`], with bytes from a reader; returns their number.
pub fn install_from(path: &Path, content: &mut dyn Read) -> Result<u64> {
    if fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        let written =
            fs::OpenOptions::new().write(true).open(path).and_then(|mut it| io::copy(content, &mut it));
        return written.map_err(|error| match error.downcast::<Error>() {
            Ok(unread) => unread,
            Err(error) => {
                Error::new(ErrorKind::Io, "writing into a device or pipe").at_path(path).because(error)
            }
        });
    }
    let (temporary, len) = write_temporary(path, content, path)?;
    rename_over(&temporary, path)?;
    Ok(len)
}

/// Creates a file atomically, with the permissions of `like`. An existing file with the same bytes is left as
/// it is.
///
/// # Errors
/// [`ErrorKind::Refused`] if a different file exists.
pub fn create(path: &Path, bytes: &[u8], like: &Path) -> Result<()> {
    create_from(path, &mut &*bytes, like).map(drop)
}

/// As [`create`], with bytes from a reader; returns their number.
pub fn create_from(path: &Path, content: &mut dyn Read, like: &Path) -> Result<u64> {
    let (temporary, len) = write_temporary(path, content, like)?;
    // Unlike a rename, a hard link never replaces a file that was created meanwhile.
    let placed = match fs::hard_link(&temporary, path) {
        Ok(()) => sync_folder(path),
        Err(_) if fs::symlink_metadata(path).is_ok() => {
            match open(path).map(|mut it| has_other_content(&temporary, &mut it)) {
                Ok(Ok(false)) => Ok(()),
                _ => {
                    let what = "expected no file of that name, found another one; nothing was written";
                    Err(Error::new(ErrorKind::Refused, what).at_path(path))
                }
            }
        }
        // The file system may not support hard links.
        Err(_) => return rename_over(&temporary, path).map(|()| len),
    };
    let _ = fs::remove_file(&temporary);
    placed.map(|()| len)
}

/// Whether a file exists that does not contain exactly these bytes.
pub fn has_other_content(path: &Path, content: &mut dyn Read) -> Result<bool> {
    let mut there = match open(path) {
        Ok(it) => it,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(_) => return Ok(true),
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let unread = |error: io::Error| match error.downcast::<Error>() {
            Ok(ours) => ours,
            Err(error) => Error::new(ErrorKind::Io, "comparing files").at_path(path).because(error),
        };
        (&mut *content).take(1 << 16).read_to_end(&mut left).map_err(unread)?;
        (&mut there).take(1 << 16).read_to_end(&mut right).map_err(unread)?;
        if left != right {
            return Ok(true);
        }
        if left.is_empty() {
            return Ok(false);
        }
    }
}

/// Replaces a file of `len` bytes to which its agent may be appending: bytes appended during the replacement
/// are copied to the new file.
///
/// # Errors
/// [`ErrorKind::Changed`] if the file has another length; it is not changed then. Errors of the reader.
pub fn replace(path: &Path, len: u64, content: &mut dyn Read) -> Result<()> {
    let fail = |what: &str, error: io::Error| Error::new(ErrorKind::Io, what).at_path(path).because(error);
    let old =
        fs::File::open(path).map_err(|it| fail("opening a file to replace it; nothing was changed", it))?;
    let now = || old.metadata().map(|it| it.len()).map_err(|it| fail("asking for the length", it));
    let changed = || {
        let what = "it was changed in the meantime; nothing was replaced; try again";
        Error::new(ErrorKind::Changed, what).at_path(path)
    };
    if now()? != len {
        return Err(changed());
    }
    let (temporary, _) = write_temporary(path, content, path)?;
    if now()? != len {
        let _ = fs::remove_file(&temporary);
        return Err(changed());
    }
    rename_over(&temporary, path)?;
    let grown = now()?;
    if grown > len {
        let mut rest = vec![0; usize::try_from(grown - len).unwrap_or(0)];
        read_exact_at(&old, len, &mut rest).map_err(|it| fail("reading what was appended meanwhile", it))?;
        let add = || fs::OpenOptions::new().append(true).open(path)?.write_all(&rest);
        add().map_err(|it| fail("appending what was appended meanwhile", it))?;
    }
    Ok(())
}

/// The smallest edit that turns `old`, which starts at offset `at`, into `new`: its offset and bytes; `None`
/// if no byte of `new` differs.
pub fn differing(at: u64, old: &[u8], new: &[u8]) -> Option<(u64, Vec<u8>)> {
    let from = (0..new.len()).find(|it| old.get(*it) != new.get(*it))?;
    let to = (0..new.len()).rfind(|it| old.get(*it) != new.get(*it))?;
    Some((at + from as u64, new.get(from..=to)?.to_vec()))
}

/// Overwrites ranges in place: the file keeps its length and its inode, so a process that has it open or
/// appends to it loses nothing.
pub fn overwrite(path: &Path, edits: &[(u64, Vec<u8>)]) -> Result<()> {
    let write = || {
        let file = fs::OpenOptions::new().write(true).open(path)?;
        for (at, bytes) in edits {
            write_all_at(&file, *at, bytes)?;
        }
        file.sync_all()
    };
    write().map_err(|error| Error::new(ErrorKind::Io, "writing into a file").at_path(path).because(error))
}

/// Writes and syncs a temporary file beside `path`, with the permissions of `like` if that exists; returns
/// its path and size.
fn write_temporary(path: &Path, content: &mut dyn Read, like: &Path) -> Result<(PathBuf, u64)> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    // Other threads, or an earlier process that was killed, may use or have left such names.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let next = || {
        let number = NUMBER.fetch_add(1, Relaxed);
        folder.join(format!(".{name}.{}.{number}.tmp", std::process::id()))
    };
    let temporary =
        std::iter::repeat_with(next).find(|it| it.symlink_metadata().is_err()).unwrap_or_default();
    let mut write = || -> io::Result<u64> {
        let mut file = only_for_owner(fs::OpenOptions::new().read(true).write(true).create_new(true))
            .open(&temporary)?;
        let len = io::copy(content, &mut file)?;
        if let Ok(old) = fs::metadata(like) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        Ok(len)
    };
    match write() {
        Ok(len) => Ok((temporary, len)),
        Err(error) => {
            // The temporary file is useless; failing to remove it changes nothing.
            let _ = fs::remove_file(&temporary);
            let error = match error.downcast::<Error>() {
                Ok(unread) => return Err(unread),
                Err(error) => error,
            };
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
            let what = match folder {
                Some(folder) => format!("folder {} does not exist; nothing was written", folder.display()),
                None => "writing a file; nothing was replaced".to_owned(),
            };
            Err(Error::new(ErrorKind::Io, what).at_path(path).because(error))
        }
    }
}

/// Renames over `path` and syncs the folder.
fn rename_over(temporary: &Path, path: &Path) -> Result<()> {
    if let Err(error) = fs::rename(temporary, path) {
        let _ = fs::remove_file(temporary);
        let what = "putting a file in place; nothing was replaced";
        return Err(Error::new(ErrorKind::Io, what).at_path(path).because(error));
    }
    sync_folder(path)
}

fn sync_folder(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Ok(folder) = fs::File::open(folder) {
            folder.sync_all().map_err(|error| {
                Error::new(ErrorKind::Io, "syncing its folder").at_path(path).because(error)
            })?;
        }
    }
    Ok(())
}

#[cfg(unix)]
pub(crate) fn write_all_at(file: &fs::File, at: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(windows)]
pub(crate) fn write_all_at(file: &fs::File, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        at += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// Creates a file that only its owner may read.
pub(crate) fn new_file(path: &Path) -> io::Result<fs::File> {
    only_for_owner(fs::OpenOptions::new().read(true).write(true).create(true).truncate(true)).open(path)
}

/// Readable and writable by the owner alone.
fn only_for_owner(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    #[test]
    fn a_pipe_is_written_into_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        install(&pipe, b"the summary").unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), "the summary");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
