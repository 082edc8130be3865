//! Panels by way of the Python process.

use super::{Bridge, take};
use crate::frame::Array;
use crate::panels::{PanelKeeper, Round};
use ndarray::{Array2, ArrayView, ArrayView2, Dimension};
use serde_json::{Value, json};

impl Bridge {
    /// The matrix that is the answer to a question about a factor.
    fn ask(&self, message: Value, arrays: Vec<Array>) -> Result<Array2<f64>, String> {
        let answer = self.call(message, arrays)?;
        self.keep_progress(&answer);
        let shape = match answer.arrays.first() {
            Some(Array::Values(_, shape) | Array::Singles(_, shape)) if shape.len() == 2 => {
                (shape[0], shape[1])
            }
            _ => return Err("the Python process answered without a matrix".to_owned()),
        };
        let mut found = Array2::zeros(shape);
        take(answer, shape.0 * shape.1, |at, value| found[[at / shape.1, at % shape.1]] = value)?;
        Ok(found)
    }
}

fn singles<D: Dimension>(values: ArrayView<'_, f32, D>) -> Array {
    Array::Singles(values.iter().copied().collect(), values.shape().to_vec())
}

fn about(factor: u64, what: &str) -> Value {
    json!({"call": "panels", "what": what, "factor": factor})
}

impl PanelKeeper for Bridge {
    fn spread_from(&self) -> usize {
        self.spread_from
    }

    fn begin(
        &self,
        matrix: u64,
        roots: Option<&[f64]>,
        given: ArrayView2<'_, f32>,
    ) -> Result<u64, String> {
        let mut arrays = vec![singles(given)];
        arrays.extend(roots.map(|roots| Array::Values(roots.to_vec(), vec![roots.len()])));
        let message = json!({"call": "panels", "what": "begin", "matrix": matrix});
        let answer = self.call(message, arrays)?;
        answer.message["factor"].as_u64().ok_or_else(|| "no number of the factor came".to_owned())
    }

    fn append(&self, factor: u64, round: &Round, diagonal: &mut [f64]) -> Result<(), String> {
        let Round { pivots, roots, weights, triangle } = round;
        let arrays = vec![
            pivots.as_slice().into(),
            Array::Values(roots.clone(), vec![roots.len()]),
            singles(weights.view()),
            Array::Values(triangle.clone(), vec![triangle.len()]),
            Array::Values(diagonal.to_vec(), vec![diagonal.len()]),
        ];
        let answer = self.call(about(factor, "append"), arrays)?;
        self.keep_progress(&answer);
        take(answer, diagonal.len(), |at, value| diagonal[at] = value)
    }

    fn gram(&self, factor: u64, signs: ArrayView2<'_, i8>) -> Result<Array2<f64>, String> {
        let signs = Array::Signs(signs.iter().copied().collect(), signs.shape().to_vec());
        self.ask(about(factor, "gram"), vec![signs])
    }

    fn gather(&self, factor: u64, marks: ArrayView2<'_, i8>) -> Result<Array2<f32>, String> {
        let marks = Array::Signs(marks.iter().copied().collect(), marks.shape().to_vec());
        // They were single before they were widened.
        Ok(self.ask(about(factor, "gather"), vec![marks])?.mapv(|value| value as f32))
    }

    fn project(&self, factor: u64, v: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        self.ask(about(factor, "project"), vec![v.into()])
    }

    fn expand(&self, factor: u64, w: ArrayView2<'_, f64>) -> Result<Array2<f64>, String> {
        self.ask(about(factor, "expand"), vec![w.into()])
    }

    fn end(&self, factor: u64) {
        // A process that is gone has nothing to forget.
        let _ = self.call(about(factor, "end"), Vec::new());
    }
}
