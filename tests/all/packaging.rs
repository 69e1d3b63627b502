//! What is shipped says one version and one name, and what the server really offers. The one place to change name and
//! version is Cargo.toml: `EPITOME_UPDATE=1 cargo test --test all packaging` writes them everywhere else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::mcp::Client;

/// What names the project, its owner or its version besides Cargo.toml.
const FILES: [&str; 8] = [
    "server.json",
    "packaging/npm/package.json",
    "packaging/npm/README.md",
    "packaging/mcpb/manifest.json",
    "Containerfile",
    "dist-workspace.toml",
    "README.md",
    "docs/clients.md",
];

fn path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap()
}

fn json(file: &str) -> Value {
    serde_json::from_str(&read(file)).unwrap()
}

/// `OWNER/NAME` of a repository's address.
fn slug(address: &str) -> &str {
    address.strip_prefix("https://github.com/").unwrap().trim_end_matches('/')
}

/// The name in the registry that belongs to the repository of Cargo.toml.
fn name() -> String {
    format!("io.github.{}", slug(env!("CARGO_PKG_REPOSITORY")))
}

#[test]
fn all_say_what_the_manifest_says() {
    let server = json("server.json");
    let (old, new) =
        (slug(server["repository"]["url"].as_str().unwrap()), slug(env!("CARGO_PKG_REPOSITORY")));
    let (old_owner, new_owner) = (old.split('/').next().unwrap(), new.split('/').next().unwrap());
    let quoted = |version: &str| format!("\"{version}\"");
    let (old_version, version) = (server["version"].as_str().unwrap(), env!("CARGO_PKG_VERSION"));
    let mut wrong = Vec::new();
    for file in FILES {
        let found = read(file);
        let should = found
            .replace(old, new)
            .replace(&format!("{old_owner}/homebrew-tap"), &format!("{new_owner}/homebrew-tap"))
            .replace(&quoted(old_version), &quoted(version))
            .replace(&format!("{new}:{old_version}"), &format!("{new}:{version}"));
        if found != should && std::env::var_os("EPITOME_UPDATE").is_some() {
            std::fs::write(path(file), should).unwrap();
        } else if found != should {
            wrong.push(file);
        }
    }
    let say =
        "these say another name or version than Cargo.toml; EPITOME_UPDATE=1 cargo test --test all packaging";
    assert_eq!(wrong, Vec::<&str>::new(), "{say}");
}

#[test]
fn all_say_one_version_and_name() {
    let version = env!("CARGO_PKG_VERSION");
    let server = json("server.json");
    assert_eq!((server["version"].as_str(), server["name"].as_str()), (Some(version), Some(name().as_str())));
    assert!(server["description"].as_str().unwrap().len() <= 100, "the registry's limit");
    for package in server["packages"].as_array().unwrap() {
        let found =
            package["version"].as_str().or_else(|| package["identifier"].as_str()?.rsplit(':').next());
        assert_eq!(found, Some(version), "{package}");
    }
    let npm = json("packaging/npm/package.json");
    assert_eq!((npm["version"].as_str(), npm["mcpName"].as_str()), (Some(version), Some(name().as_str())));
    assert!(npm["optionalDependencies"].as_object().unwrap().values().all(|it| it == version));
    assert_eq!(json("packaging/mcpb/manifest.json")["version"], version);
    assert!(read("Containerfile").contains(&format!("io.modelcontextprotocol.server.name=\"{}\"", name())));
    // Where the registry looks whether the packages belong to the server.
    for readme in ["README.md", "packaging/npm/README.md"] {
        assert!(read(readme).contains(&format!("mcp-name: {}", name())), "{readme}");
    }
    let dist: toml::Value = toml::from_str(&read("dist-workspace.toml")).unwrap();
    let targets = dist["dist"]["targets"].as_array().unwrap();
    assert!(targets.len() >= 5);
    // Each platform of a release has its npm package.
    let platforms = read("packaging/npm/platforms.sh");
    for target in targets {
        assert!(platforms.contains(target.as_str().unwrap()), "{target}");
    }
}

#[test]
fn the_bundle_says_what_the_server_offers() {
    let manifest = json("packaging/mcpb/manifest.json");
    let names = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut client = Client::legacy();
    let tools = client.request("tools/list", serde_json::json!({})).unwrap();
    assert_eq!(names(&manifest["tools"]), names(&tools["tools"]));
    let prompts = client.request("prompts/list", serde_json::json!({})).unwrap();
    assert!(names(&manifest["prompts"]).is_subset(&names(&prompts["prompts"])));
}

#[test]
fn every_client_has_a_block_to_copy() {
    let text = read("docs/clients.md");
    let mut shell = String::new();
    let mut settings = 0;
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        match kind {
            "json" => {
                let found: Value =
                    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
                assert!(found.to_string().contains("epitome"), "{body}");
                settings += 1;
            }
            "toml" => {
                toml::from_str::<toml::Table>(body).unwrap_or_else(|error| panic!("{error}: {body}"));
                settings += 1;
            }
            "yaml" => settings += 1,
            "sh" => shell.push_str(body),
            other => panic!("{other}"),
        }
    }
    assert!(settings >= 9);
    for client in ["claude mcp add", "codex mcp add", "gemini mcp add", "opencode mcp add"] {
        assert!(shell.contains(client), "{client}");
    }
    for client in ["Cursor", "VS Code", "Zed", "Goose"] {
        assert!(text.contains(&format!("## {client}\n")), "{client}");
    }
    assert!(read("README.md").contains("docs/clients.md"));
}

#[test]
fn codex_gets_the_prompts_as_files() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".codex/prompts");
    std::fs::create_dir_all(home.path().join(".config/epitome/prompts")).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(home.path().join(".config/epitome/prompts/tidy.md"), "Tidy $ARGUMENTS").unwrap();
    // What the user wrote under a name of ours stays.
    std::fs::write(folder.join("epitome-context.md"), "mine").unwrap();
    std::fs::write(folder.join("other.md"), "other").unwrap();
    let run = |arguments: &[&str]| crate::mcp::command(home.path()).args(arguments).status().unwrap().code();
    let names = || {
        let all = std::fs::read_dir(&folder).unwrap();
        all.map(|it| it.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
    };
    let before = names();
    for _ in 0..2 {
        assert_eq!(run(&["install", "codex", "--prompts"]), Some(0));
        let more = ["epitome-compact.md", "epitome-handoff.md", "epitome-tidy.md"].map(str::to_owned);
        assert_eq!(names(), before.union(&BTreeSet::from(more)).cloned().collect());
    }
    assert!(std::fs::read_to_string(folder.join("epitome-tidy.md")).unwrap().contains("Tidy $ARGUMENTS"));
    assert_eq!(run(&["install", "claude-code", "--prompts"]), Some(2));
    assert_eq!(run(&["uninstall", "codex"]), Some(0));
    assert_eq!(names(), before);
    assert_eq!(std::fs::read_to_string(folder.join("epitome-context.md")).unwrap(), "mine");
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
