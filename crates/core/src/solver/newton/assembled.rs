//! An operator and the preconditioner of its systems: what Newton's method multiplies with.

use super::settings::NewtonSettings;
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
        let separate = problem.sets().is_separate();
        let max_rank = if separate {
            settings.rank_for(n_samples)
        } else {
            settings.coupled_rank_for(n_samples, dim)
        };
        if separate && max_rank == n_samples {
            return Self::factorised(problem, operator);
        }
        let limits = RankLimits { max_rank, enough_trace: ENOUGH_TRACE * finest };
        let mut rng = stream(seed, "pivots");
        let ridge = problem.ridge();
        let place = if separate { operator.remote_factor(max_rank, dim, None)? } else { None };
        let factor = match place {
            None => LowRank::build(operator, limits, &mut rng, || !clock.poll())?,
            Some(place) => {
                LowRank::build_there(operator, place, limits, &mut rng, || !clock.poll())?
            }
        };
        let preconditioner: Box<dyn Preconditioner + 'a> = if separate {
            match Remote::new(factor, ridge) {
                Ok(remote) => Box::new(remote),
                Err(factor) => Box::new(Woodbury::new(factor, ridge, dim)),
            }
        } else {
            Box::new(Coupled::new(factor, ridge, dim))
        };
        Ok(Self { operator, preconditioner })
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
        Ok(Self { operator, preconditioner: Box::new(direct) })
    }

    /// The same, lent to one solve.
    pub(crate) fn lend(&mut self) -> Assembled<'_> {
        let Self { operator, preconditioner } = self;
        Assembled { operator: *operator, preconditioner: Box::new(&mut **preconditioner) }
    }

    /// From here on with kernel values in f64.
    pub(crate) fn turn_exact(
        &mut self,
        problem: &Problem,
        settings: &NewtonSettings,
    ) -> Result<(), Error> {
        self.operator = self.operator.exact();
        let n_samples = problem.n_samples();
        if problem.sets().is_separate() && settings.rank_for(n_samples) == n_samples {
            // The old factor goes before the new one comes.
            self.preconditioner = Box::new(Identity);
            *self = Self::factorised(problem, self.operator)?;
        }
        Ok(())
    }
}
