//! The report's page in a real browser, where one is installed: what stands on it can be read in both themes, and nothing
//! is wider than the window.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::apply::{epitome, example};

/// Widths of a phone and of a desk, in pixels.
const WIDTHS: [u32; 2] = [390, 1180];
/// The least contrast of text that WCAG 2.2 asks for at level AA.
const CONTRAST: f64 = 4.5;

/// Measures the page in the frame: the least contrast of its messages' text, and whether it can be scrolled sideways. Text
/// is seen against the nearest background behind it, each half seen through by its opacity.
const MEASURE: &str = r#"
const linear = it => (it /= 255) <= .03928 ? it / 12.92 : ((it + .055) / 1.055) ** 2.4;
const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const rgba = it => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = it; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
const over = (top, below, alpha) => top.slice(0, 3).map((it, n) => it * alpha + below[n] * (1 - alpha));
const behind = (window, it) => {
  if (!it) return [255, 255, 255];
  const own = rgba(window.getComputedStyle(it).backgroundColor);
  const rest = own[3] == 255 ? own : behind(window, it.parentElement);
  return over(own, rest, own[3] / 255);
};
const measure = frame => {
  const {contentWindow: window, contentDocument: page} = frame;
  const all = [...page.querySelectorAll('.m p, .m header b, .prose div, .tag, .soft')].map(it => {
    const ground = behind(window, it);
    let alpha = 1;
    for (let up = it; up; up = up.parentElement) alpha *= +window.getComputedStyle(up).opacity;
    const ink = over(rgba(window.getComputedStyle(it).color), ground, alpha);
    const [a, b] = [light(ink), light(ground)];
    return {contrast: (Math.max(a, b) + .05) / (Math.min(a, b) + .05), text: it.textContent.slice(0, 60), kind: it.className || it.tagName};
  });
  const worst = all.reduce((a, b) => a.contrast < b.contrast ? a : b);
  const ground = rgba(window.getComputedStyle(page.body).backgroundColor).slice(0, 3);
  return {texts: all.length, worst, dark: light(ground) < .2, width: page.documentElement.scrollWidth, room: window.innerWidth};
};
addEventListener('load', () => { document.title = JSON.stringify([...document.querySelectorAll('iframe')].map(measure)); });
"#;

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|it| names.map(|name| it.join(name))).find(|it| it.is_file())
}

/// What the browser has made of a page once it is loaded.
fn loaded(browser: &Path, home: &Path, page: &Path, dark: bool) -> String {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    command.args(["--virtual-time-budget=5000", "--window-size=1600,1000", "--dump-dom"]);
    command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)));
    command.arg(format!("--user-data-dir={}", home.join("browser").display()));
    command.arg(format!("file://{}", page.display()));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id();
    let (tell, wait) = mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = wait.recv_timeout(Duration::from_secs(60)) else {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        panic!("the browser did not end");
    };
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn what_stands_on_the_page_can_be_read() {
    let Some(browser) = browser() else {
        println!("SKIPPED: what_stands_on_the_page_can_be_read: no Chromium is on the PATH");
        return;
    };
    let there = tempfile::tempdir().unwrap();
    let home = there.path().canonicalize().unwrap();
    std::fs::write(home.join("session.jsonl"), example("claude-code.jsonl")).unwrap();
    let done = epitome(&home, &["report", "session.jsonl", "--budget", "25%", "-o", "report.html"]);
    assert!(done.status.success(), "{done:?}");
    let report = std::fs::read_to_string(home.join("report.html")).unwrap();
    let report = report.replace('&', "&amp;").replace('"', "&quot;");
    let frames: String = WIDTHS
        .iter()
        .map(|it| format!("<iframe width=\"{it}\" height=\"900\" srcdoc=\"{report}\"></iframe>"))
        .collect();
    let around = home.join("around.html");
    let head = "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">";
    std::fs::write(&around, format!("{head}<title></title><script>{MEASURE}</script>{frames}")).unwrap();
    for dark in [false, true] {
        let page = loaded(&browser, &home, &around, dark);
        let title = page.split("<title>").nth(1).and_then(|it| it.split("</title>").next()).unwrap();
        let title = title.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
        let found: Vec<Value> =
            serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"));
        assert_eq!(found.len(), WIDTHS.len());
        for (it, width) in found.iter().zip(WIDTHS) {
            let number = |key: &str| it[key].as_f64().unwrap();
            assert_eq!(it["dark"], dark, "{it}");
            assert!(number("texts") > 50.0, "{it}");
            assert!(it["worst"]["contrast"].as_f64().unwrap() >= CONTRAST, "{width}, dark {dark}: {it}");
            assert!(number("width") <= number("room"), "{width}: {it}");
        }
    }
}
