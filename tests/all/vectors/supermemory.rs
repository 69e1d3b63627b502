//! opencode-supermemory: when it runs ahead, what it says meanwhile, what it remembers.

use epitome::compaction;
use epitome::compaction::plan::{Cause, ModelLimits, Moment};
use epitome::history::{History, Kind, Usage};

use super::{Rows, Wish, due, history, laid_out, model, plan, profile, row, texts, user};

const NEW: &str = "supermemory@2.0";

fn verdict(name: &str, tokens: usize, window: Option<u64>, moment: Moment) -> compaction::plan::Verdict {
    let profile = profile(name);
    let history: History = history(vec![user(&"x".repeat(tokens * 4)), model("")]);
    let limits = ModelLimits { window, window_given: window.is_some(), ..ModelLimits::default() };
    super::verdict(&profile, &history, &limits, &moment)
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    row(&mut out, "supermemory.threshold.at", || {
        let limits = ModelLimits { window: Some(100_000), ..ModelLimits::default() };
        // The course: exceeds. The code: at least.
        assert!(
            !due(&profile("supermemory"), limits, 80_000) && due(&profile("supermemory"), limits, 80_001)
        );
        assert!(due(&profile(NEW), limits, 80_000) && !due(&profile(NEW), limits, 79_999));
    });
    row(&mut out, "supermemory.threshold.fallback-window", || {
        for name in ["supermemory", NEW] {
            assert_eq!(compaction::plan::threshold(&profile(name), &ModelLimits::default()), Some(160_000));
        }
    });
    row(&mut out, "supermemory.threshold.configured", || {
        let with = |value: serde_json::Value| {
            let profile = profile(NEW).honouring(&move |_| Some(value.clone()));
            compaction::plan::threshold(
                &profile,
                &ModelLimits { window: Some(100_000), ..ModelLimits::default() },
            )
        };
        assert_eq!(with(0.9.into()), Some(90_000));
        for invalid in [0.into(), 1.5.into(), "x".into(), (-1).into()] {
            assert_eq!(with(invalid), Some(80_000));
        }
    });
    for name in ["supermemory", NEW] {
        row(&mut out, format!("supermemory.minimum.{name}"), move || {
            // The course: only above 50,000. The code: at least.
            let least = if name == NEW { 50_000 } else { 50_001 };
            let found = verdict(name, least - 1, Some(50_000), Moment::default());
            assert_eq!((found.due, found.code), (false, "too_small"));
            assert!(verdict(name, least, Some(50_000), Moment::default()).due);
        });
        row(&mut out, format!("supermemory.cool-down.{name}"), move || {
            let moment =
                |since: i64| Moment { now: 100_000 + since, last_run: Some(100_000), ..Moment::default() };
            let found = verdict(name, 90_000, Some(100_000), moment(29_999));
            assert_eq!((found.due, found.code), (false, "cooling_down"));
            assert!(verdict(name, 90_000, Some(100_000), moment(30_000)).due);
        });
        row(&mut out, format!("supermemory.continue.{name}"), move || {
            let history = history(vec![user("a"), model(&"x".repeat(400)), user("b"), model("c")]);
            let wish = Wish { cause: Cause::Auto, ..Wish::default() };
            let found = laid_out(&history, &plan(&profile(name), &history, wish));
            assert_eq!(texts(&found).last().unwrap(), "Continue");
            assert_eq!(found.last().unwrap().kind, Kind::Continue);
        });
        row(&mut out, format!("supermemory.notices.{name}"), move || {
            let notices = profile(name).notices;
            assert!(notices.started.starts_with("Preemptive Compaction: Context at {percent}%"));
            assert!(notices.compacted.starts_with("Compaction Complete"));
        });
        row(&mut out, format!("supermemory.remember.{name}"), move || {
            let remember = profile(name).remember.unwrap();
            assert_eq!((remember.least_chars, remember.recalled), (100, 10));
        });
    }
    row(&mut out, "supermemory.sections", || {
        let profile = profile("supermemory");
        let titles: Vec<&str> =
            profile.summarize().unwrap().summary.sections.iter().map(|it| it.title.as_str()).collect();
        let expected = [
            "1. User Requests (As-Is)",
            "2. Final Goal",
            "3. Work Completed",
            "4. Remaining Tasks",
            "5. MUST NOT Do (Critical Constraints)",
        ];
        assert_eq!(titles, expected);
    });
    row(&mut out, "supermemory.cache-writes-not-counted", || {
        let profile = profile(NEW);
        let mut answer = model("");
        answer.usage = Some(Usage { cache_write: 15_000, ..Usage::default() });
        let history = history(vec![user(&"x".repeat(360_000)), answer]);
        let limits = ModelLimits { window: Some(100_000), ..ModelLimits::default() };
        assert!(!super::verdict(&profile, &history, &limits, &Moment::default()).due);
    });
    out
}
