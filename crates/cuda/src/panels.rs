//! Features that kernels take tile by tile: all of them on the GPU, or, where they do not fit, in
//! pinned memory of the host, from where panels of samples are copied while the panel before is
//! multiplied with.
//!
//! What is computed, and in which order it is added up, does not depend on where features are: a
//! product is cut into pairs of groups of samples (a ≤ b), and panels are whole groups.
#![allow(unsafe_code)]

use crate::device::Device;
use crate::error::Error;
use cudarc::driver::{
    CudaSlice, CudaStream, DeviceRepr, DriverError, PinnedHostSlice, ValidAsZeroBits,
};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Samples of a panel come in multiples of this, which is one of every kind of group.
pub(crate) const PANEL_UNIT: usize = 1024;
/// Panels on the GPU at once: of the rows, of the columns, and the one that is being copied.
pub(crate) const SLOTS: usize = 3;

/// One part of a product: pairs (a, b) of which a is in one panel and b in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Panels of a and of b.
    pub(crate) panels: [usize; 2],
    pub(crate) a: Range<usize>,
    pub(crate) b: Range<usize>,
}

/// The steps of all pairs with a in `batch` and b ≥ a, where a panel has so many groups. Each
/// brings one panel at most that the step before it had not, so that three suffice.
pub(crate) fn steps(panel_groups: usize, n_groups: usize, batch: Range<usize>) -> Vec<Step> {
    let panel = |p: usize| p * panel_groups..((p + 1) * panel_groups).min(n_groups);
    let n_panels = n_groups.div_ceil(panel_groups);
    let rows = batch.start / panel_groups..batch.end.div_ceil(panel_groups);
    rows.flat_map(|p| {
        let a = panel(p).start.max(batch.start)..panel(p).end.min(batch.end);
        let first = a.start;
        (p..n_panels).map(move |q| {
            let b = panel(q).start.max(first)..panel(q).end;
            Step { panels: [p, q], a: a.clone(), b }
        })
    })
    .collect()
}

/// A panel on the GPU.
pub(crate) struct Panel<'a, T> {
    pub(crate) data: &'a CudaSlice<T>,
    /// Its first sample.
    pub(crate) first: usize,
    /// Its samples, padded.
    pub(crate) n_rows: usize,
}

/// `width` numbers a sample, of samples padded to whole tiles.
#[derive(Debug)]
pub(crate) enum Features<T> {
    /// On the GPU.
    Resident { data: CudaSlice<T>, n_rows: usize },
    /// On the host.
    Streamed(Panels<T>),
}

/// Panels in pinned memory, and room for a few on the GPU.
#[derive(Debug)]
pub(crate) struct Panels<T> {
    device: Device,
    /// Samples of a panel, and numbers of a sample.
    rows: usize,
    width: usize,
    pinned: Vec<PinnedHostSlice<T>>,
    /// Copies go beside the kernels. The driver's events, which `cudarc` sets at each use of a
    /// buffer, keep a copy from overtaking the kernel that still reads.
    copier: Arc<CudaStream>,
    slots: Mutex<Vec<Slot<T>>>,
}

#[derive(Debug)]
struct Slot<T> {
    data: CudaSlice<T>,
    /// The panel that is there.
    holds: Option<usize>,
}

impl<T: DeviceRepr + ValidAsZeroBits> Features<T> {
    /// Takes the next panel; what lies on the GPU is whole from the beginning.
    pub fn push(&mut self, panel: &CudaSlice<T>) -> Result<(), Error> {
        match self {
            Self::Streamed(panels) => panels.push(panel),
            Self::Resident { .. } => Ok(()),
        }
    }

    /// Calls `launch` for each of the steps of `batch`, groups of `group_rows` samples, with the
    /// panels of its rows and of its columns.
    pub(crate) fn each_step(
        &self,
        (n_groups, group_rows): (usize, usize),
        batch: Range<usize>,
        mut launch: impl FnMut(&Step, [Panel<'_, T>; 2]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::Resident { data, n_rows } => {
                let panel = || Panel { data, first: 0, n_rows: *n_rows };
                let all = steps(n_groups, n_groups, batch);
                all.iter().try_for_each(|step| launch(step, [panel(), panel()]))
            }
            Self::Streamed(panels) => {
                let steps = steps(panels.rows / group_rows, n_groups, batch);
                panels.each_step(&steps, launch)
            }
        }
    }

    /// The buffer of features that are all on the GPU.
    pub(crate) fn resident(&self) -> Option<&CudaSlice<T>> {
        match self {
            Self::Resident { data, .. } => Some(data),
            Self::Streamed(_) => None,
        }
    }
}

impl<T: DeviceRepr + ValidAsZeroBits> Panels<T> {
    /// Room for panels of `rows` samples, `width` numbers each; `push` fills it.
    pub(crate) fn new(device: &Device, rows: usize, width: usize) -> Result<Self, Error> {
        let slot = |_| Ok(Slot { data: device.zeros(PANELS, rows * width)?, holds: None });
        Ok(Self {
            device: device.clone(),
            rows,
            width,
            pinned: Vec::new(),
            copier: device.new_stream()?,
            slots: Mutex::new((0..SLOTS).map(slot).collect::<Result<_, Error>>()?),
        })
    }

