//! Words that mark rules, choices, outcomes and the like in several languages. Data only: a new language is
//! new lines. Latin, Cyrillic and Greek cues are whole words in lower case; those of dense script match
//! anywhere.

use std::sync::LazyLock;

use super::probe::{FileOp, Polarity};
use FileOp::{Created, Deleted, Edited, Read};
use Place::{Anywhere, Opening};
use Polarity::{Forbid, Require};

/// Where in a clause a cue counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// At the start of a clause, where verbs are orders.
    Opening,
}

pub(super) struct Cue {
    pub(super) words: &'static str,
    pub(super) sign: Polarity,
    pub(super) place: Place,
}

/// Cues of obligation. If two start at the same word, the one that is earlier in the table counts.
pub(super) static OBLIGATION: LazyLock<Vec<Cue>> = LazyLock::new(|| {
    let cues = |(sign, place, words): (Polarity, Place, &'static [&'static str])| {
        words.iter().map(move |words| Cue { words, sign, place })
    };
    OBLIGATIONS.iter().copied().flat_map(cues).collect()
});

const OBLIGATIONS: &[(Polarity, Place, &[&str])] = &[
    // English
    (Require, Anywhere, &["don't forget", "do not forget", "never forget"]),
    (Forbid, Anywhere, &[
        "must not", "must never", "mustn't", "should not", "should never", "shouldn't", "need not", "may not",
        "not allowed", "is forbidden", "are forbidden", "prohibited", "off limits", "no need for",
        "no need to", "we don't need", "we do not need", "we don't want", "we do not want", "i don't want",
        "i do not want", "we no longer need", "needs no", "without touching", "without changing",
        "without breaking", "without adding", "without modifying", "without using",
    ]),
    (Forbid, Opening, &[
        "never", "don't", "dont", "do not", "avoid", "refrain from", "stop using", "under no circumstances",
        "no more",
    ]),
    (Require, Anywhere, &["can only", "will only", "may only"]),
    (Forbid, Anywhere, &["you cannot", "you can't", "you can not"]),
    (Require, Anywhere, &[
        "must", "has to be", "have to be", "needs to", "need to be", "should", "is required", "are required",
        "is mandatory", "it is important that", "it's important that", "at most", "at least",
        "no longer than", "not more than", "no more than", "make sure", "stick to",
    ]),
    (Require, Opening, &["always", "ensure", "only", "use only", "prefer", "keep", "leave"]),
    (Require, Anywhere, &["use only", "only use", "only touch", "only change", "only edit", "only modify"]),
    // Chinese, simplified and traditional
    (Forbid, Anywhere, &[
        "不要", "不得", "不可以", "不可", "不许", "不許", "不准", "不能", "不应", "不應", "禁止", "严禁",
        "嚴禁", "切勿", "请勿", "請勿", "不用", "不需要", "避免", "绝不", "絕不",
    ]),
    (Require, Anywhere, &[
        "必须", "必須", "务必", "務必", "一定要", "一律", "只能", "只允许", "只允許", "应该", "應該", "应当",
        "應當", "请确保", "請確保", "确保", "確保", "始终", "始終", "统一", "統一", "优先", "優先",
    ]),
    // Japanese
    (Forbid, Anywhere, &[
        "しないで", "ないでください", "ないで下さい", "てはいけない", "てはいけません", "てはならない",
        "ではならない", "べきではない", "べきでない", "使わないこと", "しないこと", "ないこと", "不要です",
        "厳禁", "避けて",
    ]),
    (Require, Anywhere, &[
        "必ず", "なければならない", "なければなりません", "べきです", "べき", "してください必ず", "のみ使",
        "だけを使", "すること", "常に", "徹底",
    ]),
    // Korean
    (Forbid, Anywhere, &["하지 마", "하지마", "지 마세요", "지 말", "금지", "안 됩니다", "안 돼", "절대"]),
    (Require, Anywhere, &["반드시", "항상", "꼭", "해야", "만 사용"]),
    // Spanish
    (Forbid, Opening, &[
        "no uses", "no usar", "no toques", "no modifiques", "no cambies", "no añadas", "no hagas",
    ]),
    (Forbid, Anywhere, &["nunca", "jamás", "no debe", "no debes", "no se debe", "prohibido"]),
    (Forbid, Opening, &["evita"]),
    (Require, Anywhere, &["debe", "deben", "debes", "siempre", "hay que", "asegúrate"]),
    (Require, Opening, &["solo", "sólo", "usa solo"]),
    (Require, Anywhere, &["obligatorio"]),
    // Russian
    (Forbid, Anywhere, &[
        "нельзя", "никогда не", "никогда", "запрещено", "запрещается", "не должен", "не должна", "не должны",
        "не надо", "не нужно",
    ]),
    (Forbid, Opening, &["не"]),
    (Require, Anywhere, &["должен", "должна", "должно", "должны", "обязательно", "необходимо", "всегда"]),
    (Require, Opening, &["только"]),
    (Require, Anywhere, &["используй только"]),
    // German
    (Forbid, Anywhere, &[
        "niemals", "nie", "darf nicht", "dürfen nicht", "darf nie", "darf kein", "verboten", "soll nicht",
        "sollte nicht", "bitte nicht", "auf keinen fall",
    ]),
    (Forbid, Opening, &["keine", "kein", "vermeide", "nicht"]),
    (Require, Anywhere, &[
        "muss", "müssen", "immer", "unbedingt", "sollte", "soll", "stelle sicher", "achte darauf",
    ]),
    (Require, Opening, &["nur"]),
    (Require, Anywhere, &["verwende nur"]),
    // French
    (Forbid, Anywhere, &[
        "ne jamais", "jamais", "ne pas", "ne doit pas", "ne doivent pas", "interdit", "interdite",
    ]),
    (Forbid, Opening, &[
        "évite", "évitez", "n'utilise pas", "n'utilisez pas", "ne touche pas", "ne modifie pas",
    ]),
    (Require, Anywhere, &[
        "doit", "doivent", "toujours", "il faut", "obligatoire", "assure-toi", "assurez-vous",
    ]),
    (Require, Opening, &["utilise uniquement", "uniquement"]),
];

