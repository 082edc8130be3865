//! What JavaScript calls.
//!
//! Numbers go both ways through one buffer of f64: the page asks for [`room`], writes, calls, and
//! reads what was written over it. Every function returns how many numbers it wrote, or −1 where it
//! failed; the reason is then in [`message`].
#![allow(
    unsafe_code,
    reason = "names of exported functions are kept, which the compiler cannot \
                                know to be different"
)]

use crate::explorer::{Explorer, GivenLimits};
use argwhy_core::Error;
use argwhy_core::pushes::Method;
use ndarray::ArrayView2;
use std::cell::RefCell;

thread_local! {
    static STATE: RefCell<State> = const { RefCell::new(State::new()) };
}

struct State {
    explorer: Option<Explorer>,
    numbers: Vec<f64>,
    bytes: Vec<u8>,
}

impl State {
    const fn new() -> Self {
        Self { explorer: None, numbers: Vec::new(), bytes: Vec::new() }
    }
}

/// Runs `task` on the model that is open; its numbers become the buffer.
fn with(task: impl FnOnce(&mut Explorer, &[f64]) -> Result<Vec<f64>, Error>) -> i32 {
    STATE.with_borrow_mut(|state| {
        let result = match &mut state.explorer {
            Some(explorer) => task(explorer, &state.numbers).map_err(|error| error.to_string()),
            None => Err("no model is open".to_owned()),
        };
        match result {
            Ok(numbers) => {
                let n = numbers.len();
                state.numbers.truncate(0);
                state.numbers.extend(numbers);
                i32::try_from(n).unwrap_or(i32::MAX)
            }
            Err(message) => fail(state, message),
        }
    })
}

fn fail(state: &mut State, message: String) -> i32 {
    state.bytes = message.into_bytes();
    -1
}

/// Room for `n` numbers.
#[unsafe(no_mangle)]
pub extern "C" fn room(n: usize) -> *mut f64 {
    STATE.with_borrow_mut(|state| {
        state.numbers.resize(n, 0.0);
        state.numbers.as_mut_ptr()
    })
}

/// The numbers that were written last.
#[unsafe(no_mangle)]
pub extern "C" fn numbers() -> *const f64 {
    STATE.with_borrow(|state| state.numbers.as_ptr())
}

/// Room for `n` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room_for_bytes(n: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.bytes.resize(n, 0);
        state.bytes.as_mut_ptr()
    })
}

/// Why the last call failed.
#[unsafe(no_mangle)]
pub extern "C" fn message() -> *const u8 {
    STATE.with_borrow(|state| state.bytes.as_ptr())
}

/// How long that is.
#[unsafe(no_mangle)]
pub extern "C" fn message_len() -> usize {
    STATE.with_borrow(|state| state.bytes.len())
}

/// Opens the model whose header was written as bytes and whose arrays were written as numbers.
#[unsafe(no_mangle)]
pub extern "C" fn open() -> i32 {
    STATE.with_borrow_mut(|state| match Explorer::open(&state.bytes, &state.numbers) {
        Ok(explorer) => {
            state.explorer = Some(explorer);
            0
        }
        Err(message) => fail(state, message),
    })
}

/// Puts limits in force: M (`rows` × n), W, M_eq (`equal` × n), W_eq, lower, upper.
#[unsafe(no_mangle)]
pub extern "C" fn limit(rows: usize, equal: usize) -> i32 {
    with(|explorer, numbers| {
        let n = explorer.decision_dim();
        let mut rest = numbers;
        let mut next = |len: usize| {
            let (part, after) = rest.split_at(len.min(rest.len()));
            rest = after;
            part
        };
        explorer.limit(&GivenLimits {
            matrix: next(rows * n),
            bound: next(rows),
            equal_matrix: next(equal * n),
            equal_bound: next(equal),
            lower: next(n),
            upper: next(n),
        })?;
        Ok(Vec::new())
    })
}

/// Remembers `n` past situations.
#[unsafe(no_mangle)]
pub extern "C" fn remember(n: usize) -> i32 {
    with(|explorer, numbers| {
        let width = explorer.signal_dim();
        let Ok(signals) = ArrayView2::from_shape((n, width), numbers) else {
            let (what, owner, found) = ("past situations", "the model", numbers.len());
            return Err(Error::Width { what, owner, expected: n * width, found });
        };
        explorer.remember(signals).map(|()| Vec::new())
    })
}

/// A signal's answer: desired, decided (NaN before limits are known), familiarity (NaN where the
/// model tells none), then the code and the price of each limit that holds.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> i32 {
    with(|explorer, signal| {
        let answer = explorer.answer(signal)?;
        let unknown = vec![f64::NAN; answer.desired.len()];
        let mut numbers = answer.desired;
        numbers.extend(answer.decision.unwrap_or(unknown));
        numbers.push(answer.familiarity.unwrap_or(f64::NAN));
        numbers.extend(answer.prices.iter().flat_map(|(code, price)| [f64::from(*code), *price]));
        Ok(numbers)
    })
}

/// Numbers and likenesses of the past situations nearest to a signal.
#[unsafe(no_mangle)]
pub extern "C" fn nearest(most: usize) -> i32 {
    with(|explorer, signal| {
        let nearest = explorer.nearest(signal, most);
        Ok(nearest.into_iter().flat_map(|(i, alike)| [i as f64, alike]).collect())
    })
}

/// Begins with the pushes of a signal away from the typical one, which follows it: how many rows of
/// g they take.
#[unsafe(no_mangle)]
pub extern "C" fn start_pushing() -> i32 {
    with(|explorer, numbers| {
        let (signal, typical) = numbers.split_at(numbers.len() / 2);
        Ok(vec![explorer.start_pushing(signal, typical) as f64])
    })
}

/// Computes `rows` more of them: how many are left.
#[unsafe(no_mangle)]
pub extern "C" fn go_on(rows: usize) -> i32 {
    with(|explorer, _| Ok(vec![explorer.go_on(rows)? as f64]))
}

/// Pushes (signals × decisions), their standard errors, and whether they are exact; nothing before
/// all rows are computed.
#[unsafe(no_mangle)]
pub extern "C" fn pushes() -> i32 {
    with(|explorer, _| {
        let Some(pushes) = explorer.pushes() else { return Ok(Vec::new()) };
        let is_exact = f64::from(u8::from(pushes.method == Method::Exact));
        Ok(pushes.values.iter().chain(&pushes.errors).copied().chain([is_exact]).collect())
    })
}
