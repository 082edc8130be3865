//! Which limits hold decisions, how often, and what they cost.

use argwhy::core::dataset::Names;
use argwhy::core::decision_set::{Prices, RowLabel};
use serde::Serialize;
use std::collections::BTreeMap;

/// One limit over all rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// Its name, else as `M[3]` or `upper[0]`.
    pub limit: String,
    /// Rows whose decision it holds.
    pub rows: usize,
    /// Their share of all rows.
    pub share: f64,
    /// Mean price over the rows it holds.
    pub mean_price: f64,
    /// The price largest in size.
    pub largest_price: f64,
}

/// Every limit that holds a decision, the most frequent first.
pub fn by_limit(prices: &Prices, names: &Names, n_rows: usize) -> Vec<Held> {
    let mut all: BTreeMap<RowLabel, (usize, f64, f64)> = BTreeMap::new();
    for (limit, price) in prices.limits.iter().zip(&prices.values) {
        let (rows, sum, largest) = all.entry(*limit).or_default();
        *rows += 1;
        *sum += price;
        if price.abs() > largest.abs() {
            *largest = *price;
        }
    }
    let mut held: Vec<Held> = all
        .into_iter()
        .map(|(limit, (rows, sum, largest_price))| Held {
            limit: limit.named(names),
            rows,
            share: rows as f64 / n_rows.max(1) as f64,
            mean_price: sum / rows as f64,
            largest_price,
        })
        .collect();
    held.sort_by_key(|held| std::cmp::Reverse(held.rows));
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_counted_and_ordered() {
        let (m, u, e) = (RowLabel::Inequality(0), RowLabel::Upper(1), RowLabel::Equality(0));
        let prices = Prices {
            samples: vec![0, 0, 1, 2, 2, 2],
            limits: vec![m, u, u, e, m, u],
            values: vec![1.0, 2.0, 4.0, -3.0, 2.0, 0.0],
        };
        let held = by_limit(&prices, &Names::default(), 4);
        let names: Vec<&str> = held.iter().map(|h| h.limit.as_str()).collect();
        assert_eq!(names, ["upper[1]", "M[0]", "M_eq[0]"]);
        assert_eq!((held[0].rows, held[0].share, held[0].mean_price), (3, 0.75, 2.0));
        assert_eq!((held[1].mean_price, held[1].largest_price), (1.5, 2.0));
        assert_eq!(held[2].largest_price, -3.0);
        assert!(by_limit(&Prices::default(), &Names::default(), 0).is_empty());
    }
}
