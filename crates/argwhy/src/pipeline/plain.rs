//! Plain fits: weights of features, without a kernel.

use super::following::{Forward, Progress};
use super::{Fit, Pipeline, Task, check_machine, sources_of};
use crate::checkpoint::fingerprint;
use crate::error::Error;
use crate::machine::peak_memory_bytes;
use crate::notes;
use crate::plan::Plan;
use argwhy_core::features::Design;
use argwhy_core::model::Parts;
use argwhy_core::solver::primal;
use argwhy_core::{Dataset, Model, familiarity};
use std::time::Instant;

impl Pipeline {
    /// Weights of features instead of coefficients of samples. Features are computed as they are
    /// needed; signals stay where they are.
    pub(super) fn fit_plain(
        &self,
        data: &Dataset,
        task: Task,
        start: Instant,
        progress: &mut (dyn Progress + Send),
    ) -> Result<Fit, Error> {
        let settings = &self.settings;
        if self.start.is_some() {
            let what = "a plain fit ({primal}) takes a few passes over the data and starts from \
                        nothing; leave {resume} and {from} out";
            return Err(Error::Start { what: what.to_owned() });
        }
        let Task { problem, set, constrained, sizes, outside, rows } = task;
        let plan = Plan::primal(settings, sizes)?;
        check_machine(&plan)?;
        let features = self.features_of(data)?;
        let kernel = settings.kernel_for(features.n_features())?;
        notes::tell(settings, constrained, &outside, progress);
        let notes = [notes::constant_note(data, &rows), notes::faint_note(settings, data, &rows)];
        notes.iter().flatten().for_each(|note| progress.on_note(note));
        progress.on_plan(&plan, &outside);
        let seen = familiarity::ranges_alone(data.signals(), &rows);
        let design = Design::new(&features, data.signals())?
            .with_rows(&rows)
            .with_intercept(settings.intercept);
        let own = settings.primal_solver();
        let mut observer = Forward { progress, keep: None, rows: String::new(), seen: None };
        let mut outcome = primal::solve(&problem, &design, &own, &mut observer)?;
        outcome.seconds = start.elapsed().as_secs_f64();
        let (signals, names) = (data.signals(), data.names().clone());
        let parts = Parts { features, kernel, set, constrained, signals, rows: &[], names };
        let mut model = Model::from_outcome(&problem, &outcome, parts);
        model.record.peak_memory_bytes = peak_memory_bytes();
        model.seen = Some(seen);
        let sources = sources_of(constrained, &fingerprint(data, &rows));
        let settings = settings.clone();
        Ok(Fit { model, outcome, plan, outside, rows, sources, settings })
    }
}
