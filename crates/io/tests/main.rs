//! Files from outside. One test binary: each more would link everything again.

#![allow(clippy::unwrap_used, reason = "tests")]

mod files;

mod budget;
mod constraints;
mod formats;
mod hostile;
mod model_file;
mod refusals;

/// Cargo does not look for tests here (`autotests = false`), so a file that is not named above
/// would never run.
#[test]
fn every_file_of_tests_is_part_of_this_binary() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_module = path.extension().is_some_and(|e| e == "rs") || path.join("mod.rs").exists();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let named = include_str!("main.rs").contains(&format!("\nmod {name};\n"));
        assert!(!is_module || name == "main" || named, "add `mod {name};` to tests/main.rs");
    }
}