    /// The next panel, from the GPU: `rows` samples, fewer in the last.
    pub(crate) fn push(&mut self, panel: &CudaSlice<T>) -> Result<(), Error> {
        let mut pinned = self.device.pinned(panel.len())?;
        self.device.stream().memcpy_dtoh(panel, &mut pinned).map_err(copying)?;
        self.pinned.push(pinned);
        Ok(())
    }

    fn each_step(
        &self,
        steps: &[Step],
        mut launch: impl FnMut(&Step, [Panel<'_, T>; 2]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = steps.first() {
            self.fetch(&mut slots, &first.panels, &[])?;
        }
        for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
            if let Some(next) = next {
                self.fetch(&mut slots, &next.panels, &step.panels)?;
            }
            let panel = |p: usize| {
                let slot = slots.iter().find(|slot| slot.holds == Some(p));
                let data = &slot.expect("a step's panels were fetched").data;
                let n_rows = self.pinned[p].len() / self.width;
                Panel { data, first: p * self.rows, n_rows }
            };
            launch(step, step.panels.map(panel))?;
        }
        Ok(())
    }

    /// Begins to copy the panels that are not there to where nothing that is `kept` is.
    fn fetch(&self, slots: &mut [Slot<T>], wanted: &[usize], kept: &[usize]) -> Result<(), Error> {
        for &panel in wanted {
            let holds: Vec<_> = slots.iter().map(|slot| slot.holds).collect();
            let Some(at) = slot_for(&holds, panel, wanted, kept) else { continue };
            let slot = &mut slots[at];
            // Where the copy fails, nothing is there.
            slot.holds = None;
            let mut place = slot.data.slice_mut(..self.pinned[panel].len());
            self.copier.memcpy_htod(&self.pinned[panel], &mut place).map_err(copying)?;
            slot.holds = Some(panel);
        }
        Ok(())
    }
}

/// Where a panel is to be copied; none where it is there already.
fn slot_for(
    holds: &[Option<usize>],
    panel: usize,
    wanted: &[usize],
    kept: &[usize],
) -> Option<usize> {
    if holds.contains(&Some(panel)) {
        return None;
    }
    let needed = |p: usize| wanted.contains(&p) || kept.contains(&p);
    let free = holds.iter().position(|held| held.is_none_or(|p| !needed(p)));
    Some(free.expect("two steps have three panels at most"))
}

/// As messages name the room on the GPU.
const PANELS: &str = "panels of features";

fn copying(error: DriverError) -> Error {
    Error::from_driver("copying features", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every pair once, in panels that are there, of which each step brings one at most.
    #[test]
    fn steps_cover_every_pair_once_with_three_panels() {
        for (panel_groups, n_groups, batch) in [(4, 13, 5), (4, 12, 4), (1, 6, 2), (20, 13, 3)] {
            let mut seen = BTreeSet::new();
            let mut holds = [None; SLOTS];
            let mut kept: Vec<usize> = Vec::new();
            for first in (0..n_groups).step_by(batch) {
                let batch = first..(first + batch).min(n_groups);
                for step in steps(panel_groups, n_groups, batch.clone()) {
                    for panel in step.panels {
                        if let Some(at) = slot_for(&holds, panel, &step.panels, &kept) {
                            holds[at] = Some(panel);
                        }
                    }
                    assert!(step.panels.iter().all(|p| holds.contains(&Some(*p))), "{step:?}");
                    kept = step.panels.to_vec();
                    for a in step.a.clone() {
                        assert!(batch.contains(&a) && a / panel_groups == step.panels[0]);
                        for b in step.b.clone().filter(|b| *b >= a) {
                            assert_eq!(b / panel_groups, step.panels[1]);
                            assert!(seen.insert((a, b)), "{a} {b} twice");
                        }
                    }
                }
                kept.clear();
            }
            assert_eq!(seen.len(), n_groups * (n_groups + 1) / 2);
        }
    }

    #[test]
    fn features_that_fit_are_one_step_a_batch() {
        let expected = Step { panels: [0, 0], a: 3..5, b: 3..9 };
        assert_eq!(steps(9, 9, 3..5), [expected]);
    }

    #[test]
    fn a_panel_that_is_there_is_not_copied_and_none_that_is_needed_makes_room() {
        let holds = [Some(4), Some(7), None];
        assert_eq!(slot_for(&holds, 7, &[4, 7], &[4, 4]), None);
        assert_eq!(slot_for(&holds, 8, &[4, 8], &[4, 7]), Some(2));
        assert_eq!(slot_for(&[Some(4), Some(7), Some(8)], 9, &[4, 9], &[4, 8]), Some(1));
    }
}
