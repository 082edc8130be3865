//! One reader, asked for everything it can find.

use argwhy_io::{Budget, DataRequest, Missing, contents, load};

/// Memory that a file may take, whatever it claims.
const LIMIT: u64 = 256 << 20;

/// Reads the bytes as a file with this ending: signals and decisions, constraints, all columns, and
/// what the file has.
pub fn read(ending: &str, bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("argwhy-fuzz-{}.{ending}", std::process::id()));
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let budget = Budget::within(LIMIT, 0);
    let usual = DataRequest { budget, missing: Missing::Drop, ..DataRequest::default() };
    let all = DataRequest { signals: Some("*".to_owned()), want_decisions: false, ..usual.clone() };
    let limited = DataRequest { constraints: true, episodes: true, ..usual.clone() };
    for request in [usual, all, limited] {
        let _ = load(&path, &request);
    }
    let _ = contents(&path, &DataRequest { budget, ..DataRequest::default() });
}
