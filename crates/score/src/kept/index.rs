//! The compacted history as lines that can be looked up by their tokens.

use foldhash::{HashMap, HashSet};

use crate::source::rules::of_the_user;
use crate::text::{Shape, clip, content, normal, rows, sentences, tokens};
use history::{Kind, Message, Part, Role};

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Text of a message.
    Text,
    Output,
    /// The arguments of a call.
    Call,
}

/// A line of what replaces the evicted messages.
pub(crate) struct Line {
    pub(crate) text: String,
    /// Index of the message in the compacted history.
    pub(crate) message: usize,
    pub(crate) origin: Origin,
    pub(crate) shape: Shape,
    /// Whether its text is new, not carried over from the source.
    pub(crate) fresh: bool,
    /// Whether it is among the user's rules or words.
    pub(crate) of_user: bool,
    /// The label and the heading above it.
    pub(crate) labels: [Option<usize>; 2],
}

/// Texts as token ids, and for each token id the texts that have it.
#[derive(Default)]
pub(crate) struct InvertedIndex {
    docs: Vec<Vec<u32>>,
    postings: Vec<Vec<u32>>,
}

/// Lines and sentences, searchable by their tokens.
#[derive(Default)]
pub(crate) struct Index {
    pub(crate) lines: Vec<Line>,
    /// For each sentence, its line and its text.
    pub(crate) sentences: Vec<(usize, String)>,
    vocabulary: HashMap<String, u32>,
    by_sentence: InvertedIndex,
    by_line: InvertedIndex,
    /// Indexes of lines by token, and by the last component of paths.
    names: HashMap<String, Vec<u32>>,
    /// The content tokens of all texts, in order.
    stream: Vec<u32>,
    /// Maximum number of places to look at for one fact.
    places: usize,
}

/// Distinct tokens, of which a share must stand close together (within twice their number and a few) and
/// mostly in order: a heap of keywords is no sentence.
struct Needle {
    ids: Vec<u32>,
    /// The position of each known token.
    ranks: HashMap<u32, usize>,
    need: usize,
}

/// Maximum number of places to look at for one fact. A fact that is repeated more often is in the first.
const PLACES: usize = 256;

/// Maximum number of places to look at for all facts together, and the minimum for each. So a history with
/// very many facts does not take more time per fact.
const ALL_PLACES: usize = 1 << 18;
const LEAST_PLACES: usize = 8;

/// Maximum characters of a line; a longer one is cut at the end of a word.
const LONGEST_LINE: usize = 4_000;

impl Index {
    /// Indexes messages. `known`: the texts of the source, which are not fresh. `facts`: number of facts that
    /// will be looked for.
    pub(crate) fn new(messages: &[Message], known: &HashSet<&str>, facts: usize) -> Self {
        let places = (ALL_PLACES / facts.max(1)).clamp(LEAST_PLACES, PLACES);
        let mut index = Self { places, ..Self::default() };
        for (number, message) in messages.iter().enumerate() {
            for part in &message.parts {
                match part {
                    Part::Text(text) => {
                        index.text(number, message, text.as_str(), !known.contains(text.as_str()));
                    }
                    Part::Call(call) => index.plain(number, call.input.as_str(), Origin::Call),
                    Part::Output(output) => index.plain(number, output.text.as_str(), Origin::Output),
                    Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
                }
            }
        }
        index
    }

    fn text(&mut self, number: usize, message: &Message, text: &str, fresh: bool) {
        let said = message.role == Role::User && matches!(message.kind, Kind::Said | Kind::Context) && !fresh;
        let all = rows(text);
        let mut places: Vec<usize> = Vec::with_capacity(all.len());
        for row in &all {
            let of_user = said || of_the_user(&all, row);
            let line = self.lines.len();
            places.push(line);
            for sentence in sentences(&row.text) {
                let ids = self.ids(&content(&sentence.text));
                self.stream.extend(&ids);
                for piece in pieces(&sentence.text) {
                    let ids = self.ids(&content(piece));
                    self.by_sentence.push(ids);
                    self.sentences.push((line, piece.to_string()));
                }
            }
            self.line(Line {
                text: row.text.clone(),
                message: number,
                origin: Origin::Text,
                shape: row.shape,
                fresh,
                of_user,
                labels: row.labels.map(|it| it.and_then(|it| places.get(it).copied())),
            });
        }
    }

