//! An operator and the preconditioner of its systems: what Newton's method multiplies with.

use super::settings::NewtonSettings;
use crate::decision_set::SampleSets;
use crate::error::Error;
use crate::operator::KernelOperator;
use crate::precond::{
    Coupled, Direct, Identity, LowRank, Preconditioner, RankLimits, Remote, Woodbury,
};
use crate::problem::Problem;
use crate::random::stream;
use crate::solver::clock::Clock;

/// trace(K − BᵀB)/λ at which the preconditioner is good enough.
const ENOUGH_TRACE: f64 = 200.0;

/// Both, one made for the other.
pub(crate) struct Assembled<'a> {
    pub(crate) operator: &'a dyn KernelOperator,
    pub(crate) preconditioner: Box<dyn Preconditioner + 'a>,
    /// Whether the preconditioner is K + λI itself, by its factor.
    direct: bool,
}

impl<'a> Assembled<'a> {
    /// A preconditioner for the systems of `problem`, good enough for a λ of `finest` too. The
    /// operator is exact already where rounding of its working precision has made K + λI
    /// indefinite.
    pub(crate) fn new(
        problem: &Problem,
        operator: &'a dyn KernelOperator,
        settings: &NewtonSettings,
        seed: u64,
        finest: f64,
        clock: &mut Clock<'_>,
    ) -> Result<Self, Error> {
        let (n_samples, dim) = (problem.n_samples(), problem.decision_dim());
        let ridge = problem.ridge();
        let mut rng = stream(seed, "pivots");
        let limits = |max_rank| RankLimits { max_rank, enough_trace: ENOUGH_TRACE * finest };
        let stop = || !clock.poll();
        let preconditioner: Box<dyn Preconditioner + 'a> = match problem.sets() {
            SampleSets::Boxes(_) => {
                let max_rank = settings.rank_for(n_samples);
                if max_rank == n_samples {
                    return Self::factorised(problem, operator);
                }
                let factor = match operator.remote_factor(max_rank, dim, None)? {
                    None => LowRank::build(operator, limits(max_rank), &mut rng, stop)?,
                    Some(place) => {
                        LowRank::build_there(operator, place, limits(max_rank), &mut rng, stop)?
                    }
                };
                match Remote::new(factor, ridge) {
                    Ok(remote) => Box::new(remote),
                    Err(factor) => Box::new(Woodbury::new(factor, ridge, dim)),
                }
            }
            SampleSets::Polyhedra(_) => {
                let limits = limits(settings.coupled_rank_for(n_samples, dim));
                let factor = LowRank::build(operator, limits, &mut rng, stop)?;
                Box::new(Coupled::new(factor, ridge, dim))
            }
        };
        Ok(Self { operator, preconditioner, direct: false })
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
        Ok(Self { operator, preconditioner: Box::new(direct), direct: true })
    }

    /// The same, lent to one solve.
    pub(crate) fn lend(&mut self) -> Assembled<'_> {
        let Self { operator, preconditioner, direct } = self;
        let preconditioner = Box::new(&mut **preconditioner);
        Assembled { operator: *operator, preconditioner, direct: *direct }
    }

    /// From here on with kernel values in f64.
    pub(crate) fn turn_exact(&mut self, problem: &Problem) -> Result<(), Error> {
        self.operator = self.operator.exact();
        if self.direct {
            // The old factor goes before the new one comes.
            self.preconditioner = Box::new(Identity);
            *self = Self::factorised(problem, self.operator)?;
        }
        Ok(())
    }
}
