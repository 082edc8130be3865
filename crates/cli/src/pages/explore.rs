//! The page of `argwhy explore`: a model, past cases and the code that decides, in one file.
//!
//! The code is WebAssembly of `crates/wasm`, made ahead by its `build` and kept compressed;
//! browsers unpack it, and the numbers, themselves.

use crate::error::CliError;
use crate::report::{ReportError, STYLE};
use argwhy::explain::Exploration;
use flate2::Compression;
use flate2::write::GzEncoder;
use minijinja::{Environment, Value, context};
use std::io::{self, Write};

const TEMPLATE: &str = include_str!("explore/page.html");
const OWN_STYLE: &str = include_str!("explore/page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("explore/engine.js"),
    include_str!("explore/draw.js"),
    include_str!("explore/page.js"),
    include_str!("explore/controls.js"),
];
const ENGINE: &[u8] = include_bytes!("explore/engine.wasm.gz");

/// The page, as text.
pub fn page(found: &Exploration, title: &str, subtitle: &str) -> Result<String, CliError> {
    let packed = packed(&found.numbers).map_err(|e| CliError::Report(e.to_string()))?;
    let draw = || -> Result<String, ReportError> {
        let mut environment = Environment::new();
        environment.add_template("explore.html", TEMPLATE)?;
        let safe = Value::from_safe_string;
        Ok(environment.get_template("explore.html")?.render(context! {
            title,
            subtitle,
            footer => format!("argwhy {}.", env!("CARGO_PKG_VERSION")),
            style => safe(format!("{STYLE}{OWN_STYLE}")),
            script => safe(SCRIPTS.concat()),
            about => safe(in_script(&found.about)),
            model => safe(in_script(&found.model)),
            engine => safe(base64(ENGINE)),
            numbers => safe(base64(&packed)),
        })?)
    };
    draw().map_err(|e| CliError::Report(e.to_string()))
}

/// JSON that cannot end the script it stands in.
fn in_script(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

fn packed(numbers: &[f64]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for number in numbers {
        encoder.write_all(&number.to_le_bytes())?;
    }
    encoder.finish()
}

/// Six bits a letter, as RFC 4648 has it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_the_standard_has_it() {
        let of = |text: &str| base64(text.as_bytes());
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(of);
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn names_cannot_leave_their_script() {
        let about = serde_json::json!({"name": "</script><script>alert(1)</script>"});
        assert!(!in_script(&about).contains('<'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&in_script(&about)).unwrap(), about);
    }
}
