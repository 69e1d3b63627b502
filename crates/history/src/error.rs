//! The error type of all crates: a kind (for programs), and a sentence (for people) that says what was being
//! done, what was expected, what was found, where, and what to do.

use std::fmt;
use std::path::Path;

use crate::named;

/// Result of anything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

named! {
    /// What a caller may want to tell apart. Everything finer is in the sentence.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ErrorKind {
        /// The arguments contradict themselves or name something that does not exist. Exit code 2.
        Arguments = "arguments",
        /// The input is not of the given format. Exit code 2.
        Input = "input",
        /// A file changed while it was read or before it was replaced; trying again may work.
        Changed = "changed",
        /// Several things could be meant, and nothing was done.
        Ambiguous = "ambiguous",
        /// The agent is running in this session.
        Live = "live",
        /// Someone else holds a lock.
        Locked = "locked",
        /// What was made was checked and not accepted; nothing was replaced.
        Rejected = "rejected",
        /// Not allowed here (policy, scope, another owner).
        Refused = "refused",
        /// The archive or memory could not do it.
        Store = "store",
        /// A model's provider could not or would not.
        Provider = "provider",
        /// The operating system reported an error.
        Io = "io",
        /// A bug in Epitome; please report it.
        Bug = "bug",
    }
}

/// What the caller can do about an error. Each face has its own words for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Write the result somewhere else.
    WriteCopy,
    /// Write the archived original somewhere else.
    RestoreCopy,
    /// Write messages of an API: the session's own format is only read.
    WriteMessages,
    /// Name the format of the input.
    NameFormat,
    /// Give the size of the model's window.
    GiveWindow,
    /// Give the size of the next prompt, without which it is not checked.
    GiveNext,
    /// Leave an output as it is.
    SkipOutput,
    /// Look in all projects.
    AllScopes,
    /// Allow the smallest budget that keeps enough.
    RaiseBudget { tokens: u64 },
}

/// The words of a face for a hint, to end a sentence; empty if the face has no such thing.
pub type HintWords = fn(Hint) -> String;

impl Hint {
    /// `text`, followed by the hint in these words.
    pub fn after(self, text: &str, words: HintWords) -> String {
        let mut out = text.to_owned();
        self.push(&mut out, "; ", words);
        out
    }

    fn push(self, out: &mut String, joint: &str, words: HintWords) {
        let hint = words(self);
        if !hint.is_empty() {
            out.push_str(joint);
            out.push_str(&hint);
        }
    }
}

/// Where in the input something was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPlace {
    /// A path or its equivalent (`-`, `messages`).
    pub file: String,
    /// 1-based line, if the input has lines.
    pub line: Option<u64>,
}

/// An error. Small to move, cheap to make.
#[derive(Debug)]
pub struct Error(Box<Repr>);

#[derive(Debug)]
struct Repr {
    kind: ErrorKind,
    detail: String,
    place: Option<ErrorPlace>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    argument: Option<String>,
    candidates: Vec<String>,
    /// With the text that joins it to the sentence.
    hint: Option<(&'static str, Hint)>,
}

impl Error {
    /// `detail` reads: while doing what, expected what, found what; what to do. No full stop at its end.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self(Box::new(Repr {
            kind,
            detail: detail.into(),
            place: None,
            source: None,
            argument: None,
            candidates: Vec::new(),
            hint: None,
        }))
    }

    /// A name that does not exist. `what` is what it should be the name of, such as "an agent".
    pub fn unknown<N: AsRef<str>>(what: &str, names: impl IntoIterator<Item = N>, found: &str) -> Self {
        let names: Vec<N> = names.into_iter().collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Self::new(ErrorKind::Arguments, format!("expected {what} ({}), found {found:?}", names.join(", ")))
    }

    /// The value of an argument is wrong; the sentence begins with the argument's name.
    pub fn of_argument(name: &str, detail: impl fmt::Display) -> Self {
        let mut error = Self::new(ErrorKind::Arguments, format!("{name}: {detail}"));
        error.0.argument = Some(name.to_owned());
        error
    }

    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: Option<u64>) -> Self {
        self.0.place = Some(ErrorPlace { file: file.into(), line });
        self
    }

    /// [`Self::at`] for a whole file or folder.
    #[must_use]
    pub fn at_path(self, path: &Path) -> Self {
        self.at(path.display().to_string(), None)
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds what the caller can do.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.0.hint = Some(("; ", hint));
        self
    }

    /// Adds what the caller can do as an alternative to the end of the sentence.
    #[must_use]
    pub fn or_hint(mut self, hint: Hint) -> Self {
        self.0.hint = Some((", or ", hint));
        self
    }

    /// Adds the ids of all candidates.
    #[must_use]
    pub fn candidates(mut self, ids: Vec<String>) -> Self {
        self.0.candidates = ids;
        self
    }

    /// The argument that is wrong, if known.
    pub fn argument(&self) -> Option<&str> {
        self.0.argument.as_deref()
    }

    /// The id of the first candidate.
    pub fn first_candidate(&self) -> Option<&str> {
        self.0.candidates.first().map(String::as_str)
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence without its place and cause.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Where it happened, if anywhere.
    pub fn place(&self) -> Option<&ErrorPlace> {
        self.0.place.as_ref()
    }

    /// The process exit code: 2 for wrong arguments or unreadable input, else 1.
    pub fn exit_code(&self) -> u8 {
        match self.0.kind {
            ErrorKind::Arguments | ErrorKind::Input => 2,
            _ => 1,
        }
    }

    /// The name used as `reason_code` in JSON.
    pub fn code(&self) -> &'static str {
        self.0.kind.name()
    }

    /// The whole message on one line: place, sentence, causes.
    pub fn full(&self) -> String {
        self.full_in(|_| String::new())
    }

    /// [`Self::full`] with the hint in these words.
    pub fn full_in(&self, words: HintWords) -> String {
        let mut out = self.to_string();
        if let Some((joint, hint)) = self.0.hint {
            hint.push(&mut out, joint, words);
        }
        let mut cause = std::error::Error::source(self);
        while let Some(it) = cause {
            out.push_str(": ");
            out.push_str(&it.to_string());
            cause = it.source();
        }
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.0.place {
            match place.line {
                Some(line) => write!(f, "{}, line {line}: ", place.file)?,
                None => write!(f, "{}: ", place.file)?,
            }
        }
        f.write_str(&self.0.detail)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|it| it as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_stands_between_the_sentence_and_its_cause() {
        let words = |hint| match hint {
            Hint::WriteCopy => "write a copy".to_owned(),
            _ => String::new(),
        };
        let error = |hint| Error::new(ErrorKind::Io, "it failed").at("f", None).hint(hint).because("full");
        assert_eq!(error(Hint::WriteCopy).full_in(words), "f: it failed; write a copy: full");
        assert_eq!(error(Hint::GiveNext).full_in(words), "f: it failed: full");
        let error = Error::new(ErrorKind::Io, "try again").or_hint(Hint::WriteCopy);
        assert_eq!(
            (error.full_in(words), error.full()),
            ("try again, or write a copy".into(), "try again".into())
        );
    }
}