/// Words before a cue that leave it at the opening of a clause: `please never`.
pub(super) const LEADS: &[&str] = &[
    "and", "but", "so", "please", "pls", "plz", "then", "also", "just", "or", "well", "ok", "okay", "now",
    "kindly", "however", "btw", "again", "omfg", "y", "pero", "por", "favor", "и", "но", "пожалуйста", "und",
    "aber", "bitte", "et", "mais", "actually", "first", "yes", "yeah", "no", "important", "note", "reminder",
    "remember", "dude", "more",
];

/// Phrases with a cue that describe or guess instead of demanding (`this should work now`).
pub(super) const NOT_A_RULE: &[&str] = &[
    "resume directly", "ce qu'il faut", "toujours rien", "toujours pas", "je dois", "we don't just", "we dont just",
    "should work", "should mean", "should be fine", "should be good", "should be ok", "should be able",
    "should be enough", "should probably", "should we", "should i", "must have been", "must be because",
    "must be something", "should have been", "should have", "we need to be", "you need to be", "should look",
    "should be closed", "should now", "needs to know", "at least one", "at least for now", "don't know",
    "don't think", "don't understand", "don't see", "don't worry", "do not know", "do not see", "dont know",
    "dont think", "dont see", "keep going", "leave it", "should spawn", "never mind", "nevermind",
    "keep in mind", "no more questions", "needs to happen", "if you can't", "if you cannot", "when you can't",
    "不用保留吧", "能不能", "可不可以", "是不是应该", "是不是應該",
];

/// Beginnings of polite orders in the form of a question.
pub(super) const POLITE: &[&str] =
    &["can you", "could you", "would you", "will you", "can we please", "please", "請", "请", "幫我", "帮我"];

/// Beginnings of questions, with or without a question mark.
pub(super) const ASKING: &[&str] = &[
    "why", "how", "any", "wondering", "что", "как", "почему", "warum", "wie", "pourquoi", "comment", "qué",
    "cómo",
];

/// Verbs that ask when one of [`SUBJECTS`] follows.
pub(super) const ASKING_VERBS: &[&str] = &[
    "should", "can", "could", "would", "do", "does", "did", "is", "are", "was", "were", "shall", "will",
    "have", "has", "what", "what's", "which", "who", "where",
];

/// Words after the verb of a question.
pub(super) const SUBJECTS: &[&str] = &[
    "we", "i", "it", "this", "that", "you", "they", "the", "there", "these", "those", "he", "she", "a", "an",
    "is", "are", "do", "does", "if", "any",
];

