//! A store that fails: a clear error, and the session as it was.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use epitome::history::secrets::Redactor;
use epitome::store::{Store, StoreAt};

use super::program::{answer, asked, codex, command, epitome, keep, refused, said, store};

const ID: &str = "00000000-0000-4000-8000-000000000001";

/// A home with one session, and what is there.
struct Home {
    folder: tempfile::TempDir,
    session: PathBuf,
    original: Vec<u8>,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let original = codex(ID, folder.path(), 0..30, 120).into_bytes();
    let session = keep(folder.path(), folder.path(), "codex", ID, &original);
    Home { folder, session, original }
}

impl Home {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn apply(&self) -> Vec<&str> {
        vec!["compact", self.session.to_str().unwrap(), "--budget", "30%", "--apply", "--json"]
    }

    /// Nothing but the session is there, and that as it was.
    fn assert_untouched(&self) {
        assert!(std::fs::read(&self.session).unwrap() == self.original);
        let beside: Vec<_> = std::fs::read_dir(self.session.parent().unwrap()).unwrap().collect();
        assert_eq!(beside.len(), 1, "{beside:?}");
    }

    /// It fails with these words, and nothing is written; a look at the session works all the same.
    fn assert_refused(&self, output: &Output, words: &str) {
        let why = refused(output);
        assert!(why.contains(words), "{words}: {why}");
        assert_eq!(output.status.code(), Some(1), "{why}");
        self.assert_untouched();
        assert!(
            answer(&epitome(self.path(), &["estimate", self.session.to_str().unwrap(), "--json"]))["tokens"]
                .as_u64()
                > Some(0)
        );
    }
}

#[test]
fn a_full_disk() {
    // A limit on the size of files is as near as one gets to a full disk; its signal would end the program. In blocks of
    // 512 bytes: too few for the schema, and too few for the originals.
    for blocks in [16, 200] {
        let home = home();
        let run = command(home.path(), home.path(), &home.apply());
        let mut limited = Command::new("/bin/sh");
        limited.arg("-c").arg(format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")).arg(run.get_program());
        limited.args(run.get_args()).env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
        let output = limited.current_dir(home.path()).output().unwrap();
        home.assert_refused(&output, "disk full");
        // With room again it goes on.
        assert_eq!(answer(&epitome(home.path(), &home.apply()))["status"], "compacted");
        let opened = Store::open(&StoreAt::Path(store(home.path())), Redactor::default()).unwrap();
        assert_eq!(opened.check().unwrap().problems, Vec::<String>::new());
    }
}

/// Whom permissions bind: root, whom they do not, becomes nobody.
fn bound(command: &mut Command, home: &Path) -> bool {
    let root = std::fs::metadata(home).unwrap().uid() == 0;
    if root {
        command.uid(65_534).gid(65_534);
    }
    root
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_folder_that_may_not_be_written() {
    for made in [false, true] {
        let home = home();
        let folder = home.path().join("kept");
        if made {
            Store::open(&StoreAt::Path(folder.clone()), Redactor::default()).unwrap().vacuum().unwrap();
            std::fs::read_dir(&folder).unwrap().for_each(|it| chmod(&it.unwrap().path(), 0o444));
        } else {
            std::fs::create_dir(&folder).unwrap();
        }
        for path in [home.path(), home.session.parent().unwrap()] {
            chmod(path, 0o777);
        }
        chmod(&home.session, 0o666);
        chmod(&folder, 0o555);
        let mut arguments = home.apply();
        arguments.extend(["--store", folder.to_str().unwrap()]);
        let mut command = command(home.path(), home.path(), &arguments);
        bound(&mut command, home.path());
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => {
                return eprintln!(
                    "SKIPPED: a_folder_that_may_not_be_written: the program is not for nobody ({error})"
                );
            }
        };
        home.assert_refused(&output, "--store");
        chmod(&folder, 0o755);
    }
}

#[test]
fn a_store_that_somebody_else_holds() {
    if asked().is_none() {
        return eprintln!(
            "SKIPPED: a_store_that_somebody_else_holds: it waits for 30 s (set EPITOME_ROUNDS)"
        );
    }
    let home = home();
    drop(Store::open(&StoreAt::Path(store(home.path())), Redactor::default()).unwrap());
    let other = rusqlite::Connection::open(store(home.path()).join("epitome.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = std::time::Instant::now();
    let output = epitome(home.path(), &home.apply());
    eprintln!("waited {:.1} s for a store that was held", begun.elapsed().as_secs_f64());
    other.execute_batch("ROLLBACK").unwrap();
    home.assert_refused(&output, "locked by another process");
}

#[test]
fn a_database_that_is_damaged_newer_or_not_ours() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 4] = [
        ("found it damaged", |file| {
            std::fs::write(file, b"SQLite format 3\0 and then nothing of it").unwrap()
        }),
        ("found it damaged", |file| {
            let mut bytes = std::fs::read(file).unwrap();
            let from = bytes.len() / 4;
            bytes[from..].fill(0x5A);
            std::fs::write(file, bytes).unwrap();
        }),
        ("found version 99", |file| {
            rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", 99).unwrap();
        }),
        ("one of another program", |file| {
            std::fs::remove_file(file).unwrap();
            rusqlite::Connection::open(file).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
        }),
    ];
    for (words, spoil) in spoils {
        let home = home();
        let opened = Store::open(&StoreAt::Path(store(home.path())), Redactor::default()).unwrap();
        opened.vacuum().unwrap();
        drop(opened);
        let file = store(home.path()).join("epitome.db");
        spoil(&file);
        let before = std::fs::read(&file).unwrap();
        home.assert_refused(&epitome(home.path(), &home.apply()), words);
        for arguments in
            [&["recall", "anything"][..], &["recall"], &["memory", "add", "x"], &["restore", "last"]]
        {
            assert!(refused(&epitome(home.path(), arguments)).contains(words), "{arguments:?}");
        }
        assert!(std::fs::read(&file).unwrap() == before, "{words}: the damaged file is kept");
        // `doctor` says it instead of failing.
        let doctor = said(&epitome(home.path(), &["doctor"]));
        assert!(doctor.contains("damaged"), "{doctor}");
    }
}

#[test]
fn an_original_that_is_not_what_it_was() {
    let home = home();
    let done = answer(&epitome(home.path(), &home.apply()));
    let handle = done["handle"].as_str().unwrap();
    let compacted = std::fs::read(&home.session).unwrap();
    let database = rusqlite::Connection::open(store(home.path()).join("epitome.db")).unwrap();
    database
        .execute(
            "UPDATE pack SET packed = (SELECT packed FROM pack other WHERE other.id <> pack.id ORDER BY size LIMIT 1)
             WHERE size = (SELECT max(size) FROM pack)",
            [],
        )
        .unwrap();
    drop(database);
    let back = home.path().join("back");
    for arguments in [
        vec!["restore", handle, "--out", back.to_str().unwrap()],
        vec!["restore", handle, "--apply"],
        vec!["recall", handle],
        vec!["compact", handle],
    ] {
        let output = epitome(home.path(), &arguments);
        let why = refused(&output);
        assert!(why.contains("corrupted") && why.contains(handle), "{arguments:?}: {why}");
    }
    assert!(!back.exists() && std::fs::read(&home.session).unwrap() == compacted);
    let doctor = said(&epitome(home.path(), &["doctor"]));
    assert!(doctor.contains("damaged") && doctor.contains(handle), "{doctor}");
}
