//! What the summary of the `epitome` profile keeps on the sessions of the corpus: what is reached must not be lost
//! again. Prints the whole table.

use std::collections::BTreeMap;

use epitome::config::{Config, Environment, StoreAt};
use epitome::engine::{Ask, Engine};
use epitome::profile::Profile;
use epitome::score::Class;
use epitome::scorecard::{Chain, Link, Row, Trial};

use crate::real;

fn engine() -> Engine {
    let home = std::env::temp_dir().join("epitome-scorecard");
    let variables = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
    let mut config = Config::load(Environment { variables, cwd: home }).unwrap();
    config.store = StoreAt::Nowhere;
    Engine::new(config, 1_700_000_000_000).unwrap()
}

/// Trials at 10 and 20 %, and chains at both, of one session.
type Measured = (Vec<Trial>, Vec<Option<Link>>);

/// Measures some of the sessions.
fn measure(folder: &std::path::Path, names: &[&String]) -> Vec<Measured> {
    let engine = engine();
    let ask = Ask::new(Profile::built_in("epitome").unwrap());
    let mut out = Vec::new();
    for name in names {
        let session = super::corpus::read(folder, name).unwrap();
        let subject = engine.subject(name.as_str(), session, &ask);
        if subject.tokens >= 6_000 {
            let trials = [10, 20].map(|percent| engine.trial(&subject, &ask, percent)).to_vec();
            let chains = [10, 20].map(|percent| engine.chained(&subject, &ask, percent)).to_vec();
            out.push((trials, chains));
        }
    }
    out
}

#[test]
fn what_is_reached_stays_reached() {
    let Some(folder) = real::corpus_for("what_is_reached_stays_reached") else { return };
    let names = super::corpus::names(&folder);
    // Two halves at once, each with small and large sessions.
    let halves = [0, 1].map(|half| names.iter().skip(half).step_by(2).collect::<Vec<_>>());
    let measured: Vec<Measured> = std::thread::scope(|scope| {
        let folder = &folder;
        let threads: Vec<_> =
            halves.iter().map(|names| scope.spawn(move || measure(folder, names))).collect();
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert!(measured.len() > 20, "{} sessions", measured.len());
    for (at, percent) in [10, 20].into_iter().enumerate() {
        let trials: Vec<Trial> = measured.iter().map(|it| it.0[at].clone()).collect();
        let row = Row { way: "epitome".into(), percent, trials };
        let links = measured.iter().filter_map(|it| it.1[at]).collect();
        let chain = Chain { way: "epitome".into(), percent, links };
        print_all(&row, &chain);
        check(&row, &chain);
    }
}

/// Facts that no common word can satisfy, 240 of them in a session: what fits must be spread over all classes.
#[test]
fn planted_facts_starve_no_class() {
    let engine = engine();
    let ask = Ask::new(Profile::built_in("epitome").unwrap());
    let subjects: Vec<_> = (1..=4).map(|seed| engine.planted(seed, &ask)).collect();
    for (percent, least) in [(10, 0.4), (20, 0.85)] {
        let trials = subjects.iter().map(|it| engine.trial(it, &ask, percent)).collect();
        let row = Row { way: "epitome".into(), percent, trials };
        let classes: Vec<String> = Class::ALL
            .iter()
            .filter_map(|it| Some(format!("{} {:.2}", it.letter(), row.class(*it)?)))
            .collect();
        eprintln!("planted at {percent} %: {:.2}; {}", row.kept(0.5).unwrap(), classes.join(" "));
        assert!(row.kept(0.1).unwrap() >= least, "at {percent} %: {:?}", row.kept(0.1));
        assert_eq!((row.over(), row.sum(|it| it.contradictions + it.unsupported)), (0, 0));
    }
}

fn print_all(row: &Row, chain: &Chain) {
    let percent = row.percent;
    for it in &row.trials {
        let lost: Vec<String> = it
            .classes
            .iter()
            .filter(|(_, tally)| tally.kept < tally.found)
            .map(|(class, tally)| format!("{}{}/{}", class.letter(), tally.kept, tally.found))
            .collect();
        eprintln!(
            "{percent:>3}% {:.3} {:>6}→{:<6} c{} u{} {:<60} {} {}",
            it.kept.unwrap_or(f64::NAN),
            it.tokens.0,
            it.tokens.1,
            it.contradictions,
            it.unsupported,
            it.session,
            lost.join(" "),
            it.refused.as_deref().unwrap_or_default()
        );
    }
    let classes: Vec<String> = Class::ALL
        .iter()
        .map(|it| format!("{} {:.3}", it.letter(), row.class(*it).unwrap_or(f64::NAN)))
        .collect();
    eprintln!(
        "{percent}%: {} sessions, {} done; median {:.3}, p10 {:.3}; {}; contradictions {}, unsupported {}, invalid {}, grown {}, over {}; chain {:?} of {}",
        row.trials.len(),
        row.done().count(),
        row.kept(0.5).unwrap(),
        row.kept(0.1).unwrap(),
        classes.join(" "),
        row.sum(|it| it.contradictions),
        row.sum(|it| it.unsupported),
        row.sum(|it| it.invalid),
        row.grown(),
        row.over(),
        chain.medians(),
        chain.links.len(),
    );
}

/// What is reached today, a little below: it may rise, not fall.
fn check(row: &Row, chain: &Chain) {
    use Class::{D, E, F, G, I, L, P, U, X};
    let small = row.percent == 10;
    let at_least = |what: &str, found: Option<f64>, least: f64| {
        assert!(found.unwrap_or(1.0) >= least, "{what} at {} %: {found:?}, expected {least}", row.percent);
    };
    at_least("median", row.kept(0.5), 0.98);
    at_least("10th percentile", row.kept(0.1), if small { 0.79 } else { 0.84 });
    let classes = if small {
        [(U, 0.95), (F, 0.98), (X, 0.95), (E, 0.84), (P, 0.95), (D, 0.95), (I, 0.88), (L, 0.90), (G, 0.95)]
    } else {
        [(U, 0.97), (F, 0.98), (X, 0.95), (E, 0.87), (P, 0.95), (D, 0.95), (I, 0.90), (L, 0.90), (G, 0.95)]
    };
    for (class, least) in classes {
        at_least(class.letter(), row.class(class), least);
    }
    assert_eq!(row.trials.len(), row.done().count(), "sessions of which nothing was made");
    for (what, found, most) in [
        ("contradictions", row.sum(|it| it.contradictions), 1),
        ("unsupported", row.sum(|it| it.unsupported), 0),
        ("invalid", row.sum(|it| it.invalid), 0),
        ("grown", row.grown(), 0),
        ("over budget", row.over(), 0),
    ] {
        assert!(found <= most, "{what} at {} %: {found}", row.percent);
    }
    let left = chain.medians().map(|it| it.left);
    at_least("left after five compactions", left, 0.95);
}
