//! Orders for one request end with it; those that hold for longer never do. Every example is ours.

use std::collections::BTreeSet;

use epitome::compaction::facts::{self, Topic};
use epitome::history::{History, Kind, Message, Role};

use crate::facts::{session, spec, summary};

/// Orders for the request that they stand in.
const ONCE: [&str; 49] = [
    "For this question, don't fix anything, only explain.",
    "Don't change code yet.",
    "Please don't change any code yet, I want to understand it first.",
    "Do not fix it yet.",
    "Don't implement anything yet.",
    "You should not be long: for now only explain, don't guess.",
    "For now, don't touch the code.",
    "Right now, don't make any changes.",
    "Don't write code for now.",
    "This time, don't run the tests.",
    "Do not run the linter this time.",
    "Please avoid the network this time, it is slow.",
    "This time only, use the old endpoint instead of the new one.",
    "Just this once, don't ask me before you run it.",
    "No explanations for this answer, just the command.",
    "In your next reply, don't quote the file.",
    "Use bullet points instead of prose for this question only.",
    "For this request, do not read any files.",
    "Don't start coding yet.",
    "At the moment, don't change the files.",
    "No code changes yes, just the analysis.",
    "No changes, only an explanation.",
    "Do not fix it: just the review, no edits.",
    "On bullet 1, do not ignore the folder, add a line instead.",
    // German
    "Diesmal bitte keine neuen Abhängigkeiten.",
    "Für diese Frage nichts ändern, das muss nur erklärt werden.",
    "Ändere vorerst keine Dateien.",
    "Schreib noch keinen Code.",
    "Keine Codeänderungen, nur die Analyse.",
    // French
    "Ne modifie encore rien, n'oublie pas.",
    "Pour cette question, il ne faut pas toucher aux fichiers.",
    "Cette fois, n'utilise pas le cache.",
    "N'écris pas encore de code, s'il te plaît.",
    // Spanish
    "Esta vez no uses la caché, por favor.",
    "No cambies nada todavía.",
    "Para esta pregunta, no modifiques el código.",
    // Russian
    "В этот раз не запускай тесты.",
    "Пока ничего не меняй.",
    "Пока не пиши код.",
    // Japanese
    "まだコードを変更しないでください。",
    "今回だけテストを実行しないでください。",
    "この質問ではファイルを触らないでください。",
    // Chinese
    "先不要修改代码。",
    "这个问题不要改任何文件。",
    "暂时不要写代码，先解释一下。",
    // Korean
    "아직 코드를 수정하지 마세요.",
    "이번만 테스트를 실행하지 마세요.",
    "이번 질문에는 파일을 수정하지 마세요.",
    "아직 아무것도 변경하지 마세요.",
];

