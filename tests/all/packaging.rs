//! What is shipped says one version and one name, and what the server really offers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const NAME: &str = "io.github.epitome-cli/epitome";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[test]
fn all_say_one_version_and_name() {
    let version = env!("CARGO_PKG_VERSION");
    let server = json("server.json");
    assert_eq!((server["version"].as_str(), server["name"].as_str()), (Some(version), Some(NAME)));
    assert!(server["description"].as_str().unwrap().len() <= 100, "the registry's limit");
    for package in server["packages"].as_array().unwrap() {
        let found =
            package["version"].as_str().or_else(|| package["identifier"].as_str()?.rsplit(':').next());
        assert_eq!(found, Some(version), "{package}");
    }
    let npm = json("packaging/npm/package.json");
    assert_eq!((npm["version"].as_str(), npm["mcpName"].as_str()), (Some(version), Some(NAME)));
    assert!(npm["optionalDependencies"].as_object().unwrap().values().all(|it| it == version));
    assert_eq!(json("packaging/mcpb/manifest.json")["version"], version);
    assert!(read("Containerfile").contains(&format!("io.modelcontextprotocol.server.name=\"{NAME}\"")));
    let dist: toml::Value = toml::from_str(&read("dist-workspace.toml")).unwrap();
    assert!(dist["dist"]["targets"].as_array().unwrap().len() >= 5);
}

#[test]
fn completions_and_manual_know_every_command() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_epitome"))
            .args(arguments)
            .env_clear()
            .env("HOME", home.path())
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]);
        for command in ["estimate", "compact", "serve"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    assert!(run(&["man"]).contains(".TH epitome"));
    run(&["man", "--out", "pages"]);
    let page = std::fs::read_to_string(home.path().join("pages/epitome-serve.1")).unwrap();
    assert!(page.contains("token"), "{page}");
}
