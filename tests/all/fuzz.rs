//! A few hundred of the cases of `just fuzz`.

#[path = "../../examples/fuzz/case.rs"]
mod case;
#[path = "../../examples/fuzz/mutate.rs"]
pub(crate) mod mutate;

use std::collections::BTreeMap;

use case::{Bench, Seen};
use epitome::sessions::Format;
use mutate::{Document, Random};

/// The session of `examples/sessions` that is named after the format: every format has one.
fn example_of(name: &str) -> String {
    let file = ["jsonl", "json"]
        .iter()
        .map(|ending| format!("{}/examples/sessions/{name}.{ending}", env!("CARGO_MANIFEST_DIR")))
        .find(|file| std::path::Path::new(file).exists());
    std::fs::read_to_string(file.unwrap_or_else(|| panic!("examples/sessions has no {name}"))).unwrap()
}

/// The whole session first: or the cases would test nothing. `EPITOME_MUTATIONS` says how many of each format.
#[test]
fn mutated_sessions_are_read_and_written_or_refused() {
    let bench = Bench::new().unwrap();
    let count = std::env::var("EPITOME_MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(60);
    let mut finds = BTreeMap::new();
    for format in Format::ALL.into_iter().filter(|it| !it.is_read_only()) {
        let name = format.name();
        let text = example_of(name);
        assert_eq!(bench.run(format, text.as_bytes(), 0), Ok(Seen::Written(1)), "{name}");
        let small = Document::small(&text, 14);
        for number in 0..count {
            let bytes = small.mutated(&mut Random(number));
            if let Err(what) = bench.run(format, &bytes, number) {
                // Finds that differ only in numbers and in what was found are one.
                let kind: String = what.split(": at ").next().unwrap_or_default().to_owned();
                let kind: String = kind.chars().filter(|it| !it.is_ascii_digit()).take(160).collect();
                let find = finds.entry((name, kind)).or_insert((0, number, what));
                find.0 += 1;
            }
        }
    }
    assert!(finds.is_empty(), "find, how often, first case: {finds:#?}");
}
