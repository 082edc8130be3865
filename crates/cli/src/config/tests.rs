//! Command line, config file and preset, one over the other.

use super::*;
use crate::args::{Cli, Command};
use clap::Parser;

fn args(more: &[String]) -> FitArgs {
    let fixed = ["argwhy", "fit", "d.csv", "-o", "m"].map(ToOwned::to_owned);
    match Cli::try_parse_from(fixed.iter().chain(more)).unwrap().command {
        Command::Fit(args) => *args,
        _ => unreachable!(),
    }
}

fn told(words: &str, file: &str) -> Options {
    let words: Vec<String> = words.split_whitespace().map(ToOwned::to_owned).collect();
    merged(&line(&args(&words)).unwrap(), file.parse().unwrap()).unwrap()
}

/// Values that might do for a setting: what it says it takes where it refuses nonsense, and
/// numbers.
fn candidates(name: &str) -> Vec<String> {
    let nonsense = FitSettings::check(name, &Value::from("nonsense"));
    let told = nonsense.err().map(|error| error.to_string()).unwrap_or_default();
    let listed = told.split('`').skip(1).step_by(2).map(ToOwned::to_owned);
    let numbers = ["3", "0.25", "0.5,2", "512MiB", "rbf + linear"].map(ToOwned::to_owned);
    listed.chain(numbers).collect()
}

/// Issue 13: a setting that was forgotten in one of the lists dropped the config file's value.
#[test]
fn every_setting_reaches_the_fit_from_the_command_line_and_from_the_config_file() {
    let default = FitSettings::default();
    for name in FitSettings::names() {
        let single = |value: Value| {
            let mut table = Table::new();
            table.insert(name.clone(), value);
            FitSettings::from_table(&table).ok().filter(|settings| *settings != default)
        };
        if FitSettings::is_switch(&name) {
            let expected = single(Value::Boolean(true)).unwrap();
            let by_flag = told(&format!("--{name}"), "");
            let by_file = told("", &format!("{name} = true"));
            assert_eq!((&by_flag.settings, &by_file.settings), (&expected, &expected), "{name}");
            continue;
        }
        let tried = candidates(&name);
        let found =
            tried.iter().find_map(|text| Some((text, single(argwhy::settings::value_of(text))?)));
        let (text, expected) = found.unwrap_or_else(|| panic!("{name}: {tried:?}"));
        let flag = format!("--{name}={text}");
        let by_flag = merged(&line(&args(&[flag])).unwrap(), Table::new()).unwrap();
        assert_eq!(by_flag.settings, expected, "--{name}");
        let mut file = Table::new();
        file.insert(name.clone(), argwhy::settings::value_of(text));
        let by_file = merged(&Table::new(), file.clone()).unwrap();
        assert_eq!(by_file.settings, expected, "{name} =");
        // Whatever else the command line says, the file's word stays.
        let beside = merged(&line(&args(&["--json".to_owned()])).unwrap(), file).unwrap();
        assert_eq!((beside.settings, beside.outputs.json), (expected, true), "{name}");
    }
}

#[test]
fn every_other_option_can_stand_in_the_config_file() {
    // Some exclude each other.
    let all = [
        "--signals=a --decisions=b --rows=0:3 --weights=w --constraints --matrix=m --matrix-eq=e \
         --groups=g --order=time --holdout=0.2 --episodes=0:2 --every=2 --sample=9 --missing=mean \
         --one-hot=a,b --cyclic=h:24,d:year --units=a=m,b=kW --sheet=s --decimal=, --path=1,2 \
         --json --trace=t --report=r --quiet",
        "--checkpoint=c --checkpoint-every=90s --resume=f --keep-data --no-factor --tune",
        "--from=m --ray=auto --ray-workers=4 --ray-cpus=2 --ray-gpus=1 --ray-spread-from=9 \
         --ray-timeout=90s",
    ];
    let mut said = Table::new();
    for words in all {
        let by_flag = told(words, "");
        let words: Vec<String> = words.split_whitespace().map(ToOwned::to_owned).collect();
        let text = line(&args(&words)).unwrap().to_string();
        let by_file = told("", &text);
        assert_eq!((&by_flag.source, &by_flag.outputs), (&by_file.source, &by_file.outputs));
        said.extend(text.parse::<Table>().unwrap());
    }
    let names = Names::all().unwrap();
    assert_eq!(said.len(), names.source.len() + names.outputs.len());
}

#[test]
fn the_command_line_wins() {
    let both = told("--tol=1e-9 --upper=3", "tol = 1e-3\nseed = 7\nlower = [-1]\njson = true");
    assert_eq!((both.settings.tol, both.settings.seed, both.outputs.json), (1e-9, 7, true));
    assert_eq!(both.settings.lower.unwrap().0, [-1.0]);
    assert_eq!(both.settings.upper.unwrap().0, [3.0]);
    assert!(both.notes.is_empty());
}

