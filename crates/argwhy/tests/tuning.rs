//! A search finds the same whoever makes its attempts.

use argwhy::judging::Division;
use argwhy::settings::{Table, Value, value_of};
use argwhy::tuning::{
    Attempt, Crew, Ground, Judge, Space, Trial, Tuned, Tuning, Watch, tune, tune_with,
};
use argwhy::{Dataset, Error, Silent};
use argwhy_experts::{Expert, ExpertSettings, Quadrotor};
use std::time::Duration;

fn demonstrations() -> Dataset {
    let pilot = Expert::new(Quadrotor::default(), ExpertSettings::default()).unwrap();
    let demos = pilot.demonstrations(90, 0).unwrap();
    Dataset::new(demos.signals, demos.decisions).unwrap()
}

fn search() -> Tuning {
    Tuning { division: Division::Rows, n_parts: 3, judge: Judge::Error, budget: None, seed: 0 }
}

struct Quiet;

impl Watch for Quiet {}

/// Makes attempts last first, as if they came back over a wire, and at most so many.
struct Backwards<'a> {
    ground: Ground<'a>,
    most: usize,
    made: usize,
}

impl Crew for Backwards<'_> {
    fn attempt_all(
        &mut self,
        attempts: &[Attempt],
        stops: &mut dyn FnMut() -> bool,
        done: &mut dyn FnMut(usize, Vec<Trial>),
    ) -> Result<(), Error> {
        for (at, attempt) in attempts.iter().enumerate().rev() {
            if stops() || self.made == self.most {
                break;
            }
            let sent = serde_json::to_string(attempt).unwrap();
            let attempt: Attempt = serde_json::from_str(&sent).unwrap();
            let trials = self.ground.attempt(&attempt, &mut Silent).unwrap();
            self.made += 1;
            done(at, serde_json::from_str(&serde_json::to_string(&trials).unwrap()).unwrap());
        }
        Ok(())
    }
}

/// All but what the clock says.
fn timeless(tuned: Tuned) -> (Trial, Vec<Trial>, bool) {
    let still = |trial: Trial| Trial { seconds: 0.0, ..trial };
    (still(tuned.best), tuned.trials.into_iter().map(still).collect(), tuned.finished)
}

fn space(data: &Dataset) -> Space {
    let given: Table = [("bounds".to_owned(), value_of("-3,3"))].into_iter().collect();
    let list = |words: &[&str]| Value::Array(words.iter().map(|word| value_of(word)).collect());
    let grid: Table = [
        ("kernel".to_owned(), list(&["rbf", "matern52", "linear"])),
        ("gamma".to_owned(), list(&["0.1", "1"])),
        ("regularization".to_owned(), list(&["1e-3", "1e-5"])),
    ]
    .into_iter()
    .collect();
    Space::grid(&given, &grid, data.n_samples()).unwrap()
}

#[test]
fn a_crew_finds_what_one_machine_finds() {
    let (data, tuning) = (demonstrations(), search());
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let space = space(&data);
    let alone = timeless(tune(&data, &rows, &space, &tuning, &[], &mut Quiet).unwrap());
    // All of it, and what is left when the crew goes home early.
    for most in [usize::MAX, 3] {
        let ground = Ground::new(&data, &rows, &space, &tuning).unwrap();
        let mut crew = Backwards { ground, most, made: 0 };
        let found = tune_with(&data, &rows, &space, &tuning, &[], &mut Quiet, Some(&mut crew));
        assert!(timeless(found.unwrap()) == alone);
        assert!(crew.made >= 3);
    }
    let over = Tuning { budget: Some(Duration::from_nanos(1)), ..search() };
    let ground = Ground::new(&data, &rows, &space, &over).unwrap();
    let mut crew = Backwards { ground, most: usize::MAX, made: 0 };
    let found = tune_with(&data, &rows, &space, &over, &[], &mut Quiet, Some(&mut crew));
    assert!(found.unwrap_err().to_string().contains("no time"));
    assert_eq!(crew.made, 0);
}

#[test]
fn a_search_that_is_stopped_at_once_does_not_blame_its_budget() {
    struct Gone;
    impl Watch for Gone {
        fn stops(&mut self) -> bool {
            true
        }
    }
    let (data, tuning) = (demonstrations(), search());
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let found = tune(&data, &rows, &space(&data), &tuning, &[], &mut Gone);
    let said = found.unwrap_err().to_string();
    assert!(said.contains("stopped before its first trial") && !said.contains("budget"), "{said}");
}

/// What a crew has made when somebody loses patience is kept, whichever attempts those are.
#[test]
fn what_a_crew_has_made_is_kept() {
    #[derive(Default)]
    struct Patient {
        made: usize,
        trials: Vec<Trial>,
    }
    impl Watch for Patient {
        fn on_trial(&mut self, trial: &Trial, _: Option<&Trial>, _: usize) {
            self.trials.push(trial.clone());
        }

        fn on_attempt(&mut self, done: usize, of: usize) {
            assert_eq!(of, 6);
            self.made = done;
        }

        fn stops(&mut self) -> bool {
            self.made == 2
        }
    }
    let (data, tuning) = (demonstrations(), search());
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let space = space(&data);
    let ground = Ground::new(&data, &rows, &space, &tuning).unwrap();
    let mut crew = Backwards { ground, most: usize::MAX, made: 0 };
    let mut watch = Patient::default();
    let found = tune_with(&data, &rows, &space, &tuning, &[], &mut watch, Some(&mut crew));
    let found = found.unwrap();
    assert!(!found.finished);
    // Two regularizations each, of the last two candidates.
    let tried: Vec<usize> = found.trials.iter().map(|trial| trial.candidate).collect();
    assert_eq!(tried, [4, 4, 5, 5]);
    assert_eq!(watch.trials, found.trials);
}

/// A crew that is lost ends the search with its own words.
#[test]
fn a_crew_that_fails_says_why() {
    struct Lost;
    impl Crew for Lost {
        fn attempt_all(
            &mut self,
            _: &[Attempt],
            _: &mut dyn FnMut() -> bool,
            _: &mut dyn FnMut(usize, Vec<Trial>),
        ) -> Result<(), Error> {
            Err(Error::Tuning { what: "everyone is gone".to_owned() })
        }
    }
    let (data, tuning) = (demonstrations(), search());
    let rows: Vec<usize> = (0..data.n_samples()).collect();
    let space = Space::usual(&Table::new(), data.signals().dim()).unwrap();
    let found = tune_with(&data, &rows, &space, &tuning, &[], &mut Quiet, Some(&mut Lost));
    assert!(found.unwrap_err().to_string().contains("everyone is gone"));
}
