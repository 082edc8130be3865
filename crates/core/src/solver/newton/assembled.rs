//! An operator and the preconditioner of its systems: what Newton's method multiplies with.

use super::settings::NewtonSettings;
use crate::decision_set::{Faces, SampleSets};
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::{
    Coupled, CoupledDirect, Direct, Grown, Identity, KeptFactor, LowRank, Preconditioner,
    RankLimits, Remote, Woodbury,
};
use crate::problem::Problem;
use crate::random::stream;
use crate::solver::clock::Clock;

/// trace(K − BᵀB)/λ at which the preconditioner is good enough.
const ENOUGH_TRACE: f64 = 200.0;
/// Operations of a factorisation that take as long as one of a product, which waits for memory; and
/// the products that a factorisation may take as long as. Beyond 400 the system is given up half
/// solved, which costs steps (ADR 0018).
const QUICKER: f64 = 5.0;
const MOST_PRODUCTS: f64 = 1600.0;

/// Both, one made for the other.
pub(crate) struct Assembled<'a> {
    pub(crate) operator: &'a dyn KernelOperator,
    pub(crate) preconditioner: Box<dyn Preconditioner + 'a>,
    /// Whether the preconditioner is K + λI itself, by its factor.
    direct: bool,
    /// trace(K − BᵀB) of what the preconditioner is made of.
    pub(crate) trace_left: f64,
    outright: Outright<'a>,
}

/// Factors of the systems themselves, for those that the preconditioner leaves too much of.
struct Outright<'a> {
    /// Bytes they may take.
    room: u64,
    /// Whether a system has taken as many products as a factor would have been worth.
    wanted: bool,
    factor: Option<Box<dyn Preconditioner + 'a>>,
}

impl Outright<'_> {
    fn within(room: u64) -> Self {
        Self { room, wanted: false, factor: None }
    }
}