/// Marks a question anywhere in a sentence.
pub(super) const ASKING_ANYWHERE: &[&str] = &[
    "wait why", "shouldn't we", "should we", "whether", "or should",
];

/// The heading, up to the model's name, under which the editors' extension of Codex 0.39 puts what was typed.
pub(super) const TYPED_AFTER: &str = "## My request for ";

/// What surrounds the arguments of a command whose template the client sends as the prompt: of Spec Kit, with the line
/// breaks of Unix and of Windows, of OpenCode's `/init`, and of pi-subagents' tasks.
pub(super) const TEMPLATE_ARGUMENTS: [[&str; 2]; 5] = [
    ["## User Input\n\n```text\n", "```\n\nYou **MUST** consider the user input before proceeding"],
    ["## User Input\r\n\r\n```text\r\n", "```\r\n\r\nYou **MUST** consider the user input before proceeding"],
    ["\nUser-provided focus or constraints (honor these):\n", "\n## How to investigate\n"],
    [" for that task using your tools.\n\nTask:\n", "\n## Acceptance Contract\n"],
    [" the original child process is still alive.\n\nFollow-up:\n", "\n## Acceptance Contract\n"],
];

/// What Conductor puts before a prompt, and at its end for attached files.
pub(super) const BEFORE_OWN_WORDS: [&str; 2] = ["<system_instruction>", "</system_instruction>"];

/// From here to the end of the text, the client speaks.
pub(super) const ENDS_OWN_WORDS: &[&str] =
    &["Operation stopped by hook", "[Request interrupted", BEFORE_OWN_WORDS[0]];

/// Words that set a chosen thing against a refused one. The chosen thing is to the left, except after
/// `instead of` at the start of a clause.
pub(super) const CONTRAST: &[&str] = &[
    "instead of", "rather than", "and not", "not", "over", "statt", "anstatt", "plutôt que", "en lugar de",
    "вместо", "а не", "而不是", "而非", "ではなく", "じゃなく",
];

/// Cues of a decision in a user's message.
pub(super) const DECISION: &[&str] = &[
    "let's", "lets", "let us", "we'll go with", "we will go with", "i'll go with", "go with", "decided",
    "we decided", "i decided", "instead of", "i'd rather", "i would rather", "rather than", "i prefer",
    "we agreed", "nah", "no,", "undo all", "undo the", "undo these", "undo that", "is the right approach",
    "is the right one", "is a good option", "that's the way", "stick with", "we're going with", "选择",
    "選擇", "决定", "決定", "采用", "採用", "改用", "就用", "还是用", "還是用", "にしましょう", "にします",
    "で行きましょう", "に決め", "を採用", "로 하자", "로 가자", "결정", "vamos con", "decidimos", "решили",
    "давай", "давайте", "wir nehmen", "entschieden", "on prend", "on garde", "décidé",
];

/// Phrases with such a cue that decide nothing.
pub(super) const NOT_A_DECISION: &[&str] = &[
    "let's see", "discuss", "let's review", "let's pop", "let's continue", "let's check", "let's test",
    "let's look", "let's try", "let's start", "let us know", "lets see", "lets continue", "lets check",
    "let's go", "let's say", "let's do a", "no, that's",
];

/// In a question that yes or no answers.
pub(super) const YES_OR_NO: &[&str] = &[
    "want me to", "would you like", "do you want", "shall i", "shall we", "should i", "should we", "may i", "does this",
    "does that", "is this", "is that", "吗", "嗎", "要不要", "是否",
];

/// In a report of trouble.
pub(super) const TROUBLE: &[&str] = &[
    "this error", "an error", "this issue", "cannot be", "can't be", "doesn't work", "not working", "有问题", "有問題",
];

pub(super) const YES: &[&str] = &[
    "yes", "yeah", "yep", "yup", "sure", "ok", "okay", "do it", "go ahead", "go for it", "sounds good",
    "please do", "correct", "agreed", "approved", "lgtm", "y", "1000%", "是", "是的", "好", "好的", "可以",
    "行", "对", "對", "はい", "お願いします", "いいです", "네", "예", "좋아", "sí", "si", "vale", "claro",
    "да", "давай", "хорошо", "ja", "gerne", "oui", "d'accord",
];

pub(super) const NO: &[&str] = &[
    "no", "nope", "nah", "don't", "stop", "不", "不要", "不用", "不是", "いいえ", "いや", "아니", "아니요",
    "нет", "nein", "non",
];