    fn plain(&mut self, number: usize, text: &str, origin: Origin) {
        for line in text.lines().filter(|it| !it.trim().is_empty()) {
            self.line(Line {
                text: normal(line),
                message: number,
                origin,
                shape: Shape::Code,
                fresh: false,
                of_user: false,
                labels: [None, None],
            });
        }
    }

    fn line(&mut self, line: Line) {
        let mut rest = line.text.as_str();
        while rest.len() > LONGEST_LINE {
            let piece = clip(rest, LONGEST_LINE);
            self.piece(Line { text: piece.to_owned(), ..line });
            rest = &rest[piece.len()..];
        }
        if rest.len() == line.text.len() {
            self.piece(line);
        } else if !rest.is_empty() {
            self.piece(Line { text: rest.to_owned(), ..line });
        }
    }

    fn piece(&mut self, line: Line) {
        let number = self.lines.len() as u32;
        let all = tokens(&line.text);
        for token in &all {
            for name in [Some(token.as_str()), last_component(token)].into_iter().flatten() {
                let places = self.names.entry(name.to_string()).or_default();
                if places.last() != Some(&number) {
                    places.push(number);
                }
            }
        }
        let ids = self.ids(&all);
        self.by_line.push(ids);
        self.lines.push(line);
    }

    fn ids(&mut self, tokens: &[String]) -> Vec<u32> {
        tokens
            .iter()
            .map(|it| {
                let next = self.vocabulary.len() as u32;
                *self.vocabulary.entry(it.clone()).or_insert(next)
            })
            .collect()
    }

    /// The texts of the labels above a line, nearest first.
    pub(crate) fn labels(&self, line: &Line) -> impl Iterator<Item = &str> {
        line.labels.into_iter().flatten().filter_map(|it| self.lines.get(it)).map(|it| it.text.as_str())
    }

    /// Lines with the rarest token of `text`: candidates for containing `text` verbatim.
    pub(crate) fn around(&self, text: &str) -> Vec<&Line> {
        let rarest = tokens(text)
            .into_iter()
            .map(|it| {
                let key = last_component(&it).map_or(it.as_str(), |it| it).to_string();
                self.names.get(&key).map_or(&[][..], Vec::as_slice)
            })
            .min_by_key(|it| it.len());
        rarest
            .unwrap_or_default()
            .iter()
            .take(self.places)
            .filter_map(|it| self.lines.get(*it as usize))
            .collect()
    }

    fn needle(&self, wanted: &[String], share: f64) -> Needle {
        let mut seen = HashSet::default();
        let unique: Vec<&String> = wanted.iter().filter(|it| seen.insert(it.as_str())).collect();
        let need = ((unique.len() as f64 * share) - 1e-9).ceil().max(1.0) as usize;
        // Tokens unknown here get an id that occurs nowhere.
        let ids: Vec<u32> =
            unique.iter().map(|it| self.vocabulary.get(*it).copied().unwrap_or(u32::MAX)).collect();
        let ranks =
            ids.iter().enumerate().filter(|(_, it)| **it != u32::MAX).map(|(at, it)| (*it, at)).collect();
        Needle { ids, ranks, need }
    }

    /// Sentences that hold `share` of `wanted`, close together and in order.
    pub(crate) fn sentences_with(&self, wanted: &[String], share: f64) -> impl Iterator<Item = usize> {
        self.by_sentence.find(self.needle(wanted, share), self.places)
    }

