//! The extraction against what a person marked in ten sessions of the corpus.
//!
//! `tests/labels/NAME.toml`: `session` is a path in the corpus; `marked` rows are facts that a person found by reading,
//! as class, message, how many of that class are established there; `judged` rows are facts that the extractor found,
//! as class, message, hash of their text, and whether a person agrees. No text of a session is in them.

use std::collections::BTreeMap;
use std::path::Path;

use epitome::score::{self, Probe};
use serde::Deserialize;

use crate::corpus;

#[derive(Deserialize)]
struct Labels {
    session: String,
    marked: Vec<(String, usize, usize)>,
    judged: Vec<(String, usize, String, bool)>,
}

fn hash(probe: &Probe) -> String {
    format!("{:08x}", twox_hash::XxHash3_64::oneshot(probe.text().as_bytes()) as u32)
}

fn labels() -> Vec<Labels> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/labels");
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<_> = entries.filter(|it| it.is_file()).collect();
    files.sort();
    files.iter().map(|it| toml::from_str(&std::fs::read_to_string(it).unwrap()).unwrap()).collect()
}

#[derive(Default)]
struct Row {
    marked: usize,
    found: usize,
    judged: usize,
    real: usize,
    unjudged: usize,
}

#[test]
fn people_agree() {
    let Some(folder) = corpus::corpus_for("people_agree") else { return };
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for label in labels() {
        let history = super::corpus::read(&folder, &label.session).expect(&label.session).history;
        let probes = score::probes(&history);
        for (class, message, count) in &label.marked {
            let here = probes.iter().filter(|it| {
                it.class.letter() == class.as_str()
                    && it.messages.contains(message)
                    && !label.judged.iter().any(|(c, _, h, real)| c == class && *h == hash(it) && !real)
            });
            let found = here.count();
            if found < *count {
                eprintln!("missed: {} {class} {message}: {found} of {count}", label.session);
            }
            let row = rows.entry(class.clone()).or_default();
            row.marked += count;
            row.found += found.min(*count);
        }
        for probe in &probes {
            let row = rows.entry(probe.class.letter().to_owned()).or_default();
            let text = hash(probe);
            match label.judged.iter().find(|it| it.0 == probe.class.letter() && it.2 == text) {
                Some((_, _, _, real)) => {
                    row.judged += 1;
                    row.real += usize::from(*real);
                }
                None => row.unjudged += 1,
            }
        }
    }
    eprintln!("class  marked  found  recall   judged  real  precision  not judged");
    for (class, it) in &rows {
        let recall = it.found as f64 / it.marked.max(1) as f64;
        let precision = it.real as f64 / it.judged.max(1) as f64;
        eprintln!(
            "{class:5} {:7} {:6} {recall:7.2} {:8} {:5} {precision:10.2} {:11}",
            it.marked, it.found, it.judged, it.real, it.unjudged
        );
    }
    for (class, it) in &rows {
        assert!(
            it.marked < 10 || it.found * 10 >= it.marked * 8,
            "{class}: {} of {} found",
            it.found,
            it.marked
        );
        assert!(
            it.judged < 10 || it.real * 10 >= it.judged * 9,
            "{class}: {} of {} real",
            it.real,
            it.judged
        );
    }
}

/// Prints what is to be judged, with text, for whoever labels a session: `LABEL=NAME cargo test --test all labels::
/// print -- --ignored --nocapture`.
#[test]
#[ignore = "for labelling by hand"]
fn print() {
    let Some(folder) = corpus::corpus_for("print") else { return };
    #[allow(clippy::disallowed_methods)]
    let wanted = std::env::var("LABEL").unwrap_or_default();
    for name in
        super::corpus::names(&folder).iter().filter(|it| wanted.split(',').any(|part| it.contains(part)))
    {
        eprintln!("## {name}");
        for probe in super::corpus::read(&folder, name).iter().flat_map(|it| score::probes(&it.history)) {
            eprintln!("{} {} {} {}", probe.class.letter(), probe.message(), hash(&probe), probe.text());
        }
    }
}
