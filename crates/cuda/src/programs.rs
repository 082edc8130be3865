//! The embedded kernels. `kernels/build.py ptx` writes the file; the driver compiles what it is
//! given for its GPU when first loaded. Packed they are a fourteenth: every copy of the package
//! carries them, and few run where there is a GPU.

use ruzstd::decoding::StreamingDecoder;
use std::io::Read;
use std::sync::OnceLock;

/// What stands before the name of a program, on a line of its own.
const MARK: &str = "// program ";

/// All of them, one after the other.
static PACKED: &[u8] = include_bytes!("../ptx/programs.zst");

/// PTX of a program.
///
/// # Panics
/// If there is none of that name.
pub(crate) fn ptx(name: &str) -> &'static str {
    static PROGRAMS: OnceLock<String> = OnceLock::new();
    let all = PROGRAMS.get_or_init(unpacked);
    let mut programs = all.split(MARK).filter_map(|program| program.split_once('\n'));
    let found = programs.find(|(own, _)| *own == name);
    found.unwrap_or_else(|| unreachable!("no program named {name}")).1
}

fn unpacked() -> String {
    let mut text = String::new();
    let decoder = StreamingDecoder::new(PACKED);
    decoder.expect("a test unpacks it").read_to_string(&mut text).expect("a test unpacks it");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that are asked for by name somewhere in the crate.
    const NAMES: [&str; 26] = [
        "pack",
        "linear",
        "factor",
        "descent",
        "exact_0",
        "exact_1",
        "exact_2",
        "exact_3",
        "exact_tensor_4",
        "exact_tensor_8",
        "exact_rbf_4",
        "exact_rbf_8",
        "fused_rbf_1_1",
        "fused_rbf_1_2",
        "fused_rbf_2_1",
        "fused_rbf_2_2",
        "fused_laplace_2_1",
        "fused_laplace_2_2",
        "fused_matern32_1_1",
        "fused_matern32_1_2",
        "fused_matern32_2_1",
        "fused_matern32_2_2",
        "fused_matern52_1_1",
        "fused_matern52_1_2",
        "fused_matern52_2_1",
        "fused_matern52_2_2",
    ];

    #[test]
    fn embedded_ptx_is_that_of_cuda_12_0_for_ampere() {
        for name in NAMES {
            assert!(ptx(name).contains("\n.version 8.0\n.target sm_80\n"), "{name}");
        }
        assert_eq!(unpacked().matches(MARK).count(), NAMES.len());
    }
}
