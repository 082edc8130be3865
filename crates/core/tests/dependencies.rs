//! What `Cargo.toml` asks of dependencies of dependencies.

/// faer's vectors and threads' places are switched on by naming the crates it is built on
/// (`Cargo.toml`). Of another version than faer's they would switch on nothing, and products would
/// take four times as long without a word.
#[test]
fn crates_that_faer_is_built_on_are_there_once() {
    let lock = include_str!("../../../Cargo.lock");
    for name in ["faer-traits", "gemm", "nano-gemm", "pulp"] {
        let entry = format!("\nname = \"{name}\"\n");
        assert_eq!(lock.matches(&entry).count(), 1, "{name}");
    }
    assert!(!lock.contains("name = \"private-gemm-x86\""), "faer's feature `std` is on again");
}