/// Phrases that say that an approach was tried and given up.
pub(super) const GIVEN_UP: &[&str] = &[
    "didn't work", "did not work", "gave up", "giving up", "abandon", "abandoned", "i reverted",
    "i've reverted", "we reverted", "i'll revert", "reverting my", "reverting the", "reverting that",
    "rolled back", "roll back", "rolling back", "roll it back", "undo that", "backed out", "dead end",
    "not feasible", "isn't feasible", "no longer viable", "that failed because", "行不通", "放弃", "放棄",
    "回退", "撤销", "撤銷", "うまくいかな", "失敗したので", "断念", "取りやめ", "元に戻し", "작동하지 않",
    "포기", "되돌", "no funcionó", "descartad", "не сработал", "отказал", "откатил", "funktionierte nicht",
    "verworfen", "zurückgerollt", "n'a pas marché", "abandonné",
];

/// The same, but only beside one of [`APPROACH`].
pub(super) const GIVEN_UP_IF: &[&str] = &[
    "doesn't work", "does not work", "won't work", "will not work", "not possible", "isn't possible", "不行",
    "no funciona", "не работает", "funktioniert nicht", "ne marche pas", "failed because",
];

/// Words for an approach.
pub(super) const APPROACH: &[&str] = &[
    "approach", "instead", "try", "tried", "attempt", "alternative", "solution", "idea", "workaround",
    "option", "方案", "方法", "办法", "辦法", "enfoque", "подход", "ansatz", "approche",
];

pub(super) const BECAUSE: &[&str] = &[
    "because", "since", "due to", "as the", "as it", "so ", "which ", " - ", "—", "therefore", "after ",
    "因为", "因為", "由于", "由於", "所以", "ため", "ので", "때문", "porque", "потому", "так как", "weil",
    "da ", "parce que", "car ",
];

/// Labels and words by which a text attributes what it says to the user.
pub(super) const OF_THE_USER: &[&str] = &[
    "user", "you said", "you asked", "constraint", "rule", "instruction", "require", "preference", "prefer",
    "request", "must", "never", "always", "don't", "do not", "not allowed", "guideline", "policy", "feedback",
    "said", "asked", "wants", "told", "order", "directive", "limits", "goal", "standing", "用户", "用戶",
    "约束", "約束", "限制", "规则", "規則", "要求", "指示", "偏好", "禁止", "不要", "必须", "必須",
    "ユーザー", "制約", "ルール", "要件", "要望", "守る", "사용자", "제약", "규칙", "요구", "지시", "usuario",
    "restric", "regla", "instrucc", "пользовател", "огранич", "правил", "требован", "инструкц", "benutzer",
    "nutzer", "vorgabe", "regel", "einschränk", "anforder", "utilisateur", "contrainte", "règle", "consigne",
    "exigence",
];

/// Labels under which earlier summaries list tool calls and outputs.
pub(super) const SEEN_LABELS: &[&str] = &[
    "files", "commands", "errors", "identifiers", "files, and why", "commands and errors",
];

/// Labels under which earlier summaries give the user's rules or words.
pub(super) const RULE_LABELS: &[&str] = &[
    "constraint", "rule", "instruction", "preference", "user message", "user said", "user's word", "must",
    "never", "always", "don't", "do not", "guideline", "standing", "约束", "約束", "限制", "规则", "規則",
    "偏好", "用户原话", "制約", "ルール", "守る", "제약", "규칙", "restric", "regla", "огранич", "правил",
    "vorgabe", "einschränk", "contrainte", "consigne",
];

/// Words in the heading of a list of rules.
pub(super) const RULE_HEADINGS: &[&str] = &[
    "constraint", "rules", "规则", "規則", "约束", "約束", "制約", "ルール", "규칙", "제약", "reglas", "правила",
    "regeln", "règles", "contraintes",
];

