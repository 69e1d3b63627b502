//! What the sessions of the corpus would have cost had they been compacted at other moments. Prints the tables of
//! docs/cost.md; asserts only that the model of the bill comes near the reported one.
//!
//! `just cost`

use epitome::cost::policy::{Policy, PolicyRun, Remainder, run};
use epitome::cost::{Bill, Prices};
use epitome::files::File;
use epitome::sessions;
use epitome::sessions::requests::{Requests, requests};
use epitome::tokens::{TokenCounter, Tokenizer, at_least, window};

use crate::corpus;

const POLICIES: [(&str, Policy); 5] = [
    ("the agent's own", Policy::Own),
    ("never", Policy::Never),
    ("at 80 %", Policy::AtShare(0.8)),
    ("at expiry from 50 %, else at 80 %", Policy::AtExpiry(0.5)),
    ("at expiry from 25 %, else at 80 %", Policy::AtExpiry(0.25)),
];

/// One session under each policy.
struct Session {
    agent: &'static str,
    reported: f64,
    priced: bool,
    fits: bool,
    runs: Vec<PolicyRun>,
    requests: usize,
    /// Requests after a cache had expired, and dollars that all of these cost.
    cold: (usize, f64),
}

#[test]
#[ignore = "prints tables over the corpus"]
fn counterfactual_bills() {
    let Some(corpus) = corpus::corpus_for("counterfactual_bills") else { return };
    let mut sessions = Vec::new();
    for agent in ["claude-code", "codex", "gemini", "opencode", "pi"] {
        let mut paths: Vec<_> =
            std::fs::read_dir(corpus.join(agent)).unwrap().map(|it| it.unwrap().path()).collect();
        paths.sort();
        sessions.extend(paths.iter().filter_map(|path| session(agent, path)));
    }
    println!(
        "| agent | policy | sessions | dollars | against own | cheaper | more expensive | most saved | most lost | tokens in | compactions | do not fit |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let agents = ["claude-code", "codex", "opencode", "pi", "gemini", "all"];
    for agent in agents {
        let of: Vec<&Session> =
            sessions.iter().filter(|it| it.priced && (agent == "all" || it.agent == agent)).collect();
        for (number, (name, _)) in POLICIES.iter().enumerate().filter(|_| !of.is_empty()) {
            // A session that does not fit the window without compaction is no alternative.
            let fit: Vec<&&Session> = of.iter().filter(|it| number != 1 || it.fits).collect();
            let dollars = |it: &Session| it.runs[number].amounts.dollars();
            let saved = |it: &Session| it.runs[0].amounts.dollars() - dollars(it);
            let all: f64 = fit.iter().map(|it| dollars(it)).sum();
            let own: f64 = fit.iter().map(|it| it.runs[0].amounts.dollars()).sum();
            let sent: u64 = fit.iter().map(|it| it.runs[number].amounts.tokens()).sum();
            let most = fit.iter().map(|it| saved(it)).fold(0.0, f64::max);
            let least = fit.iter().map(|it| saved(it)).fold(0.0, f64::min);
            println!(
                "| {agent} | {name} | {} | {all:.2} | {:+.1} % | {} | {} | {most:.2} | {:.2} | {:.1}M | {} | {} |",
                fit.len(),
                (all - own) * 100.0 / own,
                fit.iter().filter(|it| saved(it) > 0.005).count(),
                fit.iter().filter(|it| saved(it) < -0.005).count(),
                least.abs(),
                sent as f64 / 1e6,
                fit.iter().map(|it| it.runs[number].compactions).sum::<usize>(),
                of.len() - fit.len(),
            );
        }
    }
    let priced: Vec<&Session> = sessions.iter().filter(|it| it.priced).collect();
    println!(
        "\n| agent | sessions | with prices | requests | reported dollars | modeled | cold requests | their share of the spend |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for agent in agents {
        let is = |it: &&&Session| agent == "all" || it.agent == agent;
        let of: Vec<&&Session> = priced.iter().filter(is).collect();
        let reported: f64 = of.iter().map(|it| it.reported).sum();
        let modelled: f64 = of.iter().map(|it| it.runs[0].amounts.dollars()).sum();
        let requests: usize = of.iter().map(|it| it.requests).sum();
        let cold: usize = of.iter().map(|it| it.cold.0).sum();
        let spent: f64 = of.iter().map(|it| it.cold.1).sum();
        println!(
            "| {agent} | {} | {} | {requests} | {reported:.2} | {modelled:.2} | {cold} ({:.1} %) | {:.1} % |",
            sessions.iter().filter(|it| agent == "all" || it.agent == agent).count(),
            of.len(),
            cold as f64 * 100.0 / requests.max(1) as f64,
            spent * 100.0 / reported.max(1e-9),
        );
        // It knows of no cache that is lost for no reason of time, so that it comes out below.
        let share = modelled / reported.max(1e-9);
        assert!(of.len() < 20 || (0.85..=1.02).contains(&share), "{agent}: {share}");
    }
}

fn session(agent: &'static str, path: &std::path::Path) -> Option<Session> {
    let source = File::open(path).ok()?;
    let session = sessions::read(&source, None).ok()?;
    let found = requests(&source, &session).ok()?;
    if found.all.len() < 3 {
        return None;
    }
    let prices = Prices::default();
    let bill = Bill::of(&found, &prices);
    let overhead = TokenCounter::new(&session.history, Tokenizer::Auto, None).overhead();
    let kept = Remainder { overhead, share: 0.15, minimum: 3_000, maximum: 32_000 };
    let largest = found.all.iter().map(|it| it.usage.sent()).max()?;
    let model = found.all.iter().rev().find_map(|it| it.model.as_deref())?;
    let known = session.history.meta.window.or(window(model).map(|it| it.context));
    let window = known.map(|it| if largest > it { at_least(largest) } else { it });
    let runs: Vec<PolicyRun> =
        POLICIES.iter().map(|it| run(&found.all, it.1, window, &kept, &prices)).collect();
    Some(Session {
        agent,
        reported: bill.total.dollars(),
        priced: bill.total.unpriced == 0,
        fits: runs[1].too_large == 0,
        runs,
        requests: bill.total.requests,
        cold: cold(&found, &prices),
    })
}

/// Requests that came after their cache had expired, and what they cost.
fn cold(requests: &Requests, prices: &Prices) -> (usize, f64) {
    let mut replay = epitome::cost::replay::Replay::default();
    let mut out = (0, 0.0);
    for request in &requests.all {
        let cache = request.model.as_deref().and_then(|it| replay.cache(it, request.side));
        let price = request.model.as_deref().and_then(|it| prices.of(it).ok());
        if let (Some((rule, cached)), Some(price)) = (cache, price)
            && cached.tokens > 0
            && !cached.is_warm(rule, request.sent_at)
        {
            out = (out.0 + 1, out.1 + price.of(&request.usage).unwrap_or(0.0));
        }
        replay.learn(request);
    }
    out
}
