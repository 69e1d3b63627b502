//! What the baselines keep on the corpus: the yardstick must tell them apart.

#[path = "score/corpus.rs"]
mod corpus;

use epitome::history::Message;
use epitome::score::baselines::Baseline;
use epitome::score::{self, Class};

fn count(message: &Message) -> u64 {
    use epitome::history::Part;
    let chars: u64 = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => it.weight().utf16,
            Part::Reasoning(it) => it.text.weight().utf16,
            Part::Call(it) => it.input.weight().utf16 + it.name.len() as u64,
            Part::Output(it) => it.text.weight().utf16,
            Part::Media(_) => 6_000,
            Part::Opaque(it) => it.raw.weight().utf16,
        })
        .sum();
    chars.div_ceil(4) + 4
}

#[test]
fn dump() {
    let Some(folder) = corpus::folder("dump") else { return };
    #[allow(clippy::disallowed_methods)]
    let Ok(wanted) = std::env::var("DUMP") else { return };
    for name in corpus::names(&folder).iter().filter(|it| it.contains(&wanted)) {
        let Some(history) = corpus::read(&folder, name) else {
            println!("## {name}: unreadable");
            continue;
        };
        println!("## {name}: {} messages", history.messages().len());
        let started = std::time::Instant::now();
        let probes = score::probes(&history);
        println!("{:?}", started.elapsed());
        for probe in probes {
            println!("{:?} {:?} {}", probe.class, probe.messages.last().unwrap(), probe.text());
        }
    }
}

#[test]
fn baselines_on_the_corpus() {
    let Some(folder) = corpus::folder("baselines_on_the_corpus") else { return };
    for share in [10, 20] {
        for baseline in Baseline::ALL {
            let mut all = Vec::new();
            let mut classes = std::collections::BTreeMap::<Class, (usize, usize)>::new();
            let (mut contradictions, mut unsupported) = (0, 0);
            let started = std::time::Instant::now();
            for name in corpus::names(&folder) {
                let Some(history) = corpus::read(&folder, &name) else { continue };
                let total: u64 = history.messages().iter().map(count).sum();
                if total < 6_000 {
                    continue;
                }
                let compacted = baseline.compact(&history, total * share / 100, &count);
                let score = score::score(&history, &compacted, &|_| false, &count);
                assert!(score.tokens.after <= total * share / 100, "{name} {}", baseline.name());
                contradictions += score.contradictions.len();
                unsupported += score.unsupported.len();
                for it in &score.contradictions {
                    println!("  ! {name} {:?} expected {} | {}", it.class, it.expected, it.line);
                }
                for it in &score.unsupported {
                    println!("  ? {name} {:?} {} | {}", it.claim, it.text, it.line);
                }
                for (class, tally) in &score.classes {
                    let entry = classes.entry(*class).or_default();
                    entry.0 += tally.kept;
                    entry.1 += tally.found;
                }
                all.extend(score.kept);
            }
            all.sort_by(f64::total_cmp);
            let median = all[all.len() / 2];
            println!(
                "{share}% {:10} median {median:.2} p10 {:.2} n {} contradictions {contradictions} unsupported {unsupported} {:?}",
                baseline.name(),
                all[all.len() / 10],
                all.len(),
                started.elapsed()
            );
            for (class, (kept, found)) in classes {
                print!(" {class:?} {kept}/{found}={:.2}", kept as f64 / found as f64);
            }
            println!();
        }
    }
}
