//! Images and documents that an API does not accept.
//!
//! Limits are those of the APIs' documentation and errors (November 2026).

use std::ops::Range;

use super::{At, Damage, Findings};
use crate::media::{image_size, image_type, is_base64, pdf_pages};

/// What an API accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Characters of base64 of an image.
    image: usize,
    /// Pixels of an image's longer side.
    side: u32,
    /// The same, if a request holds more than [`MANY`] images.
    side_of_many: u32,
    /// Characters of base64 of a PDF.
    pdf: usize,
    pages: usize,
    /// Characters of base64 of all attachments of a request.
    request: usize,
    types: &'static [&'static str],
    /// Whether the API compares the declared type with the data.
    is_strict: bool,
    /// Whether the attachment is judged on its own, without the others.
    is_alone: bool,
}

/// More images than this are many (Anthropic, "Vision": "more than 20 images … 2000x2000 px").
const MANY: usize = 20;

const MB: usize = 1 << 20;

/// "image exceeds 5 MB maximum: … bytes > 5242880 bytes", measured on the base64; "At least one of the image dimensions
/// exceed max allowed size: 8000 pixels"; "A maximum of 100 PDF pages may be provided" (API errors). A request has at
/// most 32 MB (API overview, "Request size limits").
pub(crate) const ANTHROPIC: Limits = Limits {
    image: 5 * MB,
    side: 8_000,
    side_of_many: 2_000,
    pdf: 32 * MB,
    pages: 100,
    request: 32 * MB,
    types: &["image/jpeg", "image/png", "image/gif", "image/webp"],
    is_strict: true,
    is_alone: false,
};

/// 50 MB per request (OpenAI, "Images and vision", "File inputs"); larger images are scaled down there.
pub(crate) const OPENAI: Limits = Limits {
    image: 50 * MB,
    side: u32::MAX,
    side_of_many: u32::MAX,
    pdf: 50 * MB,
    pages: usize::MAX,
    request: 50 * MB,
    is_strict: false,
    ..ANTHROPIC
};

/// 20 MB of inline data per request (Gemini API, "Image understanding"), 1,000 pages ("Document
/// understanding").
pub(crate) const GEMINI: Limits = Limits {
    image: 20 * MB,
    pdf: 20 * MB,
    pages: 1_000,
    request: 20 * MB,
    types: &["image/jpeg", "image/png", "image/gif", "image/webp", "image/heic", "image/heif", "image/bmp"],
    ..OPENAI
};

impl Limits {
    /// The same for an attachment that cannot be replaced by a note later.
    pub(crate) fn alone(&self) -> Self {
        Self { is_alone: true, ..*self }
    }
}

/// An attachment, as slices of a record's text.
pub(crate) struct Attachment<'a> {
    /// All of it: what a note would replace.
    pub(crate) raw: &'a str,
    /// Where its type is declared, without quotes; the first one counts.
    pub(crate) types: &'a [&'a str],
    /// Base64.
    pub(crate) data: &'a str,
}

/// Attachments that an API accepts one by one, but perhaps not all together.
#[derive(Default)]
pub(crate) struct AttachmentBudget {
    images: usize,
    /// Characters of base64.
    size: usize,
    /// In the order of the session.
    accepted: Vec<Accepted>,
}

struct Accepted {
    what: String,
    size: usize,
    limits: Limits,
    /// Pixels of the longer side.
    side: u32,
    range: Range<u64>,
    new: String,
    archived: Range<u64>,
}

impl AttachmentBudget {
    /// Corrects the declared type of an attachment. Returns its replacement, made of a text by `note`, if it
    /// cannot stay.
    pub(crate) fn judge(
        &mut self,
        at: &At<'_>,
        it: &Attachment<'_>,
        limits: &Limits,
        note: impl Fn(&str) -> String,
        found: &mut Findings<'_>,
    ) -> Option<String> {
        let range = at.range(it.raw);
        let place = range.start;
        let mime = it.types.first().copied().unwrap_or_default();
        let image = mime.starts_with("image/");
        let size = if image { image_size(it.data) } else { None };
        let (wide, high) = size.unwrap_or_default();
        let mb = it.data.len().div_ceil(MB);
        let pages = if mime == "application/pdf" { pdf_pages(it.data) } else { 0 };
        let bad = if !is_data(it.data)
            || (image && !limits.types.contains(&mime) && image_type(it.data).is_none())
        {
            Some((Damage::BrokenMedia, format!("{mime} of {} characters", it.data.len())))
        } else if image && it.data.len() > limits.image {
            Some((Damage::ImageTooLarge, format!("{mime} of {mb} MB, at most {} MB", limits.image / MB)))
        } else if wide.max(high) > limits.side {
            let most = limits.side;
            Some((Damage::ImageTooWide, format!("{mime} of {wide} x {high} px, at most {most} px")))
        } else if mime == "application/pdf" && it.data.len() > limits.pdf {
            Some((Damage::PdfTooLarge, format!("PDF of {mb} MB, at most {} MB", limits.pdf / MB)))
        } else if pages > limits.pages {
            Some((Damage::PdfTooLarge, format!("PDF of {pages} pages, at most {}", limits.pages)))
        } else {
            None
        };
        if let Some((damage, detail)) = bad {
            let handle = found.archive(it.data, at.range(it.data));
            let text = attachment_note(&detail, &handle);
            found.note(damage, place, detail);
            return Some(note(&text));
        }
        self.size += it.data.len();
        self.images += usize::from(image);
        if !limits.is_alone {
            let what = match size {
                Some(_) => format!("{mime} of {wide} x {high} px, {mb} MB"),
                None => format!("{mime} of {mb} MB"),
            };
            let new = note(&attachment_note(&what, &(found.handle_of)(it.data.as_bytes())));
            let (side, size, archived) = (wide.max(high), it.data.len(), at.range(it.data));
            self.accepted.push(Accepted { what, size, limits: *limits, side, range, new, archived });
        }
        if let Some(own) = image_type(it.data).filter(|it| image && *it != mime)
            && (limits.is_strict || !limits.types.contains(&mime))
        {
            found.note(Damage::ImageType, place, format!("declared {mime}, it is {own}"));
            it.types.iter().for_each(|it| found.replace(at.range(it), own));
        }
        None
    }

    /// After all were judged: replaces those that are too much together, the oldest first.
    pub(crate) fn archive_excess(mut self, found: &mut Findings<'_>) {
        for it in self.accepted {
            let Limits { side_of_many, request, .. } = it.limits;
            let (damage, why) = if self.images > MANY && it.side > side_of_many {
                (Damage::ImageTooWide, format!("at most {side_of_many} px where there are many"))
            } else if self.size > request {
                let (all, most) = (self.size.div_ceil(MB), request / MB);
                (Damage::RequestTooLarge, format!("attachments of {all} MB, a request takes {most} MB"))
            } else {
                continue;
            };
            self.size -= it.size;
            found.note(damage, it.range.start, format!("{}, {why}", it.what));
            found.archived.push(it.archived);
            found.replace(it.range, it.new);
        }
    }
}

fn attachment_note(detail: &str, handle: &str) -> String {
    format!("[Attachment taken out by epitome repair: {detail}. Original: epitome recall {handle}]")
}

/// Whether a text is base64, possibly in several lines.
fn is_data(text: &str) -> bool {
    !text.is_empty() && text.lines().all(|it| it.is_empty() || is_base64(it))
}
