//! Finds the commit that the program is built from. Without git, or outside a repository of this project, the
//! commit is unknown.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files and folders that a crate is built from.
const BUILT_OF: [&str; 4] = ["Cargo.toml", "build.rs", "data", "src"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = root.canonicalize().ok().and_then(|root| commit(&root));
    println!("cargo::rustc-env=HEARSAY_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn commit(root: &Path) -> Option<String> {
    // The sources may be unpacked inside another repository.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != *root {
        return None;
    }
    let built_of = built_of(root);
    // This file changes with each commit, merge and checkout.
    let log = root.join(git(root, &["rev-parse", "--git-path", "logs/HEAD"])?);
    for path in built_of.iter().chain([&log]).filter(|it| it.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let paths: Vec<_> = built_of.iter().filter_map(|it| it.to_str()).collect();
    let changed = git(root, &[&["status", "--porcelain", "--"], &paths[..]].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// All paths that change the program.
fn built_of(root: &Path) -> Vec<PathBuf> {
    let crates = root.join("crates").read_dir().into_iter().flatten().flatten();
    let of_crate = |it: DirEntry| BUILT_OF.map(|name| it.path().join(name));
    let mut paths: Vec<_> = crates.flat_map(of_crate).filter(|it| it.exists()).collect();
    paths.extend(["scenarios", "Cargo.toml", "Cargo.lock"].map(|it| root.join(it)));
    paths.sort();
    paths
}

/// The output of a git command; `None` if git is missing or fails.
fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(words)
        .current_dir(root)
        // Without this, git could rewrite the index, and so trigger a rebuild.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()
        .filter(|it| it.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
