//! Packs as objects: in S3 or a compatible service, or as files in a directory that all servers share.
//!
//! An object's name has its owner, its content's digest and a random number. No name is used twice, so that
//! an object without a row can be deleted while another server stores the same content again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt as _, RetryConfig};
use ring::rand::SecureRandom as _;
use tokio::runtime::Runtime;

use crate::store::Digest;
use history::error::{Error, ErrorKind, Result};

/// Timeout of a request, and how long a failed one is retried.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Milliseconds. A younger object without a row may belong to a transaction under way.
const MIN_ORPHAN_AGE_MS: i64 = 24 * 60 * 60 * 1_000;

pub(crate) struct Blobs {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl Blobs {
    /// `s3://bucket/…` with the usual `AWS_*` variables, or `file:///directory`.
    pub(crate) fn open(url: &str, variables: &BTreeMap<String, String>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Error::new(ErrorKind::Io, "opening the store's objects").because(error))?;
        let wrong = |what: &str| {
            let expected = "expected s3://bucket or file:///directory";
            Error::new(ErrorKind::Arguments, format!("--blobs: {expected}, found {what}"))
        };
        let store: Arc<dyn ObjectStore> = if let Some(directory) = url.strip_prefix("file://") {
            if !directory.starts_with('/') {
                return Err(wrong("a directory that is not absolute"));
            }
            std::fs::create_dir_all(directory)
                .map_err(|error| wrong("a directory that cannot be made").because(error))?;
            let files = LocalFileSystem::new_with_prefix(directory)
                .map_err(|error| wrong("one that cannot be opened").because(error))?;
            Arc::new(files.with_fsync(true))
        } else if let Some(bucket) = url.strip_prefix("s3://") {
            crate::llm::http::use_ring();
            let retry =
                RetryConfig { max_retries: 5, retry_timeout: REQUEST_TIMEOUT, ..RetryConfig::default() };
            let client = ClientOptions::new()
                .with_timeout(REQUEST_TIMEOUT)
                .with_connect_timeout(Duration::from_secs(5));
            let mut builder = AmazonS3Builder::new().with_client_options(client);
            for (name, value) in variables {
                let known =
                    name.starts_with("AWS_").then(|| name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>());
                if let Some(Ok(key)) = known {
                    builder = builder.with_config(key, value);
                }
            }
            let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
            let store = builder
                .with_bucket_name(bucket)
                .with_retry(retry)
                .build()
                .map_err(|error| wrong("one that cannot be opened").because(error))?;
            Arc::new(object_store::prefix::PrefixStore::new(store, prefix))
        } else {
            return Err(wrong("another address"));
        };
        Ok(Self { store, runtime })
    }

    fn wait<T>(&self, job: impl Future<Output = object_store::Result<T>>) -> object_store::Result<T> {
        outside_runtime(|| self.runtime.block_on(job))
    }

    /// Uploads a pack; returns the name of its object.
    pub(crate) fn put(&self, owner: &str, sha: &Digest, packed: Vec<u8>) -> Result<String> {
        let mut chance = [0; 8];
        ring::rand::SystemRandom::new()
            .fill(&mut chance)
            .map_err(|_| Error::new(ErrorKind::Io, "archiving originals: expected random bytes"))?;
        let owner = Digest::of(owner.as_bytes()).to_string();
        let owner = owner.get(..16).unwrap_or_default();
        let name = format!("packs/{owner}/{sha}-{:016x}", u64::from_le_bytes(chance));
        self.wait(self.store.put(&Path::from(name.as_str()), packed.into()))
            .map_err(failed("archiving originals"))?;
        Ok(name)
    }

    /// The bytes of an object; `None` if it is missing.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let found = self.wait(async {
            let found = self.store.get(&Path::from(name)).await?;
            found.bytes().await
        });
        match found {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("reading the archive")(error)),
        }
    }

    /// Deletes objects that are neither in `named` nor younger than [`MIN_ORPHAN_AGE_MS`]. `at`: milliseconds since 1970.
    pub(crate) fn sweep(&self, named: &HashSet<String>, at: i64) -> Result<()> {
        let doing = "deleting old data";
        let prefix = Path::from("packs");
        let found: Vec<_> = self.wait(self.store.list(Some(&prefix)).try_collect()).map_err(failed(doing))?;
        let is_old =
            |it: &&object_store::ObjectMeta| it.last_modified.timestamp_millis() < at - MIN_ORPHAN_AGE_MS;
        for it in found.iter().filter(|it| !named.contains(it.location.as_ref())).filter(is_old) {
            match self.wait(self.store.delete(&it.location)) {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed(doing)(error)),
            }
        }
        Ok(())
    }
}

/// Runs a job that blocks; within a multi-threaded Tokio runtime, without blocking the runtime's other tasks.
pub(crate) fn outside_runtime<T>(job: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(it) if it.runtime_flavor() == RuntimeFlavor::MultiThread => tokio::task::block_in_place(job),
        Ok(_) | Err(_) => job(),
    }
}

fn failed(doing: &'static str) -> impl Fn(object_store::Error) -> Error {
    move |error| {
        let found = "the object store did not answer; nothing was changed. Check --blobs and AWS_*";
        Error::new(ErrorKind::Io, format!("{doing}: {found}")).because(error)
    }
}
