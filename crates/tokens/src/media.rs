//! The tokens of an attachment, which depend on the model's maker.

use super::rates::Maker;
use history::{Media, MediaKind};

/// Tokens of an attachment for a maker's models. Sessions do not record with which `detail` or
/// `media_resolution` an image was sent, so each maker's default is assumed; if the size cannot be read, that
/// of a screenshot (about 1280×800).
pub(super) fn tokens(media: &Media, maker: Maker, model: &str) -> u64 {
    match media.kind {
        MediaKind::Image => match maker {
            Maker::Anthropic => anthropic(media.size, model),
            Maker::OpenAi => openai(media.size, model),
            Maker::Google => google(media.size, model),
            Maker::Other => media.size.map_or(UNKNOWN, |size| patches(size, 28).min(1_600)),
        },
        MediaKind::Pdf => pages(media) * per_page(maker, model),
        // 32 tokens a second (Gemini) or 10 (OpenAI), at 4 kB a second for compressed speech.
        MediaKind::Audio => decoded(media) / 4_000 * 32,
        MediaKind::Other => UNKNOWN,
    }
}

/// Why a maker's API refuses an image in a request that holds `count` of them. Anthropic's limits (platform.claude.com
/// "Images and vision", 2026): 8,000 pixels a side, 2,000 where there are more than 20 images, 5 MB of base64. The other
/// makers shrink what is too large.
pub(super) fn refused(media: &Media, maker: Maker, count: usize) -> Option<String> {
    const MANY: usize = 20;
    const BYTES: usize = 5 << 20;
    if maker != Maker::Anthropic || media.kind != MediaKind::Image || media.is_url() {
        return None;
    }
    let most = if count > MANY { 2_000 } else { 8_000 };
    if let Some((width, height)) = media.size.filter(|it| it.0.max(it.1) > most) {
        let among = if count > MANY { format!(" in a request with {count} images") } else { String::new() };
        return Some(format!("{width}×{height} pixels, at most {most} per side are accepted{among}"));
    }
    let megabytes = media.data.len() as f64 / f64::from(1 << 20);
    (media.data.len() > BYTES).then(|| format!("{megabytes:.1} MB, at most 5 MB are accepted"))
}

/// For an image of which nothing is known.
const UNKNOWN: u64 = 1_300;

/// Squares of `side` pixels that cover the image.
fn patches((width, height): (u32, u32), side: u32) -> u64 {
    u64::from(width.div_ceil(side).max(1)) * u64::from(height.div_ceil(side).max(1))
}

/// The size after shrinking, with the aspect ratio kept, so that it satisfies both bounds.
fn shrunk((width, height): (u32, u32), long_edge: f64, side: f64, most: f64) -> (u32, u32) {
    let (w, h) = (f64::from(width.max(1)), f64::from(height.max(1)));
    let edge = (long_edge / w.max(h)).min(1.0);
    let area = (most * side * side / (w * h)).sqrt().min(1.0);
    let scale = edge.min(area);
    ((w * scale) as u32, (h * scale) as u32)
}

/// Patches of 28 pixels. Up to Claude 4.6 the long edge is at most 1568 pixels and the image at most 1,568 patches;
/// since Opus 4.7 2576 pixels and 4,784 patches (platform.claude.com "Images and vision", 2026; count_tokens measured
/// there gives 1,560 for any large screenshot on 4.6). The older formula, width × height / 750, is within 5 %.
fn anthropic(size: Option<(u32, u32)>, model: &str) -> u64 {
    let Some(size) = size else { return 1_400 };
    let small = ["claude-3", "-4-0", "-4-1", "-4-2", "-4-5", "-4-6"].iter().any(|it| model.contains(it));
    let (long_edge, most) = if small { (1_568.0, 1_568.0) } else { (2_576.0, 4_784.0) };
    patches(shrunk(size, long_edge, 28.0, most), 28).min(most as u64)
}

/// Since GPT-5.4 patches of 32 pixels, at most 2,500, times 1.2; before, after fitting into 2048 and shrinking the
/// short side to 768, tiles of 512 pixels: 70 + 140 a tile (GPT-5), 85 + 170 (GPT-4o, 4.1), 75 + 150 (o1, o3)
/// (developers.openai.com "Images and vision", 2026).
fn openai(size: Option<(u32, u32)>, model: &str) -> u64 {
    let tiles = if model.starts_with('o') {
        Some((75, 150))
    } else if model.contains("gpt-4") {
        Some((85, 170))
    } else if ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"].iter().any(|it| model.contains(it)) {
        None
    } else {
        Some((70, 140))
    };
    match (tiles, size) {
        (None, None) => 1_229,
        (None, Some(size)) if patches(size, 32) <= 2_500 => (patches(size, 32) * 6).div_ceil(5),
        // Shrunk to what fits, and cut to whole patches.
        (None, Some(size)) => {
            let (width, height) = shrunk(size, f64::MAX, 32.0, 2_500.0);
            (u64::from(width / 32).max(1) * u64::from(height / 32).max(1) * 6).div_ceil(5)
        }
        (Some((base, tile)), None) => base + 4 * tile,
        (Some((base, tile)), Some(size)) => {
            let (width, height) = shrunk(size, 2_048.0, 1.0, f64::MAX);
            let short = f64::from(width.min(height).max(1));
            let scale = (768.0 / short).min(1.0);
            let size = ((f64::from(width) * scale) as u32, (f64::from(height) * scale) as u32);
            base + tile * patches(size, 512)
        }
    }
}

