//! Request bodies: buffered within limits for inspection, and decompressed only for that.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// Maximum size of an inspected body, in bytes, also after decompression; a larger one is streamed through.
pub const LARGEST: usize = 64 << 20;
/// Maximum bytes of all bodies buffered at the same time.
const ALL: usize = 256 << 20;
/// Maximum time to buffer a body; a slower one is streamed through.
const ARRIVAL: Duration = Duration::from_secs(60);
/// How long a body waits for free memory.
const ROOM: Duration = Duration::from_secs(5);

/// Permits for buffered bodies, one per KiB.
pub struct BodyBudget(Arc<Semaphore>);

impl Default for BodyBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL >> 10)))
    }
}

/// A body that was buffered, or not.
pub enum Gathered {
    /// The whole body, and the permit for its memory.
    Whole(Bytes, OwnedSemaphorePermit),
    /// Too large, too slow, or no memory left: what has arrived, followed by the rest of the stream.
    Streamed(Body),
}

impl BodyBudget {
    pub async fn gather(&self, headers: &HeaderMap, mut body: Body) -> Gathered {
        let declared = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
        if declared.is_some_and(|it| it > LARGEST) {
            return Gathered::Streamed(body);
        }
        let kib = declared.unwrap_or(LARGEST).div_ceil(1024).max(1);
        let permit = self.0.clone().acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX));
        let Ok(Ok(mut permit)) = timeout(ROOM, permit).await else {
            tracing::warn!("no room for a request of {} KiB: forwarded unread", kib);
            return Gathered::Streamed(body);
        };
        let until = Instant::now() + ARRIVAL;
        let (mut pieces, mut size): (Vec<Bytes>, usize) = (Vec::new(), 0);
        while size <= LARGEST {
            match timeout_at(until, body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    // Trailers are dropped: they belong to the connection.
                    if let Ok(data) = frame.into_data() {
                        size += data.len();
                        pieces.push(data);
                    }
                }
                Ok(None) => {
                    drop(permit.split(kib.saturating_sub(size.div_ceil(1024).max(1))));
                    return Gathered::Whole(joined(pieces), permit);
                }
                // The client broke off: pass on the broken stream.
                Ok(Some(Err(error))) => {
                    let pieces = pieces.into_iter().map(Ok).chain(std::iter::once(Err(error)));
                    return Gathered::Streamed(Body::from_stream(stream::iter(pieces)));
                }
                Err(_) => break,
            }
        }
        let came = stream::iter(pieces.into_iter().map(Ok));
        Gathered::Streamed(Body::from_stream(came.chain(body.into_data_stream())))
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if let [_] = pieces.as_slice() {
        return pieces.remove(0);
    }
    pieces.concat().into()
}

/// The compressions that can be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Plain,
    Zstd,
    Gzip,
}

impl Coding {
    /// The coding in the headers; `None` if unknown, or if there are several.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(CONTENT_ENCODING).iter();
        let coding = match (all.next(), all.next()) {
            (None, _) => return Some(Self::Plain),
            (Some(it), None) => it.to_str().ok()?.trim().to_ascii_lowercase(),
            (Some(_), Some(_)) => return None,
        };
        match coding.as_str() {
            "identity" | "" => Some(Self::Plain),
            "zstd" => Some(Self::Zstd),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            _ => None,
        }
    }

    /// The decompressed text; `None` if it is not UTF-8, or larger than [`LARGEST`].
    pub fn text(self, body: &[u8]) -> Option<String> {
        let mut out = Vec::new();
        let limit = LARGEST as u64 + 1;
        let read = match self {
            Self::Plain => Read::take(body, limit).read_to_end(&mut out),
            Self::Zstd => zstd::Decoder::new(body).and_then(|it| it.take(limit).read_to_end(&mut out)),
            Self::Gzip => flate2::read::MultiGzDecoder::new(body).take(limit).read_to_end(&mut out),
        };
        read.ok()?;
        if out.len() > LARGEST { None } else { String::from_utf8(out).ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn headers(name: axum::http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for it in values {
            headers.append(&name, it.parse().unwrap());
        }
        headers
    }

    #[test]
    fn compressed_bodies_are_read_and_bombs_are_not() {
        let text = "{\"input\": \"é\"}".repeat(1_000);
        let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        for (coding, body) in [("zstd", &zstd[..]), ("gzip", &gzip), ("identity", text.as_bytes())] {
            let coding = Coding::of(&headers(CONTENT_ENCODING, &[coding])).unwrap();
            assert_eq!(coding.text(body).as_deref(), Some(&*text));
            assert_eq!(coding.text(&body[..body.len() / 2]).is_some(), coding == Coding::Plain);
        }
        assert_eq!(Coding::Plain.text(b"\xff"), None);
        let bomb = zstd::encode_all(std::io::repeat(b' ').take(LARGEST as u64 + 1), 1).unwrap();
        assert!(bomb.len() < 1 << 20 && Coding::Zstd.text(&bomb).is_none());
        assert_eq!(Coding::of(&HeaderMap::new()), Some(Coding::Plain));
        assert_eq!(Coding::of(&headers(CONTENT_ENCODING, &["br"])), None);
        assert_eq!(Coding::of(&headers(CONTENT_ENCODING, &["zstd", "gzip"])), None);
    }

    #[tokio::test]
    async fn what_is_too_large_is_passed_on_whole() {
        let room = BodyBudget::default();
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        let count = (LARGEST >> 20) + 2;
        let pieces = stream::iter(std::iter::repeat_n(piece, count).map(Ok::<_, std::io::Error>));
        let Gathered::Streamed(body) = room.gather(&HeaderMap::new(), Body::from_stream(pieces)).await else {
            panic!("expected a stream");
        };
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), count << 20);
        let large = headers(CONTENT_LENGTH, &[&(LARGEST + 1).to_string()]);
        assert!(matches!(room.gather(&large, Body::empty()).await, Gathered::Streamed(_)));
        let Gathered::Whole(bytes, _held) = room.gather(&HeaderMap::new(), Body::from("abc")).await else {
            panic!("expected it whole");
        };
        assert_eq!(&bytes[..], b"abc");
        assert_eq!(room.0.available_permits(), (ALL >> 10) - 1, "it holds what it takes, no more");
    }
}
