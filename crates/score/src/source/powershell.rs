//! Lines of PowerShell that only look around: `$l = Get-Content a; $l[2..9] | % { "$_" }`.

use crate::program_words;

/// What may stand before a command, and short names of cmdlets that look.
const AROUND: [&str; 18] = [
    "%", "?", "else", "elseif", "for", "foreach", "ft", "gc", "gci", "if", "in", "measure", "return",
    "select", "sls", "try", "where", "while",
];
/// What may change something, wherever it stands.
const ACTS: [&str; 10] = [
    "::Copy", "::Create", "::Delete", "::Move", "::Set", "::Start", "::Write", ".Delete(", ".Kill(", ".Save(",
];

pub(super) fn looks(line: &str) -> bool {
    let mut text = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                text.push('$');
            }
            None => text.push(c),
        }
    }
    let text = text.replace("2>$null", "").replace("2>&1", "");
    let verbs: Vec<&str> = line.split([' ', '|', ';', '{', '(', '=', '\n']).filter_map(cmdlet_verb).collect();
    let begins = |part: &str| match part.split_whitespace().find(|it| *it != "in") {
        None => true,
        Some(word) => {
            word.starts_with(|it: char| it.is_ascii_digit() || "$-[]@.+*!:<".contains(it))
                || AROUND.contains(&word)
                || cmdlet_verb(word).is_some()
                || program_words::LOOKING.contains(&word)
        }
    };
    !verbs.is_empty()
        && verbs
            .iter()
            .all(|it| program_words::LOOKING_VERBS.contains(it) || ["ForEach", "Where"].contains(it))
        && !text.contains(['>', '&'])
        && !ACTS.iter().any(|it| line.contains(it))
        && text.split(['|', ';', '{', '}', '(', ')', '=', ',', '\n']).all(begins)
}

/// The verb of PowerShell's command `Verb-Noun`, unless it only passes on or prints what it is given.
pub(super) fn cmdlet_verb(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(['(', '{', '$', '@']);
    let (verb, noun) = word.split_once('-')?;
    let name = |it: &str| {
        it.starts_with(|c: char| c.is_ascii_uppercase()) && it.bytes().all(|it| it.is_ascii_alphabetic())
    };
    (name(verb) && name(noun.trim_end_matches([')', '}'])) && !program_words::LOOKING.contains(&word))
        .then_some(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_is_told_from_what_acts() {
        for (line, expected) in [
            ("$i=1; Get-Content a | % { if($_ -match 'x'){ Write-Output \"l:$i\" }; $i++ }", true),
            ("$s=(Get-Content -Raw a); $s.Substring(5, [Math]::Min(9, $s.Length-5))", true),
            ("$l = Get-Content a; foreach($x in $l){ if($i -ge 3){ \"{0:D3}: $x\" -f $i } }", true),
            ("Get-Content a | % { rm $_ }", false),
            ("$t = Get-Content a; npm test", false),
            ("Get-Content a | Set-Content b", false),
            ("Get-Content a > b", false),
            ("ls | sort", false),
        ] {
            assert_eq!(looks(line), expected, "{line}");
        }
    }
}
