//! The systems' own heuristics, as they compute them: from a text's [`TextSize`], so in constant time for a part.
//!
//! What none of them counts, such as a frame around a message, is not counted here either.

use super::media;
use super::rates::Maker;
use history::{Call, Media, MediaKind, Message, Opaque, Output, Part, Reasoning, Role, TextSize, is_made_up};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heuristic {
    Chars4,
    Chars4Round,
    Bytes4,
    GeminiCli,
    GeminiCli061,
}

/// Tokens of a plain text.
pub(super) fn text(heuristic: Heuristic, size: TextSize) -> u64 {
    match heuristic {
        Heuristic::Chars4 => size.utf16.div_ceil(4),
        Heuristic::Chars4Round => (size.utf16 + 2) / 4,
        Heuristic::Bytes4 => size.bytes.div_ceil(4),
        Heuristic::GeminiCli => gemini_text(size) / UNIT,
        Heuristic::GeminiCli061 => gemini_text_061(size) / UNIT,
    }
}

/// Tokens of a part by itself.
pub(super) fn part(heuristic: Heuristic, part: &Part, maker: Maker, model: &str) -> u64 {
    match heuristic {
        Heuristic::Chars4 | Heuristic::Chars4Round => {
            text(heuristic, plain(part))
                + attached(part).iter().map(|it| media::tokens(it, maker, model)).sum::<u64>()
        }
        Heuristic::Bytes4 => codex_part(part).div_ceil(4),
        Heuristic::GeminiCli => gemini_part(part) / UNIT,
        Heuristic::GeminiCli061 => gemini_part_061(part) / UNIT,
    }
}

pub(super) fn message(heuristic: Heuristic, message: &Message, maker: Maker, model: &str) -> u64 {
    match heuristic {
        Heuristic::Chars4 | Heuristic::Chars4Round => {
            message.parts.iter().map(|it| part(heuristic, it, maker, model)).sum()
        }
        Heuristic::Bytes4 => codex_message(message),
        // One sum, rounded down once, as `estimateTokenCountSync` does for the parts of a content.
        Heuristic::GeminiCli => message.parts.iter().map(gemini_part).sum::<u64>() / UNIT,
        Heuristic::GeminiCli061 => message.parts.iter().map(gemini_part_061).sum::<u64>() / UNIT,
    }
}

/// All text of a part: of a call its name and arguments. A signature is not text.
fn plain(part: &Part) -> TextSize {
    let text = part.text().map_or_else(TextSize::default, history::Text::size);
    if let Part::Call(call) = part { TextSize::plain(&call.name) + text } else { text }
}

pub(super) fn attached(part: &Part) -> &[Media] {
    match part {
        Part::Media(media) => std::slice::from_ref(media),
        Part::Output(output) => &output.media,
        Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Opaque(_) => &[],
    }
}

// ── Codex: bytes of the item's JSON / 4, rounded up (main of August 2026) ──

/// Bytes that Codex takes for an inline image (about 1,844 tokens).
const CODEX_IMAGE: u64 = 7_373;

/// One item for all text and media of the message, one for each other part.
fn codex_message(message: &Message) -> u64 {
    let mut said = 0;
    let mut tokens = 0;
    for part in &message.parts {
        match codex_content(part, message.role) {
            // A comma before each piece but the first.
            Some(bytes) => said += bytes + u64::from(said > 0),
            None => tokens += codex_part(part).div_ceil(4),
        }
    }
    if said > 0 {
        tokens += (codex_frame(message.role) + said).div_ceil(4);
    }
    tokens
}

