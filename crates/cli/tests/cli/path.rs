//! `fit --path`.

use crate::common::{Folder, noise, says};
use std::fmt::Write;

fn table(rows: usize) -> String {
    let mut text = "signals_0,signals_1,decisions_0\n".to_owned();
    for i in 0..rows {
        let (a, b) = (noise(i, 0), noise(i, 1));
        let wish = 1.4 * (2.0 * a).sin() + a * b + 0.2 * noise(i, 2);
        writeln!(text, "{a:?},{b:?},{:?}", wish.clamp(-1.0, 1.0)).unwrap();
    }
    text
}

#[test]
fn every_regularization_of_a_path_is_fitted_as_if_alone() {
    let folder = Folder::new();
    // Small enough to be factorised, and larger.
    for (rows, name) in [(300, "small"), (2900, "large")] {
        let data = format!("{name}.csv");
        folder.write(&data, table(rows));
        let common = ["fit", &data, "--bounds=-1,1", "--json"];
        let output = format!("{name}.argwhy");
        let more = ["--path=1e-3,1e-4,1e-5", "-o", &output];
        let all = folder.run(common.iter().chain(&more)).exits(0).json();
        let path = all["path"].as_array().unwrap();
        assert_eq!(path.len(), 3);
        let mut products = [0, 0];
        for (k, fitted) in ["1e-3", "1e-4", "1e-5"].into_iter().zip(path) {
            let alone = folder.run(common.iter().chain(&["-k", k, "-o", "alone"])).exits(0).json();
            let number = |of: &serde_json::Value, key: &str| of[key].as_f64().unwrap();
            let off = (number(fitted, "objective") - number(&alone, "objective")).abs();
            let allowed = number(fitted, "gap") + number(&alone, "gap") + 1e-14;
            assert!(off <= allowed, "{name} {k}: {off:e}");
            assert!(number(fitted, "relative_gap") <= 1e-6);
            products[0] += fitted["kernel_products"].as_u64().unwrap();
            products[1] += alone["kernel_products"].as_u64().unwrap();
            let model = format!("{name}-k{k}.argwhy");
            assert_eq!(fitted["model"], model.as_str());
            let kept = folder.run(["inspect", &model, "--json"]).exits(0).json();
            assert_eq!(kept["settings"]["regularization"], k.parse::<f64>().unwrap());
            assert_eq!(kept["objective"], fitted["objective"]);
        }
        assert!(products[0] <= products[1], "{name}: {products:?}");
    }
}

#[test]
fn what_a_path_cannot_be_is_refused() {
    let folder = Folder::new();
    folder.write("d.csv", table(40));
    let refused = |more: &[&str], word: &str| {
        let args = ["fit", "d.csv", "-o", "m.argwhy", "--bounds=-1,1"];
        says(&folder.refused(args.iter().chain(more)), &[word]);
    };
    refused(&["--path=1e-4,1e-4"], "twice");
    refused(&["--path=1e-4,-1"], "regularization");
    refused(&["--path=1e-4,x"], "`x` is not a number");
    refused(&["--path=1e-4", "-k=1e-3"], "cannot be used with");
    refused(&["--path=1e-4,1e-5", "--solver=sso"], "--solver newton");
    refused(&["--path=1e-4,1e-5", "--report=r.html"], "--report is about one fit");
    assert!(!folder.path("m-k1e-4.argwhy").exists());
}
