//! Words, quotes, lists, pipes, redirections and here-documents of a command line.

use std::iter::Peekable;
use std::str::CharIndices;

use super::{Joint, SUBSHELL, Simple};

/// Splits a command line into simple commands. Linear; an unclosed quote ends with the text.
pub(super) fn split(command: &str) -> Vec<Simple> {
    let mut lexer = Lexer {
        command,
        chars: command.char_indices().peekable(),
        commands: vec![Simple::default()],
        word: String::new(),
        in_word: false,
        target: Target::Words,
        heredocs: Vec::new(),
        list: 0,
    };
    while let Some((_, c)) = lexer.chars.next() {
        lexer.take(c);
    }
    lexer.end_word();
    lexer.commands
}

/// The length of the command substitution that `text` begins with, from `(` to `)`. It has its own quotes and
/// here-documents: the message of `git commit -m "$(cat <<'EOF'` may contain any of them.
fn substitution(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut document: Option<&str> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote != Some('\'') => {
                chars.next();
            }
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            '<' if text[at..].starts_with("<<") && !text[at..].starts_with("<<<") => {
                let word = text[at + 2..].trim_start_matches(['-', ' ']);
                let end = word.find(char::is_whitespace).unwrap_or(word.len());
                document = Some(word[..end].trim_matches(['\'', '"', '\\']));
                let behind = text.len() - word.len() + end;
                while chars.offset() < behind && chars.next().is_some() {}
            }
            '\n' => {
                if let Some(delimiter) = document.take() {
                    let body: usize = text[at + 1..]
                        .split_inclusive('\n')
                        .take_while(|it| it.trim() != delimiter)
                        .map(str::len)
                        .sum();
                    while chars.offset() < at + 1 + body && chars.next().is_some() {}
                }
            }
            _ => {}
        }
    }
    text.len()
}

struct Lexer<'a> {
    command: &'a str,
    chars: Peekable<CharIndices<'a>>,
    commands: Vec<Simple>,
    word: String,
    /// Also set by empty quotes, which make an empty word.
    in_word: bool,
    target: Target,
    /// Here-documents announced on this line: the index of the command, and the delimiter.
    heredocs: Vec<(usize, String)>,
    /// Index of the first command of the list: `a && b | c`.
    list: usize,
}

/// What the next word is: an argument, or the target of a redirection.
#[derive(Clone, Copy)]
enum Target {
    Words,
    Writes,
    Appends,
    HereDocument,
    Nowhere,
}

