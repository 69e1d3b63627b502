//! Guesses the language of a text: by script, and in Latin script by frequent function words. Pure.

/// Function words that are frequent in one language and rare in the others; some stand for several languages.
const SMALL: [(&str, &[&str]); 8] = [
    (
        "English",
        &[
            "the", "and", "of", "to", "is", "in", "that", "for", "it", "with", "was", "not", "this", "are",
            "be", "on", "you", "should", "have", "what", "must", "from", "we",
        ],
    ),
    (
        "German",
        &[
            "der", "die", "das", "und", "ist", "nicht", "ein", "eine", "zu", "den", "mit", "von", "auf",
            "für", "wird", "im", "dem", "sich", "auch", "noch", "wurde", "bitte", "soll", "werden", "sind",
            "kein", "keine", "nur", "wir", "ich", "muss", "bei", "oder",
        ],
    ),
    (
        "French",
        &[
            "le", "la", "les", "et", "est", "des", "une", "un", "du", "dans", "pour", "pas", "que", "qui",
            "sur", "avec", "au", "ce", "il", "ne", "sont", "doit", "être", "aux", "par", "nous", "je",
        ],
    ),
    (
        "Spanish",
        &[
            "el", "la", "los", "las", "y", "es", "de", "que", "en", "un", "una", "por", "con", "para", "no",
            "se", "del", "lo", "está", "como", "pero", "al", "ser", "debe", "son", "su",
        ],
    ),
    (
        "Portuguese",
        &[
            "o", "os", "as", "e", "é", "de", "que", "em", "um", "uma", "por", "com", "para", "não", "se",
            "do", "da", "dos", "das", "no", "na", "ao", "deve", "são", "foi",
        ],
    ),
    (
        "Italian",
        &[
            "il", "lo", "gli", "e", "è", "di", "che", "un", "una", "per", "con", "non", "si", "del", "della",
            "nel", "sono", "deve", "alla", "dei", "delle", "questo",
        ],
    ),
    (
        "Dutch",
        &[
            "de", "het", "een", "en", "is", "niet", "van", "te", "dat", "voor", "met", "op", "zijn", "er",
            "ook", "wordt", "moet", "naar", "geen", "bij", "deze",
        ],
    ),
    (
        "Polish",
        &[
            "nie", "jest", "się", "na", "do", "że", "jak", "ale", "tak", "przez", "oraz", "dla", "który",
            "są", "musi", "przed", "tylko",
        ],
    ),
];

/// The English name of a text's language; `None` if the text is too short or no language stands out. Code,
/// paths and quotations should be removed first.
pub fn of(text: &str) -> Option<&'static str> {
    let (mut han, mut kana, mut hangul, mut cyrillic, mut arabic, mut latin) =
        (0u32, 0u32, 0u32, 0u32, 0u32, 0u32);
    for c in text.chars() {
        match u32::from(c) {
            0x4E00..=0x9FFF | 0x3400..=0x4DBF => han += 1,
            0x3040..=0x30FF => kana += 1,
            0xAC00..=0xD7AF => hangul += 1,
            0x0400..=0x04FF => cyrillic += 1,
            0x0600..=0x06FF => arabic += 1,
            _ if c.is_alphabetic() => latin += 1,
            _ => {}
        }
    }
    // A Han character carries about as much as three Latin letters.
    let scripts = [
        (kana * 3 + if kana * 10 > han { han * 3 } else { 0 }, "Japanese"),
        (if kana * 10 > han { 0 } else { han * 3 }, "Chinese"),
        (hangul * 3, "Korean"),
        (cyrillic, "Russian"),
        (arabic, "Arabic"),
    ];
    // `scripts` is never empty.
    let (most, name) = scripts.into_iter().max_by_key(|it| it.0).unwrap_or_default();
    if most >= 12 && most * 2 > latin {
        return Some(name);
    }
    let mut counts = [0u32; SMALL.len()];
    let mut words = 0u32;
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|it| !it.is_empty()) {
        words += 1;
        let word = word.to_lowercase();
        for (count, (_, small)) in counts.iter_mut().zip(SMALL) {
            *count += u32::from(small.contains(&word.as_str()));
        }
    }
    let best = (0..SMALL.len()).max_by_key(|it| counts[*it])?;
    let second = (0..SMALL.len()).filter(|it| *it != best).map(|it| counts[it]).max().unwrap_or(0);
    let stands_out = counts[best] >= 4 && counts[best] * 12 >= words && counts[best] * 2 >= second * 3;
    stands_out.then_some(SMALL[best].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_them_apart() {
        let cases = [
            (
                "Please fix the parser and do not touch the tests; it is important that we keep the order.",
                Some("English"),
            ),
            (
                "Bitte den Parser reparieren und die Tests nicht anfassen; das ist wichtig für die Reihenfolge.",
                Some("German"),
            ),
            (
                "Il faut réparer le parser et ne pas toucher aux tests, c'est important pour la suite.",
                Some("French"),
            ),
            (
                "Hay que arreglar el parser y no tocar los tests, es importante para el orden de las cosas.",
                Some("Spanish"),
            ),
            ("请修复解析器，不要修改测试文件，这一点很重要。", Some("Chinese")),
            ("パーサーを直してください。テストは変更しないでください。", Some("Japanese")),
            ("파서를 고쳐 주세요. 테스트는 건드리지 마세요.", Some("Korean")),
            ("Почини парсер и не трогай тесты, это важно.", Some("Russian")),
            ("cargo test --lib", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
