//! Image sizes and PDF pages, read from base64 data: token prices depend on them, and the data is long.
//! Repeated data is shared: clients write the same image into record after record.

use std::sync::Arc;

use foldhash::HashSet;
use history::Part;
use memchr::memmem;

/// Maximum base64 characters decoded: enough to reach the frame header of a JPEG behind a large color
/// profile.
const PREFIX: usize = 256 * 1024;

/// Width and height in pixels of a PNG, GIF, WebP or JPEG given as base64 (standard or URL alphabet).
pub fn image_size(base64: &str) -> Option<(u32, u32)> {
    let bytes = decode(&base64.as_bytes()[..base64.len().min(PREFIX)]);
    let size = if bytes.starts_with(b"\x89PNG\r\n\x1A\n") {
        (big(&bytes, 16, 4)?, big(&bytes, 20, 4)?)
    } else if bytes.starts_with(b"GIF8") {
        (little(&bytes, 6, 2)?, little(&bytes, 8, 2)?)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        webp(&bytes)?
    } else if bytes.starts_with(b"\xFF\xD8") {
        jpeg(&bytes)?
    } else {
        return None;
    };
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// Page count of a PDF given as base64: its page objects, or the count in its page tree, whichever is stored
/// uncompressed; zero if both are compressed.
pub fn pdf_pages(base64: &str) -> usize {
    let bytes = decode(base64.as_bytes());
    let values = |key: &'static [u8]| {
        memmem::find_iter(&bytes, key)
            .map(|at| bytes[at + key.len()..].trim_ascii_start())
            .collect::<Vec<_>>()
    };
    let is_page = |it: &&&[u8]| {
        it.strip_prefix(b"/Page").is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
    };
    let pages = values(b"/Type").iter().filter(is_page).count();
    let number = |it: &&[u8]| {
        let digits = it.iter().take_while(|it| it.is_ascii_digit()).take(6);
        digits.fold(0, |sum, it| sum * 10 + usize::from(it - b'0'))
    };
    if pages > 0 { pages } else { values(b"/Count").iter().map(number).max().unwrap_or(0) }
}

/// The distinct data of attachments.
#[derive(Default)]
pub(crate) struct SharedData(HashSet<Arc<str>>);

impl SharedData {
    /// Makes attachments in these parts with equal data share one copy of it.
    pub(crate) fn share<'a>(&mut self, parts: impl IntoIterator<Item = &'a mut Part>) {
        for part in parts {
            let media = match part {
                Part::Media(it) => std::slice::from_mut(it),
                Part::Output(it) => &mut *it.media,
                Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Opaque(_) => continue,
            };
            for it in media {
                match self.0.get(&*it.data) {
                    Some(known) => it.data = known.clone(),
                    None => drop(self.0.insert(it.data.clone())),
                }
            }
        }
    }
}

/// Whether all of `text` is base64, in either alphabet.
pub(crate) fn is_base64(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=' | b'-' | b'_');
    !text.is_empty() && text.bytes().all(fits)
}

/// The MIME type of an image given as base64, by its magic bytes.
pub fn image_type(base64: &str) -> Option<&'static str> {
    let bytes = decode(&base64.as_bytes()[..base64.len().min(24)]);
    Some(match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return None,
    })
}

/// Decodes up to the first character that is not base64; white space is skipped.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut bit_count) = (0u32, 0u32);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            _ => break,
        };
        bits = (bits << 6) | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            out.push((bits >> bit_count) as u8);
        }
    }
    out
}

fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().fold(0, |sum, it| (sum << 8) | u32::from(*it)))
}

fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().rev().fold(0, |sum, it| (sum << 8) | u32::from(*it)))
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8 " => Some((little(bytes, 26, 2)? & 0x3FFF, little(bytes, 28, 2)? & 0x3FFF)),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
        }
        _ => None,
    }
}

/// Walks the segments to the frame header, which holds the height before the width.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xFF {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Fill bytes, and markers without a length.
            0xFF => at += 1,
            0x01 | 0xD0..=0xD8 => at += 2,
            // Frame headers: all of C0..CF except tables and reserved codes (C4, C8, CC).
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            _ => at += 2 + big(bytes, at + 2, 2)? as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_of_all_four() {
        for (what, data, size) in [
            ("png", "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA", Some((640, 480))),
            ("png, cut before its height", "iVBORw0KGgoAAAANSUhEUgAAAoA", None),
            ("gif", "R0lGODlhQAHwAIAA", Some((320, 240))),
            ("webp, lossy", "UklGRgAAAABXRUJQVlA4IAAAAAAAAACdASpAAfAA", Some((320, 240))),
            ("webp, lossless", "UklGRgAAAABXRUJQVlA4TAAAAAAvP8E7AA==", Some((320, 240))),
            ("webp, extended", "UklGRgAAAABXRUJQVlA4WAoAAAAAAAAAPwEA7wAA", Some((320, 240))),
            ("jpeg", "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCADwAUADASIA", Some((320, 240))),
            ("jpeg, a segment of length 0 goes on to what is no marker", "/9j/4AAAAAAA", None),
            ("text", "aGVsbG8gd29ybGQ=", None),
            ("", "", None),
        ] {
            assert_eq!(image_size(data), size, "{what}");
            let of = ["png", "gif", "webp", "jpeg"].into_iter().find(|it| what.starts_with(it));
            assert_eq!(image_type(data), of.map(|it| format!("image/{it}")).as_deref(), "{what}");
        }
    }

    #[test]
    fn counts_pages() {
        for (text, pages) in [
            ("%PDF-1.4 << /Type /Pages /Count 2 >> << /Type/Page >> << /Type /Page/Parent 1 0 R >>", 2),
            ("%PDF-1.5 << /Type /Pages /Count 240 >> << /Count 12 >> stream", 240),
            ("%PDF-1.7 stream", 0),
            ("%PDF-1.4 /Type", 0),
        ] {
            assert_eq!(pdf_pages(&base64(text)), pages, "{text}");
        }
    }

    fn base64(text: &str) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bits = text.bytes().flat_map(|it| (0..8).rev().map(move |at| usize::from(it >> at & 1)));
        let bits: Vec<usize> = bits.collect();
        let letters = bits.chunks(6).map(|it| it.iter().fold(0, |sum, bit| sum << 1 | bit) << (6 - it.len()));
        letters.map(|it| char::from(LETTERS[it])).collect()
    }
}