#[test]
fn what_the_command_line_makes_meaningless_is_told() {
    let kernel = told("--kernel=rbf", "kernel = \"polynomial\"\ndegree = 2");
    assert_eq!(kernel.settings.degree, None);
    assert_eq!(kernel.notes.len(), 1, "{:?}", kernel.notes);
    assert!(kernel.notes[0].contains("degree") && kernel.notes[0].contains("--kernel"));
    let path = told("-k=1", "path = [1, 2]");
    assert!(path.outputs.path.is_none() && path.notes[0].contains("path"), "{:?}", path.notes);
    let one = told("--path=1,2", "regularization = 3");
    assert_eq!(one.settings.regularization, FitSettings::default().regularization);
    assert!(one.notes[0].contains("regularization"));
}

#[test]
fn a_preset_lies_under_the_config_file_and_the_command_line() {
    let told = |words: &str, file: &str| {
        let words: Vec<String> = words.split_whitespace().map(ToOwned::to_owned).collect();
        let args = args(&words);
        let line = line(&args).unwrap();
        let under = over_preset(args.preset, &line, file.parse().unwrap());
        merged(&line, under).unwrap()
    };
    let plain = told("--preset=walker2d-medium", "").settings;
    assert_eq!(plain, Preset::named("walker2d-medium").unwrap().settings().unwrap());
    assert_eq!(plain.regularization, 1e-5.into());
    let mixed = told("--preset=walker2d-medium-v2 --seed=3", "regularization = 2").settings;
    assert_eq!((mixed.regularization, mixed.seed), (2.0.into(), 3));
    assert_eq!(mixed.bounds, plain.bounds);
    let limited = told("--preset=hopper-expert --upper=2,3,4", "").settings;
    assert_eq!(limited.bounds, None);
    assert_eq!(limited.lower.unwrap().0, [-1.0; 3]);
    let path = told("--preset=hopper-expert --path=1,2", "");
    assert!(path.notes.is_empty() && path.outputs.path.is_some(), "{:?}", path.notes);
}

#[test]
fn the_help_lists_every_preset() {
    let mut command = <Cli as clap::CommandFactory>::command();
    let help = command.find_subcommand_mut("fit").unwrap().render_long_help().to_string();
    let words: Vec<&str> = help.split_whitespace().collect();
    for preset in Preset::ALL {
        let place = words.iter().position(|word| *word == format!("{}:", preset.name)).unwrap();
        let described = words[place..].iter().take(8).any(|word| *word == preset.rows);
        assert!(described, "{}", preset.name);
    }
}

#[test]
fn constraints_add_up_with_those_of_the_file() {
    let text = "constraints = true\nmatrix = \"m.csv\"\nmatrix-eq = \"e.csv\"\nweights = \"w\"";
    let sources = told("--matrix=mine.csv", text).sources();
    let word = |text: &str| Some(text.to_owned());
    let expected = DataSources {
        constraints: true,
        matrix: word("mine.csv"),
        matrix_eq: word("e.csv"),
        weights: word("w"),
        ..DataSources::default()
    };
    assert_eq!(sources, expected);
}

/// Every setting can be said in a config file under the name it is stored with.
#[test]
fn a_stored_setting_is_a_config_file() {
    let stored = FitSettings {
        bounds: Some("-1,1".parse().unwrap()),
        time_limit: Some(9.0),
        kernel: "rbf + 0.5*polynomial(offset=0)".parse().unwrap(),
        degree: Some(2),
        length_scales: Some("1,2.5".parse().unwrap()),
        threads: Some(2),
        ..FitSettings::default()
    };
    let plain = FitSettings {
        kernel: "linear".parse().unwrap(),
        intercept: true,
        primal: true,
        ..FitSettings::default()
    };
    for stored in [stored, plain] {
        let text = toml::to_string(&stored).unwrap();
        assert_eq!(told("", &text).settings, stored);
    }
}

/// `--path` once had a section of the help to itself.
#[test]
fn the_help_has_the_sections_of_the_book_and_no_other() {
    let mut command = <Cli as clap::CommandFactory>::command();
    let fit = command.find_subcommand_mut("fit").unwrap();
    let help = fit.render_long_help().to_string();
    let sections: Vec<&str> =
        help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    let expected = [
        "Arguments:",
        "Options:",
        "Data:",
        "Features and kernel:",
        "Decisions:",
        "Problem and solver:",
        "SSO:",
        "Machine:",
        "Output:",
        "Going on:",
        "Examples:",
    ];
    assert_eq!(sections, expected);
}