/// Up to Gemini 2.5 258 tokens if both sides are at most 384 pixels, else 258 for each tile of 768; since Gemini 3 by
/// `media_resolution`, by default up to 1,120 whatever the size (ai.google.dev, 2026).
fn google(size: Option<(u32, u32)>, model: &str) -> u64 {
    let tiled = ["gemini-1", "gemini-2"].iter().any(|it| model.contains(it));
    match (tiled, size) {
        (false, _) => 1_100,
        (true, None) => 4 * 258,
        (true, Some((width, height))) if width <= 384 && height <= 384 => 258,
        (true, Some(size)) => 258 * patches(size, 768),
    }
}

/// A page costs its text and, with Anthropic and OpenAI, its picture as well (platform.claude.com "PDF support":
/// 1,500–3,000 of text; Gemini 258 a page, 560 since Gemini 3).
fn per_page(maker: Maker, model: &str) -> u64 {
    match maker {
        Maker::Anthropic | Maker::OpenAi | Maker::Other => 3_000,
        Maker::Google if model.contains("gemini-2") || model.contains("gemini-1") => 258,
        Maker::Google => 560,
    }
}

/// Pages of a PDF, estimated from its size: sessions do not record how many there are. 50 kB a page, at most
/// 100.
fn pages(media: &Media) -> u64 {
    (decoded(media) / 50_000).clamp(1, 100)
}

/// Bytes of the attachment itself, or 0 if it is only a reference.
fn decoded(media: &Media) -> u64 {
    if media.is_url() { 0 } else { media.data.len() as u64 * 3 / 4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(size: Option<(u32, u32)>) -> Media {
        Media { kind: MediaKind::Image, mime: "image/png".into(), data: "".into(), size }
    }

    /// Sizes with the tokens that were measured for them, less the prompt around the image: Claude Haiku 4.5,
    /// GPT-6 (high detail), Gemini 3.
    #[test]
    fn agrees_with_measured_images() {
        for (size, claude, gpt, gemini) in [
            ((256, 256), 100, 77, 1_090),
            ((512, 512), 361, 308, 1_090),
            ((768, 768), 784, 692, 1_090),
            ((1024, 1024), 1_369, 1_229, 1_090),
            ((1280, 720), 1_196, 1_104, 1_101),
            ((1920, 1080), 1_560, 2_448, 1_101),
            ((2560, 1440), 1_560, 2_931, 1_101),
            ((3840, 2160), 1_560, 2_931, 1_101),
        ] {
            let near = |found: u64, expected: u64| found.abs_diff(expected) * 50 <= expected;
            let media = image(Some(size));
            let found = tokens(&media, Maker::Anthropic, "claude-haiku-4-5");
            assert!(near(found, claude), "claude {size:?}: {found}");
            let found = tokens(&media, Maker::OpenAi, "gpt-6");
            assert!(near(found, gpt), "gpt {size:?}: {found}");
            let found = tokens(&media, Maker::Google, "gemini-3.1-pro-preview");
            assert!(near(found, gemini), "gemini {size:?}: {found}");
        }
    }

    #[test]
    fn counts_tiles_as_the_makers_examples_do() {
        // 1024×1024 is shrunk to 768×768, four tiles; 2048×4096 to 768×1536, six (OpenAI's own examples).
        assert_eq!(tokens(&image(Some((1024, 1024))), Maker::OpenAi, "gpt-4o"), 765);
        assert_eq!(tokens(&image(Some((2048, 4096))), Maker::OpenAi, "gpt-4o"), 1_105);
        assert_eq!(tokens(&image(Some((300, 300))), Maker::Google, "gemini-2.5-flash"), 258);
        assert_eq!(tokens(&image(Some((1000, 800))), Maker::Google, "gemini-2.5-flash"), 1_032);
    }

    #[test]
    fn what_the_api_refuses_is_known() {
        let of = |size, bytes: usize| Media { data: "A".repeat(bytes).into(), ..image(size) };
        let (wide, large) = (of(Some((9_000, 20)), 100), of(Some((2_500, 20)), 100));
        let heavy = of(Some((20, 20)), 6 << 20);
        let claude = |media: &Media, count| refused(media, Maker::Anthropic, count);
        assert!(claude(&wide, 1).is_some_and(|it| it.contains("9000×20") && it.contains("8000")));
        assert_eq!((claude(&large, 20), refused(&wide, Maker::OpenAi, 1)), (None, None));
        assert!(claude(&large, 21).is_some_and(|it| it.contains("2000") && it.contains("21 images")));
        assert!(claude(&heavy, 1).is_some_and(|it| it.contains("6.0 MB")));
    }

    #[test]
    fn absurd_sizes_are_bounded() {
        for maker in [Maker::Anthropic, Maker::OpenAi, Maker::Google, Maker::Other] {
            for size in [None, Some((0, 0)), Some((1, u32::MAX)), Some((u32::MAX, u32::MAX))] {
                assert!(tokens(&image(size), maker, "claude-opus-5") < 10_000 || maker == Maker::Google);
            }
        }
    }
}
