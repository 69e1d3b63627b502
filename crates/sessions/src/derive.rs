//! Ids and times of what we write are derived from what we read: the same input gives the same bytes.

use sha2::{Digest, Sha256};

/// 16 bytes derived from a session, the id's purpose, its number, and the content that it names.
pub fn digest(session: &str, purpose: &str, number: usize, content: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in [session, purpose, &number.to_string(), content] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let mut out = [0; 16];
    out.copy_from_slice(&hash.finalize()[..16]);
    out
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

/// A UUID of version 8 (custom), variant RFC 9562, from a [`digest`].
pub fn uuid(digest: [u8; 16]) -> String {
    with_version(8, digest)
}

/// A UUID of version 7: `ms` in front (ids that sort by time), the rest from the digest.
pub fn uuid_v7(ms: i64, digest: [u8; 16]) -> String {
    let mut bytes = digest;
    bytes[..6].copy_from_slice(&ms.max(0).to_be_bytes()[2..]);
    with_version(7, bytes)
}

fn with_version(version: u8, mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0F) | (version << 4);
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    let hex = hex(&bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// `YYYY-MM-DDTHH:MM:SS.mmmZ`, as all agents write it.
pub fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|it| format!("{it:.3}")).unwrap_or_default()
}

/// Extends the range `(first, last)` to include `at`.
pub(crate) fn widened(times: Option<(i64, i64)>, at: i64) -> Option<(i64, i64)> {
    Some(times.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
}

/// Reads an RFC 3339 time as milliseconds since 1970.
pub fn parse_time(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_time_is_read_as_any_other() {
        let jiff = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        for year in [1970, 1999, 2000, 2024, 2026, 2100, 2400, 9999] {
            for month in 1..=12 {
                for day in [1, 15, 28, 29, 31, 32] {
                    let text = format!("{year}-{month:02}-{day:02}T23:59:07.045Z");
                    assert_eq!(parse_time(&text), jiff(&text), "{text}");
                }
            }
        }
        for odd in [
            "2026-11-20T24:00:00.000Z",
            "2026-00-20T00:00:00.000Z",
            "2026-11-20T00:00:60.000Z",
            "2026-11-20 00:00:00.000Z",
            "",
        ] {
            assert_eq!(parse_time(odd), jiff(odd), "{odd}");
        }
    }

    #[test]
    fn times_and_ids() {
        assert_eq!(time(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(parse_time("2023-11-14T22:13:20.123Z"), Some(1_700_000_000_123));
        let digest = digest("s", "boundary", 0, "x");
        assert_eq!(uuid(digest).len(), 36);
        assert_eq!(&uuid(digest)[14..15], "8");
        assert!(uuid_v7(1_700_000_000_123, digest).starts_with("018bcfe5-687b-7"));
    }
}
