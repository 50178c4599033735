//! The direction of dependencies (docs/architecture.md): each folder of `src/` uses only what lies below it, and knows
//! nothing of the crates that belong elsewhere. Read from the sources, since the compiler doesn't mind.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::fs;
use std::path::{Path, PathBuf};

/// Folder, what it may use of this crate, and crates that it must not know.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("telemetry", &["model"], &["tonic", "prost", "tokio", "dashmap"]),
    ("model", &[], &["tonic", "prost", "tokio", "dashmap", "serde_json"]),
    ("manifest", &["model"], &["tonic", "prost", "tokio", "dashmap"]),
    ("cluster", &["model"], &["tonic", "prost", "tokio", "serde_json"]),
    ("engine", &["model", "cluster"], &["tonic", "prost", "tokio", "dashmap", "uuid", "serde_json"]),
    ("evict", &["model", "cluster", "engine"], &["tonic", "prost", "tokio", "dashmap", "uuid", "serde", "serde_json"]),
    ("config", &["model", "manifest", "engine", "evict"], &["tonic", "prost", "tokio", "dashmap"]),
    ("service", &["model", "manifest", "cluster", "engine", "evict", "config", "telemetry"], &["tonic", "prost"]),
    ("api", &["model", "manifest", "cluster", "engine", "evict", "service", "telemetry"], &["clap"]),
    ("http", &["model", "cluster", "service", "telemetry"], &["clap", "tonic", "prost"]),
    ("cli", &["model", "manifest", "cluster", "engine", "evict", "config", "service", "api", "telemetry", "app"], &[]),
];

/// What only the named folders may say: the engine has no clock and no randomness, and what is async stays outside.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("engine", &["SystemTime", "Instant::now", "async fn", "thread_rng", "rand::", "RandomState", "HashMap::new()"]),
    ("cluster", &["SystemTime", "Instant::now", "async fn"]),
    ("evict", &["SystemTime", "Instant::now", "async fn", "thread_rng", "rand::", "RandomState", "HashMap::new()"]),
    ("config", &["SystemTime", "Instant::now", "async fn"]),
    ("service", &["tonic::Status", "async fn"]),
    ("http", &["tonic::Status"]),
    ("cli", &["tonic::Status"]),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The code without comments: a doc link to another layer is no dependency.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The identifiers that follow each occurrence of `prefix`.
fn after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let ends = |c: char| !c.is_alphanumeric() && c != '_';
    code.match_indices(prefix)
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(|(at, _)| {
            let rest = &code[at + prefix.len()..];
            &rest[..rest.find(ends).unwrap_or(rest.len())]
        })
        .collect()
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn each_layer_uses_only_the_layers_below() {
    let mut wrong = Vec::new();
    for (layer, allowed, foreign) in LAYERS {
        for file in sources(&src().join(layer)) {
            let code = code(&file);
            for used in after(&code, "crate::") {
                let known = LAYERS.iter().any(|(name, ..)| *name == used) || used == "app";
                if known && used != *layer && !allowed.contains(&used) {
                    wrong.push(format!("{}: uses crate::{used}", file.display()));
                }
            }
            if code.contains("crate::{") {
                wrong.push(format!("{}: groups imports at crate level, which this test can't read", file.display()));
            }
            for name in *foreign {
                if !after(&code, &format!("{name}::")).is_empty() {
                    wrong.push(format!("{}: uses {name}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_layer_must_not_do_is_not_in_its_code() {
    let mut wrong = Vec::new();
    for (layer, words) in FORBIDDEN {
        for file in sources(&src().join(layer)) {
            let code = code(&file);
            wrong.extend(words.iter().filter(|w| code.contains(**w)).map(|w| format!("{}: {w}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_folder_is_a_layer_or_wiring() {
    for entry in fs::read_dir(src()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let known = LAYERS.iter().any(|(layer, ..)| *layer == name) || ["lib", "main", "app"].contains(&&*name);
        assert!(known, "src/{name} has no place in the table of layers");
    }
}

#[test]
fn main_stays_wiring() {
    let lines = fs::read_to_string(src().join("main.rs")).unwrap().lines().count();
    assert!(lines <= 40, "main.rs has {lines} lines");
}
