//! Texts made to cost too much: what is kept of a session ten times as long is ten times as much. What that costs in
//! instructions and memory is printed by `just growth`, which needs valgrind and GNU time.

use std::path::Path;
use std::process::Command;

use epitome::compaction::facts;
use epitome::history::tools;
use epitome::history::{History, Message};
use epitome::score;
use epitome::sessions::{self, MemorySource};
use serde_json::{Value, json};

/// A session in Claude Code's format from roles and contents.
fn session(messages: &[(&str, Value)]) -> String {
    let mut out = String::new();
    for (number, (role, content)) in messages.iter().enumerate() {
        let parent = number.checked_sub(1).map(|it| format!("u{it}"));
        let mut message = json!({"role": role, "content": content});
        if *role == "assistant" {
            message["id"] = json!(format!("m{number}"));
            message["model"] = json!("claude-opus-5-5");
        }
        let row = json!({
            "parentUuid": parent, "isSidechain": false, "cwd": "/p", "sessionId": "s", "type": role,
            "message": message, "uuid": format!("u{number}"), "timestamp": "2026-05-28T20:00:00.000Z",
        });
        out.push_str(&row.to_string());
        out.push('\n');
    }
    out
}

fn numbered(bytes: usize, unit: impl Fn(usize) -> String) -> String {
    let mut out = String::new();
    for number in 0.. {
        if out.len() >= bytes {
            break;
        }
        out.push_str(&unit(number));
    }
    out
}

/// A text that the model says and the user repeats, with a little work behind it.
fn said(text: &str) -> String {
    session(&[
        ("user", json!("Please fix the parser in src/a.rs. Never push.")),
        ("assistant", json!([{"type": "text", "text": text}])),
        ("user", json!(text)),
        ("assistant", json!([{"type": "text", "text": "It is fixed in src/a.rs. Shall I go on?"}])),
        ("user", json!("yes, go on with the next one")),
        ("assistant", json!([{"type": "text", "text": "Done."}])),
        ("user", json!("continue")),
    ])
}

