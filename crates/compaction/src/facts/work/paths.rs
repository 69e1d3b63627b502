//! Paths, relative to the working directory where they are below it.

use history::History;

/// Maximum bytes of a path, and of the directory that paths are relative to.
pub(in crate::facts) const MAX_PATH_BYTES: usize = 1_000;

/// The session's working directory, if stated.
pub(in crate::facts) fn directory(history: &History) -> Option<String> {
    if let Some(cwd) = &history.meta.cwd {
        return Some(cwd.to_string()).filter(|it| is_absolute(it) && it.len() <= MAX_PATH_BYTES);
    }
    // Codex and others state it in the environment context.
    history.messages().iter().take(8).find_map(|message| {
        message.texts().find_map(|it| {
            let rest = it.as_str().split_once("<cwd>")?.1;
            let cwd = rest.split_once("</cwd>")?.0.trim();
            (cwd.len() <= MAX_PATH_BYTES).then(|| cwd.to_string())
        })
    })
}

/// A path without `./` and `..`, relative to the working directory `base` if below it. `dir`: what `written`
/// is relative to, if not `base`.
pub(in crate::facts) fn path(written: &str, dir: Option<&str>, base: Option<&str>) -> String {
    let base = base.map(|it| it.replace('\\', "/"));
    let base = base.as_deref();
    let drive = base.and_then(drive);
    let dir = dir.map(|it| on_drive(it, drive));
    let mut whole = on_drive(written.trim().trim_matches('"'), drive);
    if !is_absolute(&whole) {
        let within = match (dir, base) {
            (Some(dir), Some(base)) if !is_absolute(&dir) => {
                Some(format!("{}/{dir}", base.trim_end_matches('/')))
            }
            (Some(dir), _) => Some(dir),
            (None, base) => base.map(Into::into),
        };
        if let Some(within) = within {
            whole = format!("{}/{whole}", within.trim_end_matches('/'));
        }
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|it| !it.is_empty() && *it != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let whole = parts.join("/");
    match base.and_then(|base| whole.strip_prefix(base.trim_end_matches('/'))) {
        Some(rest) if rest.starts_with('/') && rest.len() > 1 => rest[1..].to_string(),
        _ => whole,
    }
}

/// A printed path, relative to the working directory. A path outside of it is used only if it was printed as
/// an absolute one, since the command may have run elsewhere.
pub(in crate::facts) fn printed(written: &str, dir: Option<&str>, base: Option<&str>) -> Option<String> {
    Some(path(written, dir, base)).filter(|it| !it.starts_with('/') || it == written)
}

/// Whether both directories, as commands name them, are known and differ.
pub(in crate::facts) fn is_elsewhere(one: Option<&str>, other: Option<&str>, base: Option<&str>) -> bool {
    one.zip(other).is_some_and(|(one, other)| path(one, None, base) != path(other, None, base))
}

/// The drive letter of a Windows path.
fn drive(path: &str) -> Option<char> {
    let letter = path.strip_suffix(':').or_else(|| path.split_once(":/").map(|it| it.0))?;
    letter.parse().ok().filter(char::is_ascii_alphabetic)
}

/// A path with `/` for `\`. If the working directory is on a Windows drive, `drive`, Git Bash's `/d/x` and
/// `d:/x` become `D:/x`; `drive` keeps its letter case.
fn on_drive(path: &str, drive: Option<char>) -> String {
    let path = path.replace('\\', "/");
    let Some(drive) = drive else { return path };
    let (letter, rest) = match path.strip_prefix('/') {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => path.split_once(":/").unwrap_or_default(),
    };
    match letter.parse::<char>() {
        Ok(letter) if letter.eq_ignore_ascii_case(&drive) => format!("{drive}:/{rest}"),
        Ok(letter) if letter.is_ascii_alphabetic() => format!("{}:/{rest}", letter.to_ascii_uppercase()),
        Ok(_) | Err(_) => path,
    }
}

pub(in crate::facts) fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.get(1..2) == Some(":")
}

/// Whether a path is `place` or in it.
pub(in crate::facts) fn is_at_or_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// A path without its directories.
pub(in crate::facts) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn every_spelling_on_a_windows_drive_is_one_path() {
        let base = Some(r"D:\plant");
        for written in
            [r"D:\plant\src\pump.rs", "d:/plant/src/pump.rs", "/d/plant/src/pump.rs", "src/pump.rs"]
        {
            assert_eq!(path(written, None, base), "src/pump.rs", "{written}");
        }
        assert_eq!(path("pump.rs", Some("/d/plant/src"), base), "src/pump.rs");
        assert_eq!(path("pump.rs", Some("src"), base), "src/pump.rs");
        assert_eq!(path("/c/Users/me/notes.md", None, base), "C:/Users/me/notes.md");
        assert_eq!(path("/tmp/x", None, base), "/tmp/x");
        assert_eq!(path("/d/plant/src/pump.rs", None, Some("/plant")), "/d/plant/src/pump.rs");
    }
}
