//! Images and documents that an API does not take.
//!
//! Limits are those of the APIs' documentation and errors (November 2026).

use std::ops::Range;

use super::{Damage, Findings};
use crate::media::{image_size, image_type};

/// What an API takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Characters of base64 of an image.
    image: usize,
    /// Pixels of an image's longer side.
    side: u32,
    /// The same where a request holds more than [`MANY`] images.
    side_of_many: u32,
    /// Characters of base64 of a PDF.
    pdf: usize,
    /// Types of images.
    types: &'static [&'static str],
    /// Whether it compares the declared type with the data.
    is_strict: bool,
}

/// More images than this are many (Anthropic, "Vision": "more than 20 images … 2000x2000 px").
const MANY: usize = 20;

const MB: usize = 1 << 20;

/// "image exceeds 5 MB maximum: … bytes > 5242880 bytes", measured on the base64; "At least one of the image dimensions
/// exceed max allowed size: 8000 pixels" (API errors). A request has at most 32 MB.
pub(crate) const ANTHROPIC: Limits = Limits {
    image: 5 * MB,
    side: 8_000,
    side_of_many: 2_000,
    pdf: 32 * MB,
    types: &["image/jpeg", "image/png", "image/gif", "image/webp"],
    is_strict: true,
};

/// 50 MB a request (OpenAI, "Images and vision", "File inputs"); larger images are scaled down there.
pub(crate) const OPENAI: Limits = Limits {
    image: 50 * MB,
    side: u32::MAX,
    side_of_many: u32::MAX,
    pdf: 50 * MB,
    types: &["image/jpeg", "image/png", "image/gif", "image/webp"],
    is_strict: false,
};

/// 20 MB of inline data a request (Gemini API, "Image understanding").
pub(crate) const GEMINI: Limits = Limits {
    image: 20 * MB,
    side: u32::MAX,
    side_of_many: u32::MAX,
    pdf: 20 * MB,
    types: &["image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif", "image/bmp"],
    is_strict: false,
};

impl Limits {
    /// The same for an image whose neighbours do not count.
    pub(crate) fn alone(&self) -> Self {
        Self { side_of_many: u32::MAX, ..*self }
    }
}

/// An attachment, as it stands in a record.
pub(crate) struct Attachment<'a> {
    pub(crate) mime: &'a str,
    /// Base64.
    pub(crate) data: &'a str,
    /// Where the data stands.
    pub(crate) at: Range<u64>,
}

/// What is to be done with an attachment.
#[derive(Debug)]
pub(crate) enum Verdict {
    Fine,
    /// Another type is declared.
    Declared(&'static str),
    /// A text takes its place.
    Note(String),
}

/// Images that only are too wide if there are many.
#[derive(Default)]
pub(crate) struct Album {
    images: usize,
    wide: Vec<Wide>,
}

struct Wide {
    at: u64,
    detail: String,
    range: Range<u64>,
    new: String,
    taken: Range<u64>,
}

impl Album {
    /// Judges an attachment. `range` is what a note would take the place of, `note` makes that of the note's text.
    pub(crate) fn judge(
        &mut self,
        it: &Attachment<'_>,
        limits: &Limits,
        range: &Range<u64>,
        note: impl Fn(&str) -> String,
        found: &mut Findings<'_>,
    ) -> Verdict {
        let at = range.start;
        let image = it.mime.starts_with("image/");
        let size = if image { image_size(it.data) } else { None };
        let (wide, high) = size.unwrap_or_default();
        let mb = it.data.len().div_ceil(MB);
        let bad = if !is_base64(it.data)
            || (image && !limits.types.contains(&it.mime) && image_type(it.data).is_none())
        {
            Some((Damage::BrokenMedia, format!("{} of {} characters", it.mime, it.data.len())))
        } else if image && it.data.len() > limits.image {
            Some((Damage::ImageTooLarge, format!("{} of {mb} MB, at most {} MB", it.mime, limits.image / MB)))
        } else if wide.max(high) > limits.side {
            let most = limits.side;
            Some((Damage::ImageTooWide, format!("{} of {wide} x {high} px, at most {most} px", it.mime)))
        } else if it.mime == "application/pdf" && it.data.len() > limits.pdf {
            Some((Damage::PdfTooLarge, format!("PDF of {mb} MB, at most {} MB", limits.pdf / MB)))
        } else {
            None
        };
        if let Some((damage, detail)) = bad {
            let handle = found.take(it.data, it.at.clone());
            let text = noted(&detail, &handle);
            found.note(damage, at, detail);
            return Verdict::Note(note(&text));
        }
        if !image {
            return Verdict::Fine;
        }
        self.images += 1;
        if wide.max(high) > limits.side_of_many {
            let most = limits.side_of_many;
            let detail = format!("{} of {wide} x {high} px, at most {most} px where there are many", it.mime);
            let handle = (found.handle_of)(it.data.as_bytes());
            let new = note(&noted(&detail, &handle));
            self.wide.push(Wide { at, detail, range: range.clone(), new, taken: it.at.clone() });
        }
        match image_type(it.data) {
            Some(own) if own != it.mime && (limits.is_strict || !limits.types.contains(&it.mime)) => {
                found.note(Damage::ImageType, at, format!("declared {}, it is {own}", it.mime));
                Verdict::Declared(own)
            }
            _ => Verdict::Fine,
        }
    }

    /// Once all were seen.
    pub(crate) fn done(self, found: &mut Findings<'_>) {
        if self.images > MANY {
            for it in self.wide {
                found.note(Damage::ImageTooWide, it.at, it.detail);
                found.taken.push(it.taken);
                found.replace(it.range, it.new);
            }
        }
    }
}

fn noted(detail: &str, handle: &str) -> String {
    format!("[Attachment taken out by epitome repair: {detail}. Original: epitome recall {handle}]")
}

fn is_base64(text: &str) -> bool {
    let fits =
        |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=' | b'-' | b'_' | b'\n' | b'\r');
    !text.is_empty() && text.bytes().all(fits)
}