    /// Lines that hold `share` of `wanted`, close together and in order.
    pub(crate) fn lines_with(&self, wanted: &[String], share: f64) -> impl Iterator<Item = usize> {
        self.by_line.find(self.needle(wanted, share), self.places)
    }

    /// Whether the texts, across line ends, hold `share` of `wanted`, close together and in order.
    pub(crate) fn stretch_with(&self, wanted: &[String], share: f64) -> bool {
        let needle = self.needle(wanted, share);
        holds(&self.stream, &needle)
    }
}

/// A sentence, or overlapping pieces of a very long one: each is read whole for every fact it may hold.
fn pieces(sentence: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = sentence;
    loop {
        let piece = clip(rest, 2_000);
        out.push(piece);
        if piece.len() == rest.len() {
            return out;
        }
        rest = &rest[clip(rest, 1_400).len()..];
    }
}

/// What follows the last `/` or `\` of a path-like token.
fn last_component(token: &str) -> Option<&str> {
    token.rsplit_once(['/', '\\']).map(|it| it.1).filter(|it| !it.is_empty())
}

impl InvertedIndex {
    fn push(&mut self, ids: Vec<u32>) {
        let number = self.docs.len() as u32;
        for &id in &ids {
            let id = id as usize;
            if self.postings.len() <= id {
                self.postings.resize(id + 1, Vec::new());
            }
            if self.postings[id].last() != Some(&number) {
                self.postings[id].push(number);
            }
        }
        self.docs.push(ids);
    }

    /// The texts that hold the needle. Each of them has at least one of its rarest `n - need + 1` tokens.
    fn find(&self, needle: Needle, most: usize) -> impl Iterator<Item = usize> {
        let mut lists: Vec<&[u32]> = needle
            .ids
            .iter()
            .map(|it| self.postings.get(*it as usize).map_or(&[][..], Vec::as_slice))
            .collect();
        lists.sort_by_key(|it| it.len());
        lists.truncate(needle.ids.len().saturating_sub(needle.need) + 1);
        let mut places: Vec<u32> = lists.into_iter().flat_map(|it| it.iter().take(most)).copied().collect();
        places.sort_unstable();
        places.dedup();
        places.truncate(most);
        places.into_iter().map(|it| it as usize).filter(move |it| holds(&self.docs[*it], &needle))
    }
}

fn holds(tokens: &[u32], needle: &Needle) -> bool {
    if needle.ranks.len() < needle.need {
        return false;
    }
    let width = needle.ids.len() * 2 + 8;
    let hits: Vec<(usize, usize)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, it)| needle.ranks.get(it).map(|rank| (at, *rank)))
        .collect();
    if hits.len() < needle.need {
        return false;
    }
    let mut count = vec![0usize; needle.ids.len()];
    let (mut distinct, mut from, mut checks) = (0, 0, 0);
    for to in 0..hits.len() {
        let (at, rank) = hits[to];
        distinct += usize::from(count[rank] == 0);
        count[rank] += 1;
        while at - hits[from].0 >= width {
            count[hits[from].1] -= 1;
            distinct -= usize::from(count[hits[from].1] == 0);
            from += 1;
        }
        if distinct >= needle.need && checks < PLACES {
            checks += 1;
            if in_order(&hits[from..=to], distinct) {
                return true;
            }
        }
    }
    false
}

/// Whether at least 70 % of the distinct tokens are in the order of the needle.
fn in_order(hits: &[(usize, usize)], distinct: usize) -> bool {
    // Longest increasing subsequence of ranks, by the lowest last rank for each length.
    let mut ends: Vec<usize> = Vec::new();
    for &(_, rank) in hits {
        let at = ends.partition_point(|it| *it < rank);
        if at == ends.len() { ends.push(rank) } else { ends[at] = rank }
    }
    ends.len() * 10 >= distinct * 7
}
