//! What a report says: results → [`Page`](crate::report::Page)s. How it is drawn is `report`'s
//! concern.

pub mod ablate;
pub mod charging;
pub mod fit;
pub mod quadrotor;
mod sections;

/// How far a learned θ_uu can be from the optimal one, in the Frobenius norm.
pub fn theta_bound(model: &argwhy::Model) -> Option<f64> {
    let record = &model.record;
    model.theta.as_ref().map(|_| (record.certificate.gap / record.regularization).sqrt())
}

/// How far any decision of the model can be from the exact optimum's, where the certificate says
/// more than the limits do.
pub fn prediction_bound(model: &argwhy::Model) -> Option<f64> {
    // The bound is about coefficients alone; a learned θ_uu has its own.
    if model.theta.is_some() {
        return None;
    }
    let largest = model.kernel.bound()?;
    let record = &model.record;
    let bound = record.certificate.prediction_bound(largest, record.regularization);
    let limits = model.set.limits();
    let square: f64 =
        limits.upper().iter().zip(limits.lower()).map(|(u, l)| (u - l) * (u - l)).sum();
    (bound < square.sqrt()).then_some(bound)
}
