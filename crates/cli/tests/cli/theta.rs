//! `fit --theta learn`.

use crate::common::{Folder, noise, says};
use argwhy::core::qp::{ActiveSet, Constraints, Metric};
use ndarray::{Array2, Array3, Axis, array};
use std::fmt::Write;

/// One signal under many sets, by an expert whose first dimension costs three times the second,
/// with a trade-off between them.
fn table(rows: usize) -> String {
    let theta = array![[3.0, 0.8], [0.8, 1.32]];
    let metric = Metric::new(theta.view()).unwrap();
    let matrix = Array3::from_shape_fn((rows, 3, 2), |(i, r, j)| noise(i, 10 + 2 * r + j));
    let bound = Array2::from_shape_fn((rows, 3), |(i, r)| 0.2 + noise(i, 30 + r).abs());
    let mut text =
        "signals,decisions_0,decisions_1,M_0_0,M_0_1,M_1_0,M_1_1,M_2_0,M_2_1,W_0,W_1,W_2\n"
            .to_owned();
    let mut solver = ActiveSet::new(&metric);
    for i in 0..rows {
        let own = matrix.index_axis(Axis(0), i);
        let lengths: Vec<f64> = own.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect();
        let unit: Vec<f64> = own.indexed_iter().map(|((r, _), v)| v / lengths[r]).collect();
        let limits: Vec<f64> = (0..3).map(|r| bound[[i, r]] / lengths[r]).collect();
        let set = Constraints { rows: &unit, limits: &limits, equalities: 0 };
        solver.solve(set, &[4.0, 3.0], &[]).unwrap();
        let u = solver.solution();
        let numbers: Vec<String> = [0.5 + 1e-3 * noise(i, 0), u[0], u[1]]
            .into_iter()
            .chain(own.iter().copied())
            .chain(bound.row(i).iter().copied())
            .map(|v| format!("{v:?}"))
            .collect();
        writeln!(text, "{}", numbers.join(",")).unwrap();
    }
    text
}

#[test]
fn what_dimensions_cost_is_learned_and_kept() {
    let folder = Folder::new();
    folder.write("data.csv", table(120));
    let fit = |model: &str, theta: &str| {
        let args = ["fit", "data.csv", "--constraints", "--rows=0:80", "-k=1e-4", "--json"];
        let more = ["--features=raw", "--normalize=none", "-o", model, "--theta", theta];
        folder.run(args.iter().chain(&more)).exits(0).json()
    };
    let (plain, learned) = (fit("plain.argwhy", "identity"), fit("learned.argwhy", "learn"));
    assert_eq!((&plain["status"], &learned["status"]), (&"solved".into(), &"solved".into()));
    assert!(learned["relative_gap"].as_f64().unwrap() <= 1e-6);
    let inspected = folder.run(["inspect", "learned.argwhy", "--json"]).exits(0).json();
    let entry = |i: usize, j: usize| inspected["theta_uu"][i][j].as_f64().unwrap();
    assert!(entry(0, 0) > 1.5 * entry(1, 1) && entry(0, 1) > 0.3, "{}", inspected["theta_uu"]);
    let text = folder.run(["inspect", "learned.argwhy"]).exits(0);
    assert!(text.stdout.contains("theta_uu") && text.stdout.contains("learned to within"));
    // Rows kept back, each under limits of its own.
    let rmse = |model: &str| {
        let result = folder.run(["evaluate", model, "data.csv", "--rows=80:120", "--json"]);
        let result = result.exits(0).json();
        assert_eq!(result["infeasible"], 0);
        result["rmse"].as_f64().unwrap()
    };
    let (plain, learned) = (rmse("plain.argwhy"), rmse("learned.argwhy"));
    assert!(learned < 0.5 * plain, "{learned} against {plain}");
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let folder = Folder::with_data(30);
    let args = ["fit", "data.csv", "-o", "m.argwhy", "--bounds=-1,1", "--theta=learn"];
    let message = folder.refused(args.iter().chain(&["--solver=sso"]));
    says(&message, &["theta", "newton"]);
    let message = folder.refused(args.iter().chain(&["-k=1e-15"]));
    says(&message, &["theta_uu can't be learned", "use at least"]);
}
