//! The page of `argwhy explore`: a model, past cases and the code that decides, in one file.
//!
//! The code is WebAssembly of `crates/wasm`, made ahead by its `build` and kept compressed, better
//! than browsers can unpack: pages have it, and the numbers, in gzip.

use crate::error::CliError;
use crate::report::{ReportError, STYLE};
use argwhy::explain::Exploration;
use flate2::Compression;
use flate2::write::GzEncoder;
use minijinja::{Environment, Value, context};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read, Write};

const TEMPLATE: &str = include_str!("explore/page.html");
const OWN_STYLE: &str = include_str!("explore/page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("explore/engine.js"),
    include_str!("explore/draw.js"),
    include_str!("explore/page.js"),
    include_str!("explore/controls.js"),
];
const ENGINE: &[u8] = include_bytes!("explore/engine.wasm.zst");

/// The page, as text.
pub fn page(found: &Exploration, title: &str, subtitle: &str) -> Result<String, CliError> {
    let in_gzip = |bytes: &[u8]| packed(bytes).map_err(|e| CliError::Report(e.to_string()));
    let numbers: Vec<u8> = found.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let (engine, numbers) = (in_gzip(&engine())?, in_gzip(&numbers)?);
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
            engine => safe(base64(&engine)),
            numbers => safe(base64(&numbers)),
        })?)
    };
    draw().map_err(|e| CliError::Report(e.to_string()))
}

/// JSON that cannot end the script it stands in.
fn in_script(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

fn engine() -> Vec<u8> {
    let mut code = Vec::new();
    let decoder = StreamingDecoder::new(ENGINE);
    decoder.expect("a test unpacks it").read_to_end(&mut code).expect("a test unpacks it");
    code
}

fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
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
    fn the_engine_unpacks_and_is_webassembly() {
        let code = engine();
        assert!(code.starts_with(b"\0asm\x01\0\0\0"), "{:?}", &code[..8]);
        let mut unpacked = Vec::new();
        let in_gzip = packed(&code).unwrap();
        flate2::read::GzDecoder::new(&in_gzip[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, code);
    }

    #[test]
    fn names_cannot_leave_their_script() {
        let about = serde_json::json!({"name": "</script><script>alert(1)</script>"});
        assert!(!in_script(&about).contains('<'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&in_script(&about)).unwrap(), about);
    }
}