impl<'a> Assembled<'a> {
    /// A preconditioner for the systems of `problem`, good enough for a λ of `finest` too. The
    /// operator is exact already where rounding of its working precision has made K + λI
    /// indefinite. `kept` is what a fit of the first samples has left of its own, where it has.
    pub(crate) fn new(
        problem: &Problem,
        operator: &'a dyn KernelOperator,
        settings: &NewtonSettings,
        (seed, kept): (u64, Option<KeptFactor>),
        finest: f64,
        clock: &mut Clock<'_>,
    ) -> Result<Self, Error> {
        let (n_samples, dim) = (problem.n_samples(), problem.decision_dim());
        let ridge = problem.ridge();
        let mut rng = stream(seed, "pivots");
        let limits = |max_rank| RankLimits { max_rank, enough_trace: ENOUGH_TRACE * finest };
        let stop = || !clock.poll();
        let trace_left;
        let preconditioner: Box<dyn Preconditioner + 'a> = match problem.sets() {
            SampleSets::Boxes(_) => {
                let max_rank = settings.rank_for(n_samples);
                if max_rank == n_samples {
                    return Self::factorised(problem, operator);
                }
                if let Some(kept) = kept
                    && let Some(grown) = Grown::new(operator, kept, ridge, limits(max_rank))?
                {
                    let (trace_left, preconditioner) = (grown.trace_left(), Box::new(grown));
                    let outright = Outright::within(settings.spare_bytes);
                    return Ok(Self {
                        operator,
                        preconditioner,
                        direct: false,
                        trace_left,
                        outright,
                    });
                }
                let factor = match operator.remote_factor(max_rank, dim, None)? {
                    None => LowRank::build(operator, limits(max_rank), &mut rng, stop)?,
                    Some(place) => {
                        LowRank::build_there(operator, place, limits(max_rank), &mut rng, stop)?
                    }
                };
                trace_left = factor.trace_left();
                let pivots = factor.pivots().to_vec();
                match factor.into_rows() {
                    Ok(factor) => Box::new(Remote::new(factor, ridge)),
                    Err(panel) => {
                        Box::new(Woodbury::new(panel, ridge, dim).of_pivots(pivots, trace_left))
                    }
                }
            }
            SampleSets::Polyhedra(_) => {
                let limits = limits(settings.coupled_rank_for(n_samples, dim));
                let factor = LowRank::build(operator, limits, &mut rng, stop)?;
                trace_left = factor.trace_left();
                Box::new(Coupled::new(factor, ridge, dim)?)
            }
        };
        let outright = Outright::within(settings.spare_bytes);
        Ok(Self { operator, preconditioner, direct: false, trace_left, outright })
    }

    /// With K + λI factorised: in the operator's working precision, or in f64 where rounding has
    /// made that indefinite.
    fn factorised(problem: &Problem, operator: &'a dyn KernelOperator) -> Result<Self, Error> {
        let direct = Direct::new(operator, problem.ridge(), problem.decision_dim())?;
        if direct.indefinite() && !operator.is_exact() {
            drop(direct);
            return Self::factorised(problem, operator.exact());
        }
        if direct.indefinite()
            && let Some(fault) = direct.fault()?
        {
            return Err(Error::NotPositiveSemidefinite(fault));
        }
        let (preconditioner, outright) = (Box::new(direct), Outright::within(0));
        Ok(Self { operator, preconditioner, direct: true, trace_left: 0.0, outright })
    }

    /// The same, lent to one solve.
    pub(crate) fn lend(&mut self) -> Assembled<'_> {
        let Self { operator, preconditioner, direct, trace_left, outright } = self;
        let preconditioner = Box::new(&mut **preconditioner);
        let outright = Outright::within(outright.room);
        let (operator, direct, trace_left) = (*operator, *direct, *trace_left);
        Assembled { operator, preconditioner, direct, trace_left, outright }
    }

    /// Follows new faces with what their systems will be solved with.
    pub(crate) fn follow(&mut self, problem: &Problem, faces: &Faces) -> Result<(), Error> {
        if !self.outright.wanted || self.worth(problem, faces).is_none() {
            self.outright.factor = None;
            return self.preconditioner.update(faces);
        }
        let (operator, ridge, dim) = (self.operator, problem.ridge(), problem.decision_dim());
        let factor = match (&mut self.outright.factor, faces) {
            (Some(factor), _) => factor,
            (none, Faces::Box(_)) => none.insert(Box::new(Direct::new(operator, ridge, dim)?)),
            (none, Faces::Polyhedral(_)) => {
                none.insert(Box::new(CoupledDirect::new(operator, ridge, dim)))
            }
        };
        factor.update(faces)
    }

    /// What the systems of the faces followed last are solved with.
    pub(crate) fn followed(&self) -> &dyn Preconditioner {
        self.outright.factor.as_deref().unwrap_or(&*self.preconditioner)
    }

    /// Products that a system may take before its own factor is the better way; none where there is
    /// no other way, or where it is being used.
    pub(crate) fn patience(&self, problem: &Problem, faces: &Faces) -> Option<usize> {
        if self.outright.factor.is_some() { None } else { self.worth(problem, faces) }
    }

    /// From the next faces on, systems are solved by their own factors where these are worth it.
    pub(crate) fn lose_patience(&mut self) {
        self.outright.wanted = true;
    }

    /// Products that take as long as factorising the systems of these faces; none where that takes
    /// too long, or more memory than there is. Counted, not timed: answers do not depend on how
    /// busy a machine is.
    fn worth(&self, problem: &Problem, faces: &Faces) -> Option<usize> {
        let (n_samples, dim) = (problem.n_samples(), problem.decision_dim());
        let n_free = faces.n_free(dim);
        let cube = |n: usize| (n as f64).powi(3) / 3.0;
        let (bytes, all) = match faces {
            Faces::Box(_) => (Direct::bytes(n_samples, dim), cube(n_samples)),
            Faces::Polyhedral(_) => (CoupledDirect::bytes(n_samples, n_free[0], dim), 0.0),
        };
        let operations = all + n_free.into_iter().map(cube).sum::<f64>();
        let product = 2.0 * (n_samples as f64).powi(2) * dim as f64;
        let products = operations / (QUICKER * product);
        (bytes <= self.outright.room && products <= MOST_PRODUCTS).then_some(products as usize)
    }

    /// From here on with kernel values in f64.
    pub(crate) fn turn_exact(&mut self, problem: &Problem) -> Result<(), Error> {
        self.operator = self.operator.exact();
        self.outright.factor = None;
        if self.direct {
            // The old factor goes before the new one comes.
            self.preconditioner = Box::new(Identity);
            *self = Self::factorised(problem, self.operator)?;
        }
        Ok(())
    }
}