/// Words for file operations. Words of dense script match anywhere in the row.
pub(super) const FILE_WORDS: &[(&[FileOp], &[&str])] = &[
    (&[Read], &[
        "read", "reading", "viewed", "view", "opened", "inspected", "examined", "looked", "consulted",
        "leído", "leídos", "прочитан", "прочитаны", "gelesen", "lu", "lus",
    ]),
    (&[Edited], &[
        "edited", "edit", "edits", "modified", "modify", "updated", "update", "patched", "overwrote",
        "editado", "editados", "modificado", "modificados", "изменён", "изменены", "geändert", "bearbeitet",
        "modifié", "modifiés",
    ]),
    (&[Edited, Created], &["changed", "changes", "touched", "rewrote", "rewritten"]),
    // Whatever the session did to the file before.
    (&[Read, Edited], &["committed"]),
    (&[Created], &[
        "created", "create", "added", "add", "new", "creado", "creados", "создан", "созданы", "erstellt",
        "angelegt", "créé", "créés",
    ]),
    (&[Created, Edited], &["wrote", "written", "write"]),
    (&[Deleted], &[
        "deleted", "delete", "removed", "remove", "eliminado", "borrado", "удалён", "удалены", "gelöscht",
        "supprimé", "supprimés",
    ]),
    (&[Created, Deleted], &["renamed", "moved"]),
    (&[Read], &["读取", "讀取", "查看", "已读", "已讀", "阅读", "閱讀"]),
    (&[Edited], &["修改", "编辑", "編輯", "更新"]),
    (&[Edited, Created], &["变更"]),
    (&[Created], &["創建", "创建", "新建", "新增", "建立"]),
    (&[Deleted], &["删除", "刪除"]),
    (&[Read], &["読み", "閲覧", "参照"]),
    (&[Edited], &["編集"]),
    (&[Edited, Created], &["変更"]),
    (&[Created], &["作成", "追加"]),
    (&[Deleted], &["削除"]),
    (&[Read], &["읽"]),
    (&[Edited], &["수정", "편집"]),
    (&[Created], &["생성"]),
    (&[Deleted], &["삭제"]),
];

/// Words that negate one of the next three words.
pub(super) const NEGATORS: &[&str] = &[
    "not", "no", "never", "didn't", "don't", "doesn't", "isn't", "wasn't", "weren't", "won't", "cannot",
    "can't", "without", "todo", "will", "unable", "nothing", "none", "未", "没有", "沒有", "kein", "keine",
    "nicht", "ne", "sin", "не", "0", "zero", "neither", "should", "must", "to",
];

/// Words that say that something went well.
pub(super) const WENT_WELL: &[&str] = &[
    "ok", "passed", "pass", "passes", "passing", "succeeded", "succeeds", "success", "successful",
    "successfully", "green", "clean", "worked", "works", "pasó", "éxito", "успешно", "прошли", "erfolgreich",
    "bestanden", "réussi", "réussie",
];
/// The same in dense script and symbols.
pub(super) const WENT_WELL_ANYWHERE: &[&str] = &["✓", "✔", "✅", "成功", "通过", "通過", "合格", "통과", "성공"];

/// Words that say that something went wrong.
pub(super) const WENT_WRONG: &[&str] = &[
    "failed", "fail", "fails", "failing", "failure", "failures", "error", "errors", "errored", "broken",
    "broke", "crashed", "red", "falló", "fallo", "ошибка", "провалились", "fehlgeschlagen", "fehler",
    "échoué", "échec", "denied", "timeout", "timed",
];
/// The same in dense script and symbols.
pub(super) const WENT_WRONG_ANYWHERE: &[&str] = &["✗", "✘", "❌", "失败", "失敗", "错误", "錯誤", "エラー", "실패", "오류"];

/// Words that say that an error is gone or a plan's item done.
pub(super) const SETTLED: &[&str] = &[
    "fixed", "resolved", "solved", "passes", "passing", "passed", "gone", "done", "completed", "complete",
    "finished", "closed", "ok", "later", "cleared", "resuelto", "исправлено", "решено", "behoben", "gelöst",
    "erledigt", "corrigé", "résolu", "terminé",
];
/// The same in dense script and symbols.
pub(super) const SETTLED_ANYWHERE: &[&str] = &[
    "✓", "✔", "✅", "[x]", "[X]", "已修复", "已修復", "已解决", "已解決", "完成", "修正済", "解決済",
    "解決しました", "完了", "해결", "완료",
];

/// Words that say that an error or a plan's item is still there.
pub(super) const STILL_OPEN: &[&str] = &[
    "open", "unresolved", "unfixed", "still", "failing", "fails", "pending", "todo", "remaining", "next",
    "outstanding", "in_progress", "in-progress", "progress", "blocked", "unsolved", "left", "active",
    "current", "plan", "to-do", "todos", "steps", "broken", "upcoming", "unfinished", "incomplete", "error",
    "errors", "failed", "failure", "problem", "problems", "pendiente", "открыт", "осталось", "offen",
    "ouvert", "restant",
];
/// The same in dense script and symbols.
pub(super) const STILL_OPEN_ANYWHERE: &[&str] = &[
    "[ ]", "☐", "◻", "⏳", "□", "待办", "待辦", "未完", "未解", "进行中", "進行中", "下一步", "残り",
    "未修正", "次の", "計画", "计划", "진행", "남은", "미해결",
];