impl Lexer<'_> {
    fn take(&mut self, c: char) {
        match c {
            '@' if !self.in_word && self.here_string() => {}
            '\'' => {
                self.in_word = true;
                self.word.extend(self.chars.by_ref().map(|(_, c)| c).take_while(|&c| c != '\''));
            }
            '"' => self.double_quoted(),
            '\\' => match self.chars.next() {
                Some((_, '\n')) | None => {}
                Some((_, c)) if self.is_separator(c) => {
                    self.push('\\');
                    self.push(c);
                }
                Some((_, c)) => self.push(c),
            },
            '#' if !self.in_word => while self.chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '<' => self.input(),
            '>' => self.output(),
            '&' if self.chars.peek().is_some_and(|(_, c)| *c == '>') => {
                self.end_word();
                self.push('&');
            }
            ';' | '|' | '&' | '(' | ')' | '\n' => self.end_command(c),
            c if c.is_whitespace() => self.end_word(),
            c => self.push(c),
        }
    }

    fn end_command(&mut self, c: char) {
        self.end_word();
        let twice = ['|', '&'].contains(&c) && self.chars.next_if(|(_, next)| *next == c).is_some();
        if c == '\n' {
            self.here_documents();
        }
        if c == '|' && !twice {
            self.chars.next_if(|(_, next)| *next == '&');
        }
        let joint = match c {
            '|' if twice => Joint::Or,
            '|' => Joint::Pipe,
            '&' if twice => Joint::And,
            ';' | '\n' | '&' => Joint::Then,
            _ => Joint::None,
        };
        self.begin_command(joint);
        match c {
            // A command in the background runs in a subshell.
            '&' if !twice && self.list + 1 < self.commands.len() => {
                self.commands.insert(self.list, Simple::of(SUBSHELL[0]));
                self.heredocs.iter_mut().filter(|it| it.0 >= self.list).for_each(|it| it.0 += 1);
                self.mark(SUBSHELL[1]);
            }
            '(' => self.mark(SUBSHELL[0]),
            ')' => return self.mark(SUBSHELL[1]),
            _ => {}
        }
        if matches!(joint, Joint::Then | Joint::None) {
            self.list = self.commands.len() - 1;
        }
    }

    fn begin_command(&mut self, joint: Joint) {
        let nothing = |it: &Simple| it.words.is_empty() && it.writes.is_empty() && it.appends.is_empty();
        match self.commands.last_mut() {
            // A line break or parenthesis after `|` or `;` separates nothing.
            Some(last) if nothing(last) => {
                if !matches!(joint, Joint::Then | Joint::None) {
                    last.joint = joint;
                }
            }
            _ => self.commands.push(Simple { joint, ..Simple::default() }),
        }
    }

    fn mark(&mut self, mark: &str) {
        let last = self.commands.len() - 1;
        let joint = self.commands[last].joint;
        self.commands[last] = Simple::of(mark);
        self.commands.push(Simple { joint, ..Simple::default() });
    }

    /// Whether a backslash before `c` separates the parts of a Windows path: no shell needs one before a letter.
    fn is_separator(&self, c: char) -> bool {
        let on_drive = self.word.get(1..2) == Some(":") && !c.is_whitespace();
        self.in_word && (c.is_alphanumeric() || on_drive)
    }

    fn push(&mut self, c: char) {
        self.in_word = true;
        self.word.push(c);
    }

    fn end_word(&mut self) {
        if !std::mem::take(&mut self.in_word) {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let last = self.commands.len() - 1;
        match std::mem::replace(&mut self.target, Target::Words) {
            Target::Words => self.commands[last].words.push(word),
            Target::Writes => self.commands[last].writes.push(word),
            Target::Appends => self.commands[last].appends.push(word),
            Target::HereDocument => self.heredocs.push((last, word)),
            Target::Nowhere => {}
        }
    }

    /// A here-string of PowerShell, from after its `@`: it ends at a quotation mark at the beginning of a
    /// line.
    fn here_string(&mut self) -> bool {
        let from = self.chars.peek().map_or(self.command.len(), |(at, _)| *at);
        let rest = &self.command[from..];
        let end = match rest.split_at_checked(1) {
            Some(("'", body)) if body.trim_start_matches(['\r', ' ']).starts_with('\n') => rest.find("\n'@"),
            Some(("\"", body)) if body.trim_start_matches(['\r', ' ']).starts_with('\n') => {
                rest.find("\n\"@")
            }
            Some(_) | None => None,
        };
        let Some(end) = end else { return false };
        self.in_word = true;
        self.word.push_str(&rest[1..end]);
        let to = from + end + "\n'@".len();
        while self.chars.next_if(|(at, _)| *at < to).is_some() {}
        true
    }

    fn double_quoted(&mut self) {
        self.in_word = true;
        while let Some((_, c)) = self.chars.next() {
            match c {
                '"' => break,
                '\\' => match self.chars.next() {
                    Some((_, c @ ('"' | '\\' | '$' | '`'))) => self.word.push(c),
                    Some((_, '\n')) | None => {}
                    Some((_, c)) => self.word.extend(['\\', c]),
                },
                '$' if self.chars.peek().is_some_and(|(_, c)| *c == '(') => {
                    let from = self.chars.peek().map_or(0, |(at, _)| *at);
                    let to = from + substitution(&self.command[from..]);
                    self.word.push('$');
                    self.word.push_str(&self.command[from..to]);
                    while self.chars.next_if(|(at, _)| *at < to).is_some() {}
                }
                _ => self.word.push(c),
            }
        }
    }

    fn input(&mut self) {
        self.end_word();
        let mut run = 1;
        while self.chars.next_if(|(_, c)| *c == '<').is_some() {
            run += 1;
        }
        if run == 2 {
            self.chars.next_if(|(_, c)| *c == '-');
        }
        self.chars.next_if(|(_, c)| run == 1 && *c == '&');
        self.target = if run == 2 { Target::HereDocument } else { Target::Nowhere };
    }

    fn output(&mut self) {
        // `2>` and `&>` redirect messages; their target is a log, not a file that the command writes.
        let messages = self.in_word && (self.word == "2" || self.word == "&");
        if self.in_word && (messages || self.word == "1") {
            self.word.clear();
            self.in_word = false;
        }
        self.end_word();
        let append = self.chars.next_if(|(_, c)| *c == '>').is_some();
        let duplicate = self.chars.next_if(|(_, c)| *c == '&').is_some();
        self.target = match (messages || duplicate, append) {
            (true, _) => Target::Nowhere,
            (false, true) => Target::Appends,
            (false, false) => Target::Writes,
        };
    }

    /// Here-documents start on the line after the command that reads them.
    fn here_documents(&mut self) {
        for (command, delimiter) in std::mem::take(&mut self.heredocs) {
            let from = self.chars.peek().map_or(self.command.len(), |(at, _)| *at);
            let rest = &self.command[from..];
            let mut body = 0;
            let mut after = rest.len();
            for line in rest.split_inclusive('\n') {
                if line.trim() == delimiter {
                    after = body + line.len();
                    break;
                }
                body += line.len();
            }
            self.commands[command].here = Some(rest[..body].to_string());
            while self.chars.next_if(|(at, _)| *at < from + after).is_some() {}
        }
    }
}