/// Orders that bind later requests too, or may.
const LASTING: [&str; 54] = [
    "Never push to main.",
    "From now on, don't touch the generated files.",
    "Do not push to production yet.",
    "Don't merge anything into the release branch until I say so.",
    "Never use mocks, not even this time.",
    "Always run the linter, and don't skip it this time.",
    "Don't use features that browsers do not support yet.",
    "Do not add dependencies that nobody has reviewed yet.",
    "Use SQLite for now instead of Postgres.",
    "For now, don't add authentication.",
    "For now, don't touch the code in auth/.",
    "Don't touch the parser for now.",
    "Do not log the body for this request handler.",
    "In this request we must not block the event loop.",
    "You must not change the time format.",
    "Avoid calling this timeout handler twice.",
    "Don't retry at this time zone boundary.",
    "Every time you commit, don't forget the changelog.",
    "Don't change code without a test.",
    "Do not edit anything under migrations/.",
    "Only list active users for now, never deleted ones.",
    "This time use tabs; never push to main.",
    "Don't write any more comments.",
    "For this question don't fix anything, and from now on never touch vendor/.",
    "The docs must not say \"for this question, only explain\".",
    "Don't stop before all tests pass.",
    "Do not make changes without a review, just the plan is free.",
    "For point releases, do not change the schema.",
    // German
    "Niemals auf main pushen.",
    "Ab jetzt keine neuen Abhängigkeiten.",
    "Auf keinen Fall die Migrationen anfassen.",
    "Immer erst die Tests laufen lassen, auch diesmal.",
    // French
    "Ne touche jamais aux migrations.",
    "Désormais, n'utilise pas de mocks.",
    "Il ne faut pas modifier le schéma.",
    "Cette fois comme toujours, il ne faut pas pousser sur main.",
    // Spanish
    "Nunca hagas push a main.",
    "A partir de ahora no uses mocks.",
    "No modifiques las migraciones.",
    "Esta vez y siempre, no toques vendor.",
    // Russian
    "Никогда не пушь в main.",
    "Впредь не используй моки.",
    "Пока не трогай модуль авторизации.",
    "Не меняй миграции.",
    // Japanese
    "絶対にmainへプッシュしないでください。",
    "今後はモックを使わないでください。",
    "今回のプロジェクトではReactを使わないでください。",
    "マイグレーションを変更しないでください。",
    // Chinese
    "永远不要推送到main。",
    "以后不要使用模拟对象。",
    "先不要改数据库结构。",
    // Korean
    "절대 main에 푸시하지 마세요.",
    "앞으로 목을 사용하지 마세요.",
    "마이그레이션을 변경하지 마세요.",
];

const NEXT: &str = "Now fix the parser in src/lexer.rs and run its tests.";

/// Whether an order stands among the rules.
fn stands(history: &History, order: &str) -> bool {
    let topics = [Topic::Constraints, Topic::Directives];
    facts::read(history)
        .facts
        .iter()
        .any(|it| topics.contains(&it.topic) && order.contains(it.text.as_str().trim()))
}

fn asked(order: &str) -> String {
    format!(
        "@user\nWhy does src/lexer.rs read the file twice?\n{order}\n@model\nBecause the first pass only counts its lines.\n"
    )
}

#[test]
fn an_order_for_one_request_ends_with_it() {
    let mut wrong = Vec::new();
    for order in ONCE {
        let now = stands(&session(&asked(order)), order);
        let more = stands(&session(&(asked(order) + "@user\ncontinue\n")), order);
        let later = stands(&session(&(asked(order) + "@user\n" + NEXT)), order);
        if (now, more, later) != (true, true, false) {
            wrong.push(format!("{order}: while asked {now}, on \"continue\" {more}, later {later}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_order_that_lasts_is_never_dropped() {
    let mut lost = Vec::new();
    for order in LASTING {
        let history = session(&(asked(order) + "@user\n" + NEXT));
        if stands(&history, order) {
            continue;
        }
        // The same without another request: nothing that this test is about.
        assert!(stands(&session(&asked(order)), order), "no rule at all: {order}");
        lost.push(order);
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// Five summaries, each of the one before and one more request.
#[test]
fn summaries_in_a_row_keep_the_one_and_not_the_other() {
    let orders: Vec<(&str, &str)> = ONCE.iter().copied().zip(LASTING.iter().copied()).collect();
    for (once, lasting) in orders {
        let mut history = session(&asked(&format!("{once}\n{lasting}")));
        let mut kept = BTreeSet::new();
        for round in 0..5 {
            let page = summary(&history, &facts::read(&history), &spec(), 50_000, &[]);
            kept.insert((round, stands(&history, once), stands(&history, lasting)));
            let request = format!("Step {round}: add a test for module_{round} and run it.");
            let messages = vec![
                Message::text(Role::User, Kind::Summary, page.as_str()),
                Message::text(Role::User, Kind::Said, request.as_str()),
                Message::text(Role::Assistant, Kind::Said, "The test is added and passes."),
            ];
            history = History::new(messages, history.meta.clone());
        }
        let expected: BTreeSet<_> = (0..5).map(|round| (round, round == 0, true)).collect();
        assert_eq!(kept, expected, "{once} / {lasting}");
    }
}