/// Calls with their outputs: one after the other, or all in one message.
fn called(count: usize, parallel: bool, it: impl Fn(usize) -> (&'static str, Value, String)) -> String {
    let mut out = vec![("user", json!("Please fix the parser in src/a.rs. Never push."))];
    let (mut calls, mut outputs) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (name, input, output) = it(number);
        let id = format!("c{number}");
        calls.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
        let failed = output.starts_with("Exit code 1");
        outputs
            .push(json!({"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}));
        if !parallel || number + 1 == count {
            out.push(("assistant", Value::Array(std::mem::take(&mut calls))));
            out.push(("user", Value::Array(std::mem::take(&mut outputs))));
        }
    }
    out.push(("assistant", json!([{"type": "text", "text": "Done."}])));
    out.push(("user", json!("continue")));
    session(&out)
}

fn summary(text: &str) -> String {
    let frame = "This session is being continued from a previous conversation that ran out of context. The conversation is summarized below:\n";
    session(&[
        ("user", json!(format!("{frame}{text}"))),
        ("assistant", json!([{"type": "text", "text": "I go on."}])),
        ("user", json!("continue with the parser")),
    ])
}

fn command(text: &str) -> String {
    called(1, false, |_| ("Bash", json!({"command": text}), "ok".into()))
}

type Shape = (&'static str, fn(usize) -> String);

/// Each makes a session of about so many bytes.
const SHAPES: [Shape; 46] = [
    ("URLs without white space", |n| said(&numbered(n / 2, |it| format!("https://a{it}.example.org/x,")))),
    ("https:// again and again", |n| said(&"https://".repeat(n / 16))),
    ("parallel calls", |n| {
        called(n / 300, true, |_| ("Bash", json!({"command": "cargo check"}), "ok".into()))
    }),
    ("parallel commits", |n| {
        called(n / 350, true, |it| {
            (
                "Bash",
                json!({"command": format!("git commit -m x{it}")}),
                format!("[main {:07x}] x", it * 7919),
            )
        })
    }),
    ("no, no, no", |n| said(&"no, ".repeat(n / 8))),
    ("a checklist", |n| said(&numbered(n / 2, |it| format!("- [ ] write the tests for part number {it}\n")))),
    ("is 12", |n| said(&"is 12 ".repeat(n / 12))),
    ("decomposed accents", |n| said(&"e\u{301}e\u{301} 12 ".repeat(n / 20))),
    ("rules with lists", |n| {
        said(&numbered(n / 2, |it| format!("You must always keep item {it}:\n- this one\n")))
    }),
    ("rules", |n| said(&numbered(n / 2, |it| format!("Never change the file number {it} in there.\n")))),
    ("rules on one line", |n| {
        said(&numbered(n / 2, |it| format!("Never change the file number {it} in there. ")))
    }),
    ("approaches given up", |n| {
        said(&numbered(n / 2, |it| format!("I gave up on approach {it} because it does not work at all. ")))
    }),
    ("decisions", |n| said(&numbered(n / 2, |it| format!("Let's go with option number {it} then. ")))),
    ("a long heading", |n| {
        said(&format!("# Rules {}\n\n{}", "never so ".repeat(n / 36), "- use it here\n".repeat(n / 56)))
    }),
    ("one word", |n| said(&"a".repeat(n / 2))),
    // With words between: blanks alone are too few tokens for a compaction at 200 kB.
    ("blanks", |n| said(&format!("{}word", " ".repeat(36)).repeat(n / 80))),
    ("line breaks", |n| said(&format!("{}x", "\n".repeat(n / 4)))),
    ("open quotes", |n| said(&"\"a b c\" “x ".repeat(n / 28))),
    ("tags", |n| said(&"<a>\n".repeat(n / 10))),
    ("closing tags", |n| said(&"</a ".repeat(n / 8))),
    ("open reminders", |n| said(&"<system-reminder>x".repeat(n / 36))),
    ("fences", |n| said(&"```\nx\n".repeat(n / 16))),
    ("dense script", |n| said(&"必須".repeat(n / 12))),
    ("paths", |n| said(&numbered(n / 2, |it| format!("edited src/dir{it}/file.rs and ")))),
    ("yes to one long message", |n| {
        let offers = numbered(n / 2, |it| format!("1. option {it} is good, is it not?\n"));
        let mut all =
            vec![("user", json!("fix it, please")), ("assistant", json!([{"type": "text", "text": offers}]))];
        all.extend((0..n / 400).map(|it| ("user", json!(if it % 2 == 0 { "yes" } else { "1" }))));
        session(&all)
    }),
    ("many tiny messages", |n| {
        let text = |it: usize| json!([{"type": "text", "text": format!("part {it} is done")}]);
        let all: Vec<_> =
            (0..n / 220)
                .map(|it| {
                    if it % 2 == 0 {
                        ("user", json!(format!("do part {it}")))
                    } else {
                        ("assistant", text(it))
                    }
                })
                .collect();
        session(&all)
    }),
    ("tasks", |n| {
        called(n / 500, false, |it| {
            ("TaskCreate", json!({"subject": format!("write test {it}")}), format!("Task #{it} created"))
        })
    }),
    ("errors of one command", |n| {
        called(n / 550, false, |it| {
            ("Bash", json!({"command": "cargo test"}), format!("Exit code 1\nerror: thing {it} is missing"))
        })
    }),
    ("questions", |n| {
        called(n / 550, false, |it| {
            let question = format!("Which one {it}?");
            let answer = format!("User has answered: \"{question}\"=\"a\".");
            (
                "AskUserQuestion",
                json!({"questions": [{"question": question, "options": [{"label": "a"}]}]}),
                answer,
            )
        })
    }),
    ("questions of one call", |n| {
        called(1, false, |_| {
            let of = |it: usize| format!("Which one {it}?");
            let questions: Vec<Value> =
                (0..n / 100).map(|it| json!({"question": of(it), "options": [{"label": "a"}]})).collect();
            let answers: Vec<String> = (0..n / 100).map(|it| format!("\"{}\"=\"a\"", of(it))).collect();
            ("AskUserQuestion", json!({"questions": questions}), answers.join(" "))
        })
    }),
    ("fixes below one error", |n| {
        summary(&format!(
            "## Errors\n- error: a thing went wrong\n{}",
            numbered(n, |it| format!("- Fixed by change number {it} in the code\n"))
        ))
    }),
    ("files below a long directory", |n| {
        let files = numbered(n / 2, |it| format!("a{it}.rs, "));
        summary(&format!("## Files\n- edited in /{}: {files}", "dir/".repeat(n / 8)))
    }),
    ("open steps of a summary", |n| {
        let steps = numbered(n, |it| format!("- write importer docs part{it} for file_{it}.rs now\n"));
        summary(&format!("## Pending\n{steps}"))
    }),
    ("many summaries", |n| {
        let one = "This session is being continued from a previous conversation that ran out of context.\n## Current work\n- a part is under way";
        session(&vec![("user", json!(one)); n / 350])
    }),
    ("pipes", |n| command(&format!("cargo test{}", " | head".repeat(n / 7)))),
    ("a long directory", |n| {
        command(&format!("cd /{}; {}", "abc/".repeat(n / 8), "cat a.rs; ".repeat(n / 20)))
    }),
    ("one directory after the other", |n| command(&"cd a; ".repeat(n / 6))),
    ("bold", |n| said(&"**a** ".repeat(n / 12))),
    ("open bold", |n| said(&"**a ".repeat(n / 8))),
    ("stars", |n| said(&"*".repeat(n / 2))),
    ("open brackets", |n| said(&"([{<".repeat(n / 8))),
    ("quotes within quotes", |n| said(&"> ".repeat(n / 4))),
    ("nested lists", |n| said(&numbered(n / 2, |it| format!("{}- a{it}\n", "  ".repeat(it % 40))))),
    ("nested input", |n| {
        let (open, close) = ("[".repeat(100), "]".repeat(100));
        called(n / 700, false, |it| {
            ("Bash", json!({"command": format!("echo '{open}{it}{close}'")}), "ok".into())
        })
    }),
    ("tabs and blanks", |n| said(&format!("{}word", " \t".repeat(18)).repeat(n / 116))),
    ("here-documents", |n| command(&format!("{}\n{}", "<<A ".repeat(n / 8), "x\n".repeat(n / 4)))),
];

fn history(text: &str) -> History {
    sessions::read(&MemorySource::new("hostile", text.as_bytes()), None).unwrap().history
}

/// Bytes of all that is kept of a history: facts, what the scorer looks for, what calls did.
fn kept(history: &History) -> usize {
    let facts: usize = facts::read(history).facts.iter().map(|it| it.text.len() + 32).sum();
    let probes: usize =
        score::probes(history).iter().map(|it| it.text().len() + 8 * it.messages.len() + 32).sum();
    let actions: usize = history
        .messages()
        .iter()
        .flat_map(Message::calls)
        .flat_map(tools::actions)
        .map(|it| it.path.map_or(0, |it| it.len()) + it.command.map_or(0, |it| it.len()) + 32)
        .sum();
    facts + probes + actions
}

#[test]
fn what_is_kept_grows_as_the_session_does() {
    let mut wrong = Vec::new();
    for (name, make) in SHAPES {
        let [small, large] = [10_000, 100_000].map(|bytes| {
            let text = make(bytes);
            (text.len(), kept(&history(&text)))
        });
        let (times, bytes) = (large.1 as f64 / small.1.max(1) as f64, large.1 as f64 / large.0 as f64);
        println!("{name:32} {:>9} {:>9} {times:>6.1} × {bytes:>5.1} a byte", small.1, large.1);
        if times > 12.0 * large.0 as f64 / small.0 as f64 / 10.0 || bytes > 12.0 {
            wrong.push(name);
        }
    }
    assert_eq!(wrong, Vec::<&str>::new());
}

/// What a command costs: instructions, and kilobytes of memory at its peak.
type Cost = [u64; 2];

/// Instructions and peak memory of `estimate` and `compact`, for 200 kB and 2 MB of each shape (or the bytes in
/// `EPITOME_GROWTH`), less those of a session of a few words. `EPITOME_SHAPE` names one shape, `EPITOME_BINARY` the
/// program that is measured.
#[test]
fn costs_grow_as_the_session_does() {
    let name = "costs_grow_as_the_session_does";
    let Some(bytes) = std::env::var("EPITOME_GROWTH").ok().and_then(|it| it.parse::<usize>().ok()) else {
        eprintln!("SKIPPED: {name}: takes half an hour (`just growth`)");
        return;
    };
    for tool in ["valgrind", TIME] {
        if Command::new(tool).arg("--version").output().is_err() {
            eprintln!("SKIPPED: {name}: no {tool}");
            return;
        }
    }
    let only = std::env::var("EPITOME_SHAPE").ok();
    let folder = tempfile::tempdir().unwrap();
    let measured = |command: &str, text: &str| {
        let file = folder.path().join("session.jsonl");
        std::fs::write(&file, text).unwrap();
        cost(command, &file, folder.path())
    };
    println!("{:32} {:10} million instructions, 200 kB, 2 MB, ×; MB of memory, the same", "shape", "command");
    let mut wrong = Vec::new();
    for command in ["estimate", "compact"] {
        // The first run makes the store.
        let [_, nothing] = [(); 2].map(|()| measured(command, &said("hello")));
        for (name, make) in SHAPES.into_iter().filter(|it| only.as_ref().is_none_or(|only| only == it.0)) {
            let [small, large] = [bytes, 10 * bytes].map(|bytes| measured(command, &make(bytes)));
            let mut line = format!("{name:32} {command:10}");
            for (which, (unit, floor)) in [(1e6, 1_000_000), (1e3, 1_000)].into_iter().enumerate() {
                // Where the small one costs next to nothing, a page more is no growth.
                let beyond = |it: Cost| it[which].saturating_sub(nothing[which]).max(floor) as f64;
                let times = beyond(large) / beyond(small);
                line += &format!(" {:>9.1} {:>9.1} {times:>6.1}", beyond(small) / unit, beyond(large) / unit);
                if times > 12.0 {
                    wrong.push(format!("{name}, {command}: × {times:.1}"));
                }
            }
            println!("{line}");
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// GNU time: the peak of a process's resident memory.
const TIME: &str = "/usr/bin/time";

/// What a command that writes nothing costs.
fn cost(command: &str, session: &Path, folder: &Path) -> Cost {
    let under = |tool: &[&str]| {
        let mut out = Command::new(tool[0]);
        out.args(&tool[1..]).arg(crate::apply::program()).args([command, "--now", "2026-06-01T00:00:00Z"]);
        let out = out.arg("--store").arg(folder.join("store")).arg(session).output().unwrap();
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    // A third of callgrind's time, and the same count.
    let counted =
        under(&["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    let instructions =
        counted.lines().find_map(|it| it.split_once(" refs:")?.1.trim().replace(',', "").parse().ok());
    let timed = under(&[TIME, "--format", "%M"]);
    let kilobytes = timed.lines().next_back().and_then(|it| it.parse().ok());
    match (instructions, kilobytes) {
        (Some(instructions), Some(kilobytes)) => [instructions, kilobytes],
        _ => panic!("no count of instructions or kilobytes: {counted}{timed}"),
    }
}
