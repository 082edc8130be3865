//! The embedded kernels. `kernels/build.py ptx` writes the files; the driver compiles them for its
//! GPU when first loaded. Packed they are a sixth: every copy of the command carries them, and few
//! run where there is a GPU.

use flate2::read::GzDecoder;
use std::io::Read;

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        /// Names of all programs.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$($name),*];

        /// PTX of a program.
        ///
        /// # Panics
        /// If there is none of that name.
        pub(crate) fn ptx(name: &str) -> String {
            let packed: &[u8] = match name {
                $($name => include_bytes!(concat!("../ptx/", $name, ".ptx.gz")),)*
                _ => unreachable!("no program named {name}"),
            };
            let mut text = String::new();
            let unpacked = GzDecoder::new(packed).read_to_string(&mut text);
            unpacked.expect("a test unpacks every program");
            text
        }
    };
}

programs!(
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
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_ptx_is_that_of_cuda_12_0_for_ampere() {
        for name in NAMES {
            assert!(ptx(name).contains("\n.version 8.0\n.target sm_80\n"), "{name}");
        }
    }
}
