//! Makes the tables by which `tokens::bpe` counts, so that a process has nothing to unfold.
//!
//! A vocabulary is kept as its merges: the bytes of the first 256 ids, then for each further id, three bytes each, the
//! two ids that it is merged of. They are those of OpenAI's `o200k_base` and `cl100k_base`, published with tiktoken
//! (MIT); the tests hold them against another package's copy.

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "how a build script speaks with cargo")]

#[path = "src/bpe/tables.rs"]
mod tables;

use std::error::Error;
use std::path::PathBuf;

use tables::{ID_BITS, LINE, LONG, SHORT};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    for name in ["o200k_base", "cl100k_base"] {
        let merges = format!("src/bpe/{name}.merges");
        println!("cargo::rerun-if-changed={merges}");
        std::fs::write(folder.join(format!("{name}.tables")), made(&std::fs::read(merges)?)?)?;
    }
    Ok(())
}

/// How many keys the tables of pairs, short pieces and long pieces have, and the id of each byte; then these tables.
fn made(merges: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (bytes, merges) = merges.split_at_checked(256).ok_or("no bytes")?;
    let mut texts: Vec<Vec<u8>> = bytes.iter().map(|it| vec![*it]).collect();
    let mut pairs = Vec::new();
    for merge in merges.chunks(6) {
        let id = |at: usize| u32::from_le_bytes([merge[at], merge[at + 1], merge[at + 2], 0]);
        let key = tables::pair(id(0), id(3));
        pairs.push((tables::hash(key), (key << ID_BITS | texts.len() as u64).to_le_bytes()));
        texts.push([texts[id(0) as usize].as_slice(), &texts[id(3) as usize]].concat());
    }
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for text in texts.iter().filter(|it| std::str::from_utf8(it).is_ok()) {
        if text.len() <= SHORT {
            let key = tables::short(word(text), text.len());
            short.push((tables::hash(key), key.to_le_bytes()));
        } else if text.len() <= LONG {
            let key = [word(text), tables::second(word(&text[SHORT..]), text.len())];
            let mut slot = [0; 16];
            slot[..8].copy_from_slice(&key[0].to_le_bytes());
            slot[8..].copy_from_slice(&key[1].to_le_bytes());
            long.push((tables::hash_of_two(key), slot));
        }
    }
    let mut out = Vec::new();
    for keys in [pairs.len(), short.len(), long.len()] {
        out.extend((keys as u32).to_le_bytes());
    }
    pad(&mut out);
    for byte in 0..=u8::MAX {
        out.push(bytes.iter().position(|it| *it == byte).ok_or("a byte without an id")? as u8);
    }
    add(&mut out, &pairs)?;
    add(&mut out, &short)?;
    add(&mut out, &long)?;
    Ok(out)
}

/// The first eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).enumerate().fold(0, |out, (at, it)| out | u64::from(*it) << (8 * at))
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(LINE), 0);
}

/// Adds the table of these hashes and slots: the groups' displacements, then the slots.
fn add<const WIDTH: usize>(out: &mut Vec<u8>, keys: &[(u64, [u8; WIDTH])]) -> Result<(), Box<dyn Error>> {
    let (groups, slots) = tables::sizes(keys.len());
    let mut members = vec![Vec::new(); groups];
    for key in keys {
        members[tables::group(key.0, groups)].push(key);
    }
    // Large groups first, while there is room.
    let mut order: Vec<usize> = (0..groups).collect();
    order.sort_by_key(|it| std::cmp::Reverse(members[*it].len()));
    // What no key is equal to.
    const FREE: u8 = 0xFF;
    let mut table = vec![[FREE; WIDTH]; slots];
    let mut displacements = vec![0; groups];
    let mut places: Vec<usize> = Vec::new();
    for group in order {
        let fits = |displacement: &u16| {
            places.clear();
            members[group].iter().all(|key| {
                let place = tables::slot(key.0, *displacement, slots);
                let free = table[place] == [FREE; WIDTH] && !places.contains(&place);
                places.push(place);
                free
            })
        };
        displacements[group] = (0..=u16::MAX).find(fits).ok_or("a group that fits nowhere")?;
        for (place, key) in places.iter().zip(&members[group]) {
            table[*place] = key.1;
        }
    }
    pad(out);
    out.extend(displacements.iter().flat_map(|it| it.to_le_bytes()));
    pad(out);
    out.extend(table.as_flattened());
    Ok(())
}
