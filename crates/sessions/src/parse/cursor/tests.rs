use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

/// Texts of which some are JSON, and all prefixes of them.
fn texts() -> Vec<String> {
    let whole = [
        r#" { "a" : {"x": 1.50, "":[]}, "b\n":"é\u00e9\ud83d\ude00", "n": null, "l":[1, {"k":2}] , "a": -7e+3}"#,
        r#"["\"\\\/\b\f\n\r\t","long enough for eight at once, twice: é漢字😀",true,false,null,0,-0,10,0.5,1E9,{}]"#,
        r#""\ud83d""#,
        r#""\ude00\ud83d""#,
        r#""\ud83dx\ude00""#,
        r#""\uD83D\uDE00\u12aB""#,
        "\"a\u{1}b\"",
        "\"a\u{7f}b\"",
        "\"a long string with a tab \t in it\"",
        r#""\x""#,
        r#""\u12g4""#,
        r#""\u+123""#,
        "01",
        "-",
        "1.",
        "1.e3",
        "1e",
        ".5",
        "+1",
        "-01",
        "1 2",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "[1}",
        "nul",
        "truex",
        "[nulll]",
        "\u{a0}1",
        "",
        " ",
        "[[[[[[]]]]]]",
        "{\"a\":[{\"b\":{}}]}",
    ];
    let cut = whole.iter().flat_map(|it| it.char_indices().map(|(at, _)| it[..at].to_owned()));
    cut.chain(whole.iter().map(|it| (*it).to_owned())).collect()
}

#[test]
fn passes_over_json_and_nothing_else() {
    for text in texts() {
        let found = Cursor::whole(text.as_bytes(), Cursor::value);
        let expected: Option<&RawValue> = serde_json::from_str(&text).ok();
        assert_eq!(found, expected.map(RawValue::get), "{text}");
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(Cursor::whole(deep.as_bytes(), Cursor::value), Some(deep.as_str()));
}

#[test]
fn reads_strings_as_any_other() {
    let mut buffer = DecodeBuffer::default();
    for text in texts() {
        let expected: Option<String> = serde_json::from_str(&text).ok();
        assert_eq!(
            Cursor::whole(text.as_bytes(), |it| it.text(&mut buffer).map(str::to_owned)),
            expected,
            "{text}"
        );
        assert_eq!(Cursor::whole(text.as_bytes(), Cursor::string).map(Cow::into_owned), expected, "{text}");
    }
    // Each position of a character within a block.
    for len in 0..40 {
        for end in ["\\n", "", "\u{1}", "é", "\u{7f}", "\u{a0}"] {
            let text = format!("\"{}{end}{}\"", "x".repeat(len), "y".repeat(len / 2));
            let expected: Option<String> = serde_json::from_str(&text).ok();
            assert_eq!(
                Cursor::whole(text.as_bytes(), Cursor::string).map(Cow::into_owned),
                expected,
                "{text}"
            );
        }
    }
}

#[test]
fn goes_through_objects_and_lists() {
    fn value(cursor: &mut Cursor<'_>) -> Option<Value> {
        Some(match cursor.peek()? {
            b'{' => {
                let mut out = serde_json::Map::new();
                cursor.object(|it, name| {
                    out.insert(name.to_owned(), value(it)?);
                    Some(())
                })?;
                out.into()
            }
            b'[' => {
                let mut out = Vec::new();
                cursor.list(|it| {
                    out.push(value(it)?);
                    Some(())
                })?;
                out.into()
            }
            b'"' => cursor.string()?.into(),
            b'n' => cursor.some(|_| None::<()>)?.map_or(Value::Null, |()| Value::Null),
            _ => serde_json::from_str(cursor.value()?).ok()?,
        })
    }
    for text in texts() {
        assert_eq!(Cursor::whole(text.as_bytes(), value), serde_json::from_str(&text).ok(), "{text}");
    }
}

#[test]
fn fields_are_optional_and_types_may_come_late() {
    let read = |text: &str| {
        Cursor::whole(text.as_bytes(), |it| {
            it.typed(None, |it, found: &mut Vec<String>, tag, name| {
                let value = match name {
                    "number" => it.optional_number()?.map(|it| it.to_string()),
                    "word" => Some(it.begins_with(b't')?.to_string()),
                    _ => it.optional_string()?.map(Cow::into_owned),
                };
                found.push(format!("{tag} {name} {}", value.unwrap_or_default()));
                Some(())
            })
            .map(|(tag, found)| (tag.map(Cow::into_owned), found.join(",")))
        })
    };
    for (text, tag, found) in [
        (r#"{"type":"a","x":"y","number":7}"#, Some("a"), "a x y,a number 7"),
        (r#"{"x":"y","type":"a"}"#, Some("a"), "a x y"),
        (r#"{"type":"b","x":1,"type":"a","word":true}"#, Some("a"), "a x ,a word true"),
        (r#"{"type":"b","number":-1,"type":null}"#, None, " number "),
        (r#"{"type":"b","type":[]}"#, None, ""),
    ] {
        assert_eq!(read(text), Some((tag.map(str::to_owned), found.to_owned())), "{text}");
    }
    assert_eq!(read(r#"{"type":"a""#), None);
    let string = |bytes: &[u8]| Cursor::mended(bytes, |it| it.string().map(Cow::into_owned));
    assert_eq!(string(br#""a\\ud83d""#), Some("a\\ud83d".to_owned()));
    assert_eq!(string(b"\"a\\ud83d\xff\""), Some("a\u{fffd}?".to_owned()));
    assert_eq!(string(b"\"a\xff"), None);
}

#[test]
fn knows_white_space_between_tokens() {
    let tight = |text: &'static str| Cursor::whole(text.as_bytes(), Cursor::value_tight).unwrap().1;
    assert!(tight(r#" {"a b":"c d","e":[1,2]} "#) && !tight(r#"{"a":1, "b":2}"#) && !tight("[ ]"));
}

#[test]
fn what_is_taken_is_text() {
    let bytes = b"{\"a\xff\":1,\"b\":\"\xff\",\"c\":\"\xff\\n\"}";
    assert_eq!(Cursor::whole(&bytes[..], Cursor::pass), Some(()));
    assert_eq!(Cursor::whole(&bytes[..], Cursor::value), None);
    for string in [&bytes[1..5], &bytes[12..15], &bytes[20..25]] {
        assert_eq!(Cursor::whole(string, Cursor::pass), Some(()), "{string:?}");
        assert_eq!(Cursor::whole(string, Cursor::string), None, "{string:?}");
    }
}