/// Tags that a person may wrap their own words in.
pub(super) const OWN_TAGS: &[&str] = &[
    "rule", "instruction", "constraint", "requirement", "task", "request", "user", "goal", "prompt",
    "question",
];

/// Abbreviations, whose dots end no sentence.
pub(super) const ABBREVIATIONS: &[&str] = &[
    "e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "resp.", "z.B.", "bzw.", "p.ej.", " no.", " nr.",
];

/// Attributes a quotation in the same line to the user.
pub(super) const SPEAKS: &[&str] = &[
    "user said", "user asked", "user says", "user wants", "user wrote", "user told", "user:", "you said",
    "you asked", "用户说", "用戶說", "ユーザーは", "ユーザー：",
];

/// Labels under which quotations are the user's.
pub(super) const QUOTE_LABELS: &[&str] = &[
    "user message", "user's word", "user said", "user quote", "verbatim", "用户原话", "ユーザーの発言",
];

pub(super) const TESTS_PASS: &[&str] = &[
    "all tests pass", "tests pass", "tests now pass", "tests are passing", "tests are green",
    "test suite passes", "测试通过", "测试全部通过", "測試通過", "テストは成功", "テストが通",
    "テストはすべて",
];

pub(super) const BUILDS: &[&str] = &[
    "build succeeds", "build succeeded", "build passes", "build is green", "builds successfully",
    "compiles cleanly", "构建成功", "ビルド成功",
];

/// Claims that something was shipped.
pub(super) const SHIPPED: &[&str] = &[
    "deployed to", "successfully deployed", "was deployed", "released to", "已部署", "デプロイ済",
];

/// Words that say, anywhere in the source, that something was shipped.
pub(super) const SHIPPING: &[&str] = &["deploy", "publish", "release", "push"];

/// Marks a choice as an earlier one.
pub(super) const PAST: &[&str] = &[
    "supersed", "instead", "no longer", "rejected", "earlier", "first", "before", "取代", "旧", "以前",
];

/// Function words of the languages above, sorted by bytes. Cues of obligation are among them: polarity is
/// compared separately.
pub(super) const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "also", "always", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "das", "de", "debe", "del", "den", "der", "des", "did", "die", "do", "does",
    "doesn't", "doit", "don't", "dont", "du", "ein", "eine", "el", "en", "ensure", "es", "et", "for", "from",
    "get", "had", "has", "have", "hay", "how", "i", "i'm", "if", "il", "immer", "in", "into", "ist", "it",
    "it's", "its", "jamais", "just", "keep", "la", "las", "le", "les", "lo", "los", "make", "may", "me",
    "mit", "muss", "must", "mustn't", "my", "ne", "never", "nicht", "nie", "no", "not", "nunca", "of", "ok",
    "okay", "on", "only", "or", "our", "pas", "please", "por", "que", "se", "shall", "should", "shouldn't",
    "siempre", "so", "soll", "sollte", "such", "sure", "than", "that", "that's", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "to", "too", "toujours", "un", "una", "und", "une",
    "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with",
    "would", "y", "you", "your", "zu", "в", "все", "всегда", "для", "и", "к", "как", "на", "не", "нельзя",
    "никогда", "по", "с", "что", "это",
];

/// Characters of dense script that carry grammar rather than meaning; a pair of only these has no content.
pub(super) const FUNCTION_CHARS: &str = "的了是在和与與吗嗎呢吧啊我你他她它们們这這那就也都把被要不请請必须須务務";

/// Words in the heading of a goal.
pub(super) const GOAL_HEADINGS: &[&str] = &[
    "goal", "primary request", "objective", "user's request", "original request", "intent", "目标", "目標", "目的", "objetivo", "цель",
];

/// Words that name the user.
pub(super) const NAMES_THE_USER: &[&str] = &[
    "user", "you said", "you asked", "用户", "用戶", "ユーザー", "사용자", "usuario", "пользовател", "benutzer", "nutzer", "utilisateur",
];
