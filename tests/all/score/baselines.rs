//! What the baselines keep on the corpus: the yardstick must tell them apart.

use std::collections::BTreeMap;

use epitome::history::{Message, Part};
use epitome::score::baselines::Baseline;
use epitome::score::{self, Class};

use crate::corpus;

fn count(message: &Message) -> u64 {
    let chars: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => it.size().utf16,
            Part::Reasoning(it) => it.text.size().utf16,
            Part::Call(it) => it.input.size().utf16 + it.name.len() as u64,
            Part::Output(it) => it.text.size().utf16,
            Part::Media(_) => 6_000,
            Part::Opaque(it) => it.raw.size().utf16,
        })
        .sum();
    chars.div_ceil(4) + 4
}

#[test]
fn baselines_on_the_corpus() {
    let Some(folder) = corpus::corpus_for("baselines_on_the_corpus") else { return };
    let sessions: Vec<_> = super::corpus::names(&folder)
        .iter()
        .filter_map(|it| Some(super::corpus::read(&folder, it)?.history))
        .filter(|it| it.messages().iter().map(count).sum::<u64>() >= 6_000)
        .map(|it| (score::probes(&it), it))
        .collect();
    let mut medians = BTreeMap::new();
    for share in [10, 20] {
        for baseline in Baseline::ALL {
            let mut kept = Vec::new();
            let mut classes: BTreeMap<Class, (usize, usize)> = BTreeMap::new();
            let (mut contradictions, mut unsupported) = (0, 0);
            for (probes, history) in &sessions {
                let total: u64 = history.messages().iter().map(count).sum();
                let compacted = baseline.compact(history, total * share / 100, &count);
                let score = score::score_probes(history, probes, &compacted, &|_| false, &count);
                assert!(score.tokens.after <= total * share / 100, "{} is over its budget", baseline.name());
                contradictions += score.contradictions.len();
                unsupported += score.unsupported.len();
                for (class, tally) in &score.classes {
                    let entry = classes.entry(*class).or_default();
                    *entry = (entry.0 + tally.kept, entry.1 + tally.found);
                }
                kept.extend(score.kept);
            }
            kept.sort_by(f64::total_cmp);
            let median = kept[kept.len() / 2];
            eprint!("{share}% {:10} median {median:.2} p10 {:.2}", baseline.name(), kept[kept.len() / 10]);
            eprint!(" contradictions {contradictions} unsupported {unsupported}");
            for (class, (kept, found)) in classes {
                eprint!(" {} {:.2} of {found}", class.letter(), kept as f64 / found as f64);
            }
            eprintln!();
            medians.insert((share, baseline), median);
        }
    }
    let median = |share: u64, it: Baseline| medians[&(share, it)];
    for share in [10, 20] {
        assert_eq!(median(share, Baseline::KeepLast), 0.0);
        assert!(median(share, Baseline::Skeleton) < median(share, Baseline::UserOnly));
        assert!(median(share, Baseline::FileList) < median(share, Baseline::Skeleton));
    }
    assert!(median(10, Baseline::Masking) < median(20, Baseline::Masking));
}
