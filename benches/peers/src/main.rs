//! `peers tiktoken-rs|bpe-openai FILE`: counts the texts of FILE (parted by U+001E) once, with o200k_base, and
//! prints the milliseconds it took to be ready, the milliseconds of the count, and the tokens.

use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (which, file) = (arguments.next().expect("who"), arguments.next().expect("a file"));
    let text = std::fs::read_to_string(file).expect("a file");
    let texts: Vec<String> = text.split('\u{1e}').map(str::to_owned).collect();
    let begun = Instant::now();
    let (ready, counted, tokens) = match which.as_str() {
        "tiktoken-rs" => {
            let it = tiktoken_rs::o200k_base().expect("its table");
            it.encode_ordinary("ready?");
            let ready = begun.elapsed();
            (ready, Instant::now(), texts.iter().map(|text| it.count_ordinary(text)).sum::<usize>())
        }
        _ => {
            let it = bpe_openai::o200k_base();
            it.count("ready?");
            let ready = begun.elapsed();
            (ready, Instant::now(), texts.iter().map(|text| it.count(text.as_str())).sum::<usize>())
        }
    };
    println!("{} {} {tokens}", ready.as_secs_f64() * 1e3, counted.elapsed().as_secs_f64() * 1e3);
}
