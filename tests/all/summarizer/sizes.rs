//! Sessions of any size against a server that enforces its window, with the provider's own words for it.

use std::sync::{Arc, Mutex};

use epitome::history::Role;
use epitome::llm::run::Watch;

use super::faults::{Counted, LIMITS, Wire, dialogue};
use super::server::{self, APIS, Does, overflow, serve, stream};
use super::{Case, ran, said};

/// The server's window in its own tokens, which are not ours.
const WINDOW: u64 = 6_000;

/// Three bytes a token.
fn theirs(body: &serde_json::Value) -> u64 {
    body.to_string().len() as u64 / 3
}

/// A session of about so many of the server's tokens; every message and output has a word of its own.
fn session(tokens: u64) -> (Case, Vec<String>) {
    let mut messages = vec![said(
        Role::User,
        "Fix the parser in src/parse.rs. Never touch the files in vendor/, they are not ours.",
    )];
    let mut marks = vec!["Never touch the files in vendor/".to_owned()];
    let (mut bytes, mut number) = (0, 0);
    while bytes < tokens * 3 {
        number += 1;
        let mark = |what: &str| format!("{what}-{number:05}-mark");
        let texts = [mark("call"), mark("output"), mark("answer"), mark("prompt")];
        let filler = "lorem ipsum dolor sit amet ".repeat(12);
        let input = serde_json::json!({"command": format!("echo {}", texts[0])});
        messages.extend(ran(number, "Bash", input, &format!("{filler}{}", texts[1]), false));
        messages.push(said(Role::Assistant, &format!("{} {filler}", texts[2])));
        if number % 4 == 0 {
            messages.push(said(Role::User, &format!("And now the next one, {}", texts[3])));
            marks.push(texts[3].clone());
        }
        marks.extend(texts.into_iter().take(3));
        bytes += 2 * filler.len() as u64 + 400;
    }
    messages.push(said(Role::User, "Good. Now add a test for the empty file as well."));
    (Case::new(messages), marks)
}

#[tokio::test]
async fn any_size_fits_and_every_part_is_sent() {
    println!("{:<7} {:<17} {:>8} {:>9}  outcome", "window", "provider", "requests", "refused");
    for (times, tokens) in [("0.5x", WINDOW / 2), ("2x", WINDOW * 2), ("20x", WINDOW * 20)] {
        let (case, marks) = session(tokens);
        for api in APIS {
            let good = case.good();
            let accepted = Arc::new(Mutex::new(Vec::<String>::new()));
            let kept = accepted.clone();
            let (address, log) = serve(move |_, request| {
                let sent = theirs(&request.body);
                if sent > WINDOW {
                    return Does::Sends(overflow(api, sent, WINDOW));
                }
                let text = request.body.to_string();
                let answer = if text.contains("This is part ") {
                    "<summary>\n- notes on this part\n</summary>".to_owned()
                } else if text.contains("Merge them into one set") {
                    "<summary>\n- notes on several parts\n</summary>".to_owned()
                } else {
                    good.clone()
                };
                kept.lock().unwrap().push(text);
                Does::Sends(stream(api, &answer))
            })
            .await;
            let wire = Wire::new(server::endpoint(api, &format!("http://{address}")), LIMITS);
            let (dialogue, result) = dialogue(&case, &wire, &Counted::default(), &Watch::default()).await;
            let accepted = accepted.lock().unwrap();
            let all = log.requests.lock().unwrap().len();
            println!(
                "{times:<7} {:<17} {:>8} {:>9}  {}",
                api.name(),
                dialogue.requests,
                all - accepted.len(),
                if result.as_ref().unwrap().is_ok() { "a summary" } else { "none" }
            );
            let (text, _) =
                result.unwrap().unwrap_or_else(|why| panic!("{times} {api:?}: {}", why.sentence(None)));
            assert!(text.contains("vendor/") && text.contains("empty file"), "{text}");
            let lost: Vec<&String> =
                marks.iter().filter(|mark| !accepted.iter().any(|it| it.contains(mark.as_str()))).collect();
            assert!(
                lost.is_empty(),
                "{times} {api:?}: {} of {} never sent, such as {:?}",
                lost.len(),
                marks.len(),
                lost.first()
            );
            assert_eq!(dialogue.requests as usize, all);
        }
    }
}
