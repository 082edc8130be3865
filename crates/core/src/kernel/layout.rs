//! How the two sides of a tile lie in memory: what packs samples (`panels`), pairs them (`tile`)
//! and finishes their values (`finish`) agree on.

/// Samples a block holds: a common multiple of both panel widths that keeps a strip of eight rows
/// in L1.
pub(crate) const BLOCK: usize = 240;
/// Rows a strip holds.
pub(crate) const STRIP: usize = 8;

/// The column side of a tile: whole panels.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a, T> {
    pub(crate) panels: &'a [T],
    pub(crate) half_norms: &'a [T],
    pub(crate) heavy: &'a [bool],
    /// One factor a feature, for pairings that take differences before they scale.
    pub(crate) scale: &'a [T],
}

/// The row side of a tile: eight samples, feature k of row r at `data[k·stride + r]`.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) stride: usize,
    pub(crate) half_norms: &'a [T],
    pub(crate) heavy: bool,
}
