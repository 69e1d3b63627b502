//! Exact counts of real sessions.

use epitome::tokens::exact::{self, Encoding};

use crate::corpus;

/// Lines as they are written, with all that JSON makes of a text: every fifth one, so that it does not take minutes.
#[test]
fn counts_of_real_sessions_are_those_of_another_implementation() {
    for path in corpus::of_corpus("exact counts", &corpus::KINDS) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let lines: Vec<&str> = text.lines().step_by(5).collect();
        for (encoding, peer) in
            [(Encoding::O200k, bpe_openai::o200k_base()), (Encoding::Cl100k, bpe_openai::cl100k_base())]
        {
            for (line, found) in lines.iter().zip(exact::counts(encoding, &lines)) {
                let begin: String = line.chars().take(200).collect();
                assert_eq!(found, peer.count(*line) as u64, "{}: {begin}", path.display());
            }
        }
    }
}