fn codex_part(part: &Part) -> u64 {
    match part {
        Part::Text(_) | Part::Media(_) => {
            codex_frame(Role::User) + codex_content(part, Role::User).unwrap_or_default()
        }
        Part::Reasoning(Reasoning { signature: Some(signature), .. }) => encrypted(signature.size().bytes),
        Part::Reasoning(Reasoning { text, signature: None }) => {
            len(r#"{"type":"reasoning","summary":[{"type":"summary_text","text":}]}"#) + string(text.size())
        }
        Part::Call(Call { id, name, input, freeform, .. }) => {
            let frame = if *freeform {
                r#"{"type":"custom_tool_call","status":"completed","call_id":,"name":,"input":}"#
            } else {
                r#"{"type":"function_call","name":,"arguments":,"call_id":}"#
            };
            len(frame) + string(TextSize::of(id)) + string(TextSize::of(name)) + string(input.size())
        }
        Part::Output(Output { id, text, media, .. }) => {
            let images: u64 = media.iter().map(codex_media).sum();
            len(r#"{"type":"function_call_output","call_id":,"output":}"#)
                + string(TextSize::of(id))
                + string(text.size())
                + images
        }
        Part::Opaque(Opaque { kind, raw, .. }) if kind.contains("compaction") => encrypted(raw.size().bytes),
        Part::Opaque(opaque) => opaque.raw.size().bytes,
    }
}

/// A piece of a message's content; none for a part that is an item of its own.
fn codex_content(part: &Part, role: Role) -> Option<u64> {
    let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
    match part {
        Part::Text(text) => Some(len(r#"{"type":"","text":}"#) + len(kind) + string(text.size())),
        Part::Media(media) => Some(codex_media(media)),
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Opaque(_) => None,
    }
}

fn codex_frame(role: Role) -> u64 {
    let role = match role {
        Role::System => "developer",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    len(r#"{"type":"message","role":"","content":[]}"#) + len(role)
}

fn codex_media(media: &Media) -> u64 {
    match media.kind {
        MediaKind::Image if media.is_url() => {
            len(r#"{"type":"input_image","image_url":""}"#) + media.data.len() as u64
        }
        MediaKind::Image => {
            len(r#"{"type":"input_image","image_url":"data:;base64,"}"#)
                + media.mime.len() as u64
                + CODEX_IMAGE
        }
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other => media.data.len() as u64,
    }
}

/// Codex's estimate of the bytes of thinking in encrypted reasoning or an encrypted compaction of `bytes`.
fn encrypted(bytes: u64) -> u64 {
    (bytes * 3 / 4).saturating_sub(650)
}

/// Bytes of a text as a JSON string.
fn string(size: TextSize) -> u64 {
    size.bytes + size.escapes + 2
}

fn len(literal: &str) -> u64 {
    literal.len() as u64
}

// ── Gemini CLI. Sums are in sixtieths of a token, in which all its weights are integers. ──

const UNIT: u64 = 60;

/// 0.25 for each ASCII character and 1.3 for each other (December 2025).
fn gemini_text(size: TextSize) -> u64 {
    size.ascii * (UNIT / 4) + (size.chars - size.ascii) * 78
}

/// 0.61: 1.5 for each UTF-16 unit that is not ASCII; above 100,000 units, length / 4 for all of them.
fn gemini_text_061(size: TextSize) -> u64 {
    if size.utf16 > 100_000 {
        size.utf16 * (UNIT / 4)
    } else {
        size.ascii * (UNIT / 4) + (size.utf16 - size.ascii) * 90
    }
}

/// December 2025: text by its characters, everything else JSON length / 4.
fn gemini_part(part: &Part) -> u64 {
    match part {
        Part::Text(text) => gemini_text(text.size()),
        Part::Reasoning(reasoning) => gemini_text(reasoning.text.size()),
        Part::Call(call) => gemini_call(call),
        Part::Output(output) => {
            let name = output.name.as_deref().unwrap_or_default();
            let frame = len(r#"{"functionResponse":{"name":,"response":}}"#) + gemini_id(&output.id);
            let media: u64 = output.media.iter().map(gemini_inline).sum();
            json4(frame + TextSize::of(name).json() + gemini_response(output)) + media
        }
        Part::Media(media) => gemini_inline(media),
        Part::Opaque(opaque) => json4(opaque.raw.size().utf16),
    }
}

/// 0.61: an output by the length of its name and payload, an image 3,000, a PDF 25,800.
fn gemini_part_061(part: &Part) -> u64 {
    match part {
        Part::Text(text) => gemini_text_061(text.size()),
        Part::Reasoning(reasoning) => gemini_text_061(reasoning.text.size()),
        Part::Call(call) => gemini_call(call),
        Part::Output(output) => {
            let name = output.name.as_deref().map_or(0, |it| TextSize::plain(it).utf16);
            // Attachments are in nested `parts`, whose sum is rounded down on its own.
            let nested = output.media.iter().map(gemini_media_061).sum::<u64>() / UNIT * UNIT;
            json4(name) + json4(gemini_response(output)) + nested
        }
        Part::Media(media) => gemini_media_061(media),
        Part::Opaque(opaque) => json4(opaque.raw.size().utf16),
    }
}

fn gemini_call(call: &Call) -> u64 {
    let signature = call.signature.as_ref().map_or(0, |it| len(r#","thoughtSignature":"#) + it.size().json());
    let frame = len(r#"{"functionCall":{"name":,"args":}}"#) + gemini_id(&call.id);
    json4(frame + TextSize::of(&call.name).json() + call.input.size().utf16 + signature)
}

/// Length of `"id":"…",`, which contents without ids do not have.
fn gemini_id(id: &str) -> u64 {
    if id.is_empty() || is_made_up(id) { 0 } else { len(r#""id":,"#) + TextSize::of(id).json() }
}

/// Length of `{"output":"…"}` or `{"error":"…"}`, which is how a response is sent.
fn gemini_response(output: &Output) -> u64 {
    len(if output.failed { r#"{"error":}"# } else { r#"{"output":}"# }) + output.text.size().json()
}

fn gemini_media_061(media: &Media) -> u64 {
    match media.kind {
        MediaKind::Image => 3_000 * UNIT,
        MediaKind::Pdf => 25_800 * UNIT,
        MediaKind::Audio | MediaKind::Other => gemini_inline(media),
    }
}

fn gemini_inline(media: &Media) -> u64 {
    let frame = if media.is_url() {
        r#"{"fileData":{"mimeType":"","fileUri":""}}"#
    } else {
        r#"{"inlineData":{"mimeType":"","data":""}}"#
    };
    json4(len(frame) + media.mime.len() as u64 + media.data.len() as u64)
}

fn json4(length: u64) -> u64 {
    length * (UNIT / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Text;

    fn gemini(parts: Vec<Part>) -> u64 {
        let it = Message::new(Role::User, history::Kind::Said, parts);
        message(Heuristic::GeminiCli061, &it, Maker::Google, "")
    }

    fn said(text: impl Into<Text>) -> Part {
        Part::Text(text.into())
    }

    fn media(kind: MediaKind, mime: &str, data: &str) -> Part {
        Part::Media(Media { kind, mime: mime.into(), data: data.into(), size: None })
    }

    fn output(name: &str, text: impl Into<Text>) -> Output {
        let name = Some(name.into());
        Output { name, ..Output::new("", text) }
    }

    fn call(name: &str, input: &str) -> Part {
        let (id, name, input) = ("".into(), name.into(), input.into());
        Part::Call(Call { id, name, input, freeform: false, signature: None })
    }

    /// Results of Gemini CLI 0.61's own function.
    #[test]
    fn gemini_cli_as_executed() {
        for (text, tokens) in [
            ("Hello world!".to_owned(), 3),
            ("你好".into(), 3),
            ("Hi你好".into(), 3),
            ("日本語テキスト".into(), 10),
            ("😀".into(), 3),
            ("a".repeat(200_000), 50_000),
            ("あ".repeat(100_000), 150_000),
            ("あ".repeat(100_001), 25_000),
            (String::new(), 0),
        ] {
            assert_eq!(gemini(vec![said(text.as_str())]), tokens, "{text:.20}");
        }
        assert_eq!(gemini(vec![call("foo", r#"{"bar":"baz"}"#)]), 13);
        assert_eq!(gemini(vec![Part::Output(output("my_tool", "x".repeat(6000)))]), 1505);
        assert_eq!(gemini(vec![media(MediaKind::Image, "image/png", "abcd")]), 3_000);
        assert_eq!(gemini(vec![media(MediaKind::Pdf, "application/pdf", "abcd")]), 25_800);
        assert_eq!(gemini(vec![media(MediaKind::Audio, "audio/mp3", "abcd")]), 13);
        assert_eq!(gemini(vec![]), 0);
        assert_eq!(gemini(vec![said("Hello"), media(MediaKind::Image, "image/png", "abcd")]), 3_001);
        let mut with_image = output("my_tool", "x".repeat(6000));
        with_image.media =
            [Media { kind: MediaKind::Image, mime: "image/png".into(), data: "".into(), size: None }].into();
        assert_eq!(gemini(vec![Part::Output(with_image)]), 4_505);
        // A bare string as response, which is in no session: name "t" and 8 characters.
        assert_eq!((json4(1) + json4(8)) / UNIT, 2);
    }

    #[test]
    fn gemini_cli_0_61_counts_long_texts_by_their_length() {
        assert_eq!(gemini_text_061(TextSize::of(&"a".repeat(120_000))) / UNIT, 30_000);
        assert_eq!(gemini_text_061(TextSize::of(&"é".repeat(120_000))) / UNIT, 30_000);
    }

    #[test]
    fn gemini_cli_of_december_2025() {
        let tokens = |it: &str| text(Heuristic::GeminiCli, TextSize::of(it));
        assert_eq!(
            (tokens("Hello world!"), tokens("你好"), tokens("😀"), tokens("日本語テキスト")),
            (3, 2, 1, 9)
        );
        // No jump above 100,000.
        assert_eq!(tokens(&"あ".repeat(100_001)), 130_001);
        // Everything that is not text by its JSON.
        assert_eq!(part(Heuristic::GeminiCli, &call("foo", r#"{"bar":"baz"}"#), Maker::Google, ""), 13);
        let read = Part::Output(output("read", "abc"));
        let json = r#"{"functionResponse":{"name":"read","response":{"output":"abc"}}}"#;
        assert_eq!(part(Heuristic::GeminiCli, &read, Maker::Google, ""), json.len() as u64 / 4);
    }

    #[test]
    fn chars_and_bytes() {
        for (it, up, half_up, bytes) in [
            ("", 0, 0, 0),
            ("a", 1, 0, 1),
            ("ab", 1, 1, 1),
            ("abcde", 2, 1, 2),
            ("日本語", 1, 1, 3),
            ("😀😀😀", 2, 2, 3),
        ] {
            let size = TextSize::of(it);
            assert_eq!(text(Heuristic::Chars4, size), up, "{it}");
            assert_eq!(text(Heuristic::Chars4Round, size), half_up, "{it}");
            assert_eq!(text(Heuristic::Bytes4, size), bytes, "{it}");
        }
        assert_eq!(part(Heuristic::Chars4, &call("read", r#"{"path":"a"}"#), Maker::Other, ""), 4);
    }

    /// The items as Codex writes them, counted by hand.
    #[test]
    fn codex_items_are_their_json() {
        let tokens = |it: &Part| part(Heuristic::Bytes4, it, Maker::OpenAi, "");
        let by_json = |json: &str| (json.len() as u64).div_ceil(4);
        let json = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a\"b\n"}]}"#;
        assert_eq!(tokens(&said("a\"b\n")), by_json(json));
        let json = r#"{"type":"function_call","name":"shell","arguments":"{\"x\":1}","call_id":""}"#;
        assert_eq!(tokens(&call("shell", r#"{"x":1}"#)), by_json(json));
        let json = r#"{"type":"function_call_output","call_id":"","output":"ok"}"#;
        assert_eq!(tokens(&Part::Output(output("shell", "ok"))), by_json(json));
        let both = Message::new(Role::Assistant, history::Kind::Said, vec![said("x"), said("y")]);
        let json = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"},{"type":"output_text","text":"y"}]}"#;
        assert_eq!(message(Heuristic::Bytes4, &both, Maker::OpenAi, ""), by_json(json));
        // Encrypted reasoning: three quarters of its length minus 650 bytes, never below zero.
        let thought = |bytes: usize| {
            Part::Reasoning(Reasoning { text: "".into(), signature: Some("x".repeat(bytes).into()) })
        };
        assert_eq!((tokens(&thought(100)), tokens(&thought(2_000))), (0, (1_500 - 650u64).div_ceil(4)));
        // An image is 7,373 bytes whatever it is.
        let image = tokens(&media(MediaKind::Image, "image/png", &"A".repeat(100_000)));
        assert!((1_844..1_880).contains(&image), "{image}");
    }
}
