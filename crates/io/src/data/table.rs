//! Tables with a header: csv, sheets, parquet, Arrow.
//!
//! A key is a family of columns, `signals_0, signals_1, …` (also `signals[0]`, `signals.0`,
//! `signals0`), or one column of exactly that name, or a comma-separated list of column names,
//! ranges of them (`first:last`) and patterns (`s*`). Every row is a sample, so constraints are
//! families too: `W_0, W_1, …`, `lower_0, …`, and for a matrix `M_<row>_<dimension>` (also
//! `M[1][2]`), or `M_<dimension>` where it has one row. An empty cell of a bound means no limit.

use argwhy_core::dataset::Names;

use super::DataRequest;
use super::array::{Arrays, RowsOf};
use super::encoding::Encoding;
use super::groups::{ENDS, GroupKind};
use super::kept::Kept;
use super::keys::{self, Keys};
use super::origin::Origin;
use super::survey::Survey;
use super::thinning::Selection;
use super::walk;
use crate::error::{DataError, shortened};
use belonging::Belonging;
use block::{Block, TensorBlock};
use columns::Columns;
use named::Named;

mod belonging;
mod block;
mod columnar;
pub(super) mod columns;
mod matrix;
mod named;
mod pattern;
pub(super) mod records;

pub(super) use block::number;
pub(super) use columnar::{Columnar, Piece, Take};
pub(super) use matrix::load_matrix;
use records::Chosen;
pub(super) use records::Records;

/// How the rows of a table come.
pub(super) enum Body<'a> {
    /// One after the other, as text.
    Records(Box<dyn Records + 'a>),
    /// Column by column, as numbers or text.
    Columns(Box<dyn Columnar + 'a>),
}

/// A table whose header is read, and whose rows are counted, perhaps roughly.
pub(super) struct Table<'a> {
    origin: Origin<'a>,
    body: Body<'a>,
    /// The columns of the signals, then of decisions and weights where they are wanted.
    blocks: Vec<Block>,
    tensors: Vec<TensorBlock>,
    groups: Option<Belonging>,
    has_decisions: bool,
    has_weights: bool,
    n_rows: usize,
    keys: Vec<String>,
    unread: Vec<&'static str>,
    names: Names,
}

impl<'a> Table<'a> {
    pub fn open(
        origin: Origin<'a>,
        request: &DataRequest,
        body: Body<'a>,
    ) -> Result<Self, DataError> {
        let columns = match &body {
            Body::Records(records) => records.columns(),
            Body::Columns(columns) => columns.columns(),
        };
        let keys = columns.keys();
        let has = |key: &str| {
            let matrix = ["M", "M_eq"].contains(&key);
            columns.has(key) || (matrix && columns.has_matrix(key))
        };
        let known = request.encoding.sources(&request.signal_names);
        let named = by_names(request, &known, columns, &origin)?;
        // Columns that a model names need no key.
        let asked = DataRequest {
            signals: request.signals.clone().or(named[0].as_ref().map(|n| n.names.join(","))),
            decisions: request.decisions.clone().or(named[1].as_ref().map(|n| n.names.join(","))),
            ..request.clone()
        };
        let own = |key: &str| {
            [&asked.signals, &asked.decisions]
                .iter()
                .zip(&named)
                .any(|(name, found)| found.is_some() && name.as_deref() == Some(key))
        };
        let chosen = keys::choose(origin.path, &keys, &asked, |key| own(key) || has(key))
            .map_err(DataError::of_a_table)?;
        let (has_decisions, has_weights) = (chosen.decisions.is_some(), chosen.weights.is_some());
        let groups = Belonging::new(&chosen, columns, &origin)?;
        let weights = chosen.weights.as_ref().map(|key| Block::new(key.clone(), columns, &origin));
        let weights = weights.transpose()?;
        let tensors = tensors(request, &chosen, columns, &origin)?;
        let [signals, decisions] = named;
        let decisions = match (&chosen.decisions, decisions) {
            (Some(key), None) => Some(Named::by_key(
                "decisions",
                key,
                &request.decision_names,
                &[],
                columns,
                &origin,
            )?),
            (_, decisions) => decisions,
        };
        let decided = decisions.as_ref().map_or(&[][..], |decisions| &decisions.columns);
        check_limits(request, decided, columns, &origin)?;
        let signals = if let Some(signals) = signals {
            signals
        } else {
            let mut taken = with_a_role(&chosen, &tensors, columns);
            taken.extend(groups.iter().flat_map(Belonging::columns));
            taken.extend(weights.iter().flat_map(Block::columns));
            taken.extend(decided);
            let key = &chosen.signals;
            let signals = Named::by_key("signals", key, &known, &taken, columns, &origin)?;
            check_apart(&signals, decided, columns, &origin)?;
            signals
        };
        let block = Block::of(chosen.signals, signals.columns).with_gaps().encodable();
        let mut blocks = vec![if request.encoding.is_empty() {
            block
        } else {
            block.encoded(&request.encoding, columns, &origin)?
        }];
        let mut names = Names { signals: signals.names, ..Names::default() };
        if let Some((key, decisions)) = chosen.decisions.zip(decisions) {
            blocks.push(Block::of(key, decisions.columns).with_gaps());
            names.decisions = decisions.names;
        }
        blocks.extend(weights);
        names.lower.clone_from(&request.lower);
        names.upper.clone_from(&request.upper);
        let n_rows = match &body {
            Body::Records(records) => records.rough_rows(&origin)?,
            Body::Columns(columns) => columns.n_rows(),
        };
        let unread = chosen.unread;
        Ok(Self {
            origin,
            body,
            blocks,
            tensors,
            groups,
            has_decisions,
            has_weights,
            n_rows,
            keys,
            unread,
            names,
        })
    }

    /// Rows; of text, lines behind the header: rows, blank lines and parts of cells that hold line
    /// ends.
    pub fn rough_rows(&self) -> usize {
        self.n_rows
    }

    /// Rows, counted one by one where that is not known anyway.
    pub fn count_rows(&self) -> Result<usize, DataError> {
        let Body::Records(records) = &self.body else { return Ok(self.n_rows) };
        let mut again = records.again(&self.origin)?;
        let mut n_rows = 0;
        while again.next(&self.origin)? {
            n_rows += 1;
        }
        Ok(n_rows)
    }

    /// The sizes, if there are `n_rows`, of which as many are kept.
    pub fn survey(&self, selection: &Selection<'_>, n_rows: usize) -> Result<Survey, DataError> {
        let n_kept = if selection.thinning.is_empty() {
            selection.rows.map_or(n_rows, |rows| rows.count_below(n_rows))
        } else {
            self.kept(selection)?.len()
        };
        let width = |at: usize| self.blocks.get(at).map_or(0, Block::width);
        let shape = |tensor: &TensorBlock| [&[n_rows][..], &tensor.shape].concat();
        Ok(Survey {
            n_rows,
            n_kept,
            signal_dim: width(0),
            decision_dim: self.has_decisions.then(|| width(1)),
            weighted: self.has_weights,
            constraints: self.tensors.iter().map(|tensor| (tensor.key, shape(tensor))).collect(),
        })
    }

    /// The rows to keep, of all that there are.
    fn kept(&self, selection: &Selection<'_>) -> Result<Kept, DataError> {
        let n_rows = self.count_rows()?;
        let episodes = || {
            let own = self.groups.as_ref().filter(|own| own.kind() == GroupKind::Episodes);
            let Some(mut groups) = own.map(Belonging::afresh) else { return Ok(None) };
            let all = Kept::all(n_rows);
            match &self.body {
                Body::Records(records) => {
                    let mut again = records.again(&self.origin)?;
                    while again.next(&self.origin)? {
                        groups.take(again.record(), true);
                    }
                }
                Body::Columns(columns) => {
                    let read = |column, take: &mut Take<'_>| {
                        columns.read(column, &all, take, &self.origin)
                    };
                    groups.take_columns(&all, &self.origin, read)?;
                }
            }
            Ok(groups.finish(None).map(|groups| groups.of_rows))
        };
        selection.kept(n_rows, episodes, &self.origin)
    }

    /// Entries of a signal.
    pub fn signal_dim(&self) -> usize {
        self.blocks.first().map_or(0, Block::width)
    }

    /// Hands the signals of all rows to `take`, so many rows at a time, in the file's order; false
    /// as soon as `take` says so. Signals are numbers.
    pub fn walk_signals(
        self,
        piece_rows: usize,
        take: &mut walk::Take<'_>,
    ) -> Result<bool, DataError> {
        let origin = &self.origin;
        let Some(signals) = self.blocks.first() else { return Ok(true) };
        let mut hand_on = |block: Block| {
            let found = block.finish(None, origin)?;
            let goes_on = take(found.values.view());
            origin.meter.release(found.values.len() as u64 * 8);
            Ok::<bool, DataError>(goes_on)
        };
        match self.body {
            Body::Records(records) => {
                records::walk(records, piece_rows, signals, &mut hand_on, origin)
            }
            Body::Columns(columns) => {
                for first in (0..self.n_rows).step_by(piece_rows) {
                    let piece = first..self.n_rows.min(first + piece_rows);
                    let kept = Kept::range(self.n_rows, piece);
                    let mut block = signals.afresh();
                    columnar::read(&*columns, &kept, (&mut [&mut block], None), origin)?;
                    if !hand_on(block)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Reads the rows asked for.
    pub fn read(mut self, selection: &Selection<'_>) -> Result<Arrays, DataError> {
        let thinned = !selection.thinning.is_empty();
        let thinned = thinned.then(|| self.kept(selection)).transpose()?;
        let rows = selection.rows;
        let origin = &self.origin;
        let mut blocks: Vec<&mut Block> = self.blocks.iter_mut().collect();
        blocks.extend(self.tensors.iter_mut().map(|tensor| &mut tensor.block));
        let into = (blocks.as_mut_slice(), self.groups.as_mut());
        // Rows that come as text are put in order once they are there.
        let (kept, order) = match self.body {
            Body::Records(records) => {
                let chosen = thinned.map_or(Chosen::Rows(rows), Chosen::Kept);
                let kept = records::read(records, (chosen, self.n_rows), into, origin)?;
                let order = kept.file_order();
                (kept, order)
            }
            Body::Columns(columns) => {
                let of_rows = || Kept::of(if self.n_rows > 0 { rows } else { None }, self.n_rows);
                let kept = thinned.map_or_else(of_rows, Ok)?;
                columnar::read(&*columns, &kept, into, origin)?;
                (kept, None)
            }
        };
        let mut found = Vec::new();
        let mut encoding = Encoding::default();
        let mut names = self.names;
        for (at, mut block) in self.blocks.into_iter().enumerate() {
            if let Some((own, coded)) = block.expand(origin)?.filter(|_| at == 0) {
                (names.signals, encoding) = (own, coded);
            }
            found.push(block.finish(order.as_deref(), origin)?);
        }
        let mut tensors = Vec::new();
        for tensor in self.tensors {
            tensors.push(tensor.finish(order.as_deref(), origin)?);
        }
        let mut found = found.into_iter();
        let signals = found.next().ok_or_else(|| origin.corrupt("it has no signals"))?;
        let decisions = if self.has_decisions { found.next() } else { None };
        let weights = if self.has_weights { found.next() } else { None };
        let weights = weights.map(|found| (found, RowsOf::Kept));
        let (keys, unread) = (self.keys, self.unread);
        let groups = self.groups.and_then(|groups| groups.finish(order.as_deref()));
        let groups = groups.map(|found| (found, RowsOf::Kept));
        Ok(Arrays {
            signals,
            decisions,
            weights,
            groups,
            tensors,
            kept,
            keys,
            unread,
            names,
            limits: None,
            encoding,
        })
    }
}

/// The constraints that are asked for.
fn tensors(
    request: &DataRequest,
    chosen: &Keys,
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<Vec<TensorBlock>, DataError> {
    let mut tensors = Vec::new();
    for key in &chosen.constraints {
        tensors.push(TensorBlock::new(key, columns, origin)?);
    }
    for (key, limits) in [("lower", &request.lower), ("upper", &request.upper)] {
        if !limits.is_empty() {
            tensors.push(limit_block(key, limits, &tensors, columns, origin)?);
        }
    }
    Ok(tensors)
}

/// Columns that limit decisions or end episodes, asked for or not.
fn with_a_role(chosen: &Keys, tensors: &[TensorBlock], columns: &Columns) -> Vec<usize> {
    let unread = chosen.unread.iter().flat_map(|key| columns.under(key));
    let ends = ENDS.into_iter().flat_map(|key| columns.under(key));
    let limits = tensors.iter().flat_map(|tensor| tensor.block.columns()).copied();
    unread.chain(ends).chain(limits).collect()
}

/// Limits that are named by columns have one, or a number, for each decision.
fn check_limits(
    request: &DataRequest,
    decided: &[usize],
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    for (side, limits) in [("lower", &request.lower), ("upper", &request.upper)] {
        if !limits.is_empty() && !decided.is_empty() && limits.len() != decided.len() {
            let decisions: Vec<String> =
                decided.iter().map(|column| format!("`{}`", columns.name(*column))).collect();
            let detail = format!(
                "{side} limits are given for {} of the decisions, which are {} ({}); give a column \
                 or a number for each, as in p_max,3",
                limits.len(),
                decided.len(),
                decisions.join(", ")
            );
            return Err(DataError::Columns { path: origin.path.to_path_buf(), detail });
        }
    }
    Ok(())
}

/// Who knows the decision need not learn it.
fn check_apart(
    signals: &Named,
    decided: &[usize],
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<(), DataError> {
    let both = signals.columns.iter().find(|column| decided.contains(column));
    let Some(&both) = both else { return Ok(()) };
    let detail = format!(
        "the column `{}` is among the signals and the decisions; leave it out of one of them \
         (a pattern such as `*` takes only what has no other role)",
        shortened(columns.name(both))
    );
    Err(DataError::Columns { path: origin.path.to_path_buf(), detail })
}

/// The columns that were named as limits.
fn limit_block(
    key: &'static str,
    limits: &[String],
    tensors: &[TensorBlock],
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<TensorBlock, DataError> {
    if tensors.iter().any(|tensor| tensor.key == key) {
        let detail = format!(
            "`{key}` is in the data, and `{}` is named as the {key} limit too; leave out one of \
             them",
            limits.join(",")
        );
        return Err(DataError::Columns { path: origin.path.to_path_buf(), detail });
    }
    let named = |name: &&String| !name.is_empty();
    let names: Vec<String> = limits.iter().filter(named).cloned().collect();
    let columns = Named::by_name(key, &names, columns, origin)?.columns;
    let limited = limits.iter().map(|name| !name.is_empty()).collect();
    Ok(TensorBlock::of(key, vec![columns.len()], columns).limiting(limited))
}

/// Signals and decisions by the names a model knows them by, where nobody chose them by key.
fn by_names(
    request: &DataRequest,
    known: &[String],
    columns: &Columns,
    origin: &Origin<'_>,
) -> Result<[Option<Named>; 2], DataError> {
    let find = |role, key: &Option<String>, names: &[String]| {
        let asked = key.is_none() && !names.is_empty();
        asked.then(|| Named::by_name(role, names, columns, origin)).transpose()
    };
    let signals = find("signals", &request.signals, known)?;
    let decisions = if request.want_decisions {
        find("decisions", &request.decisions, &request.decision_names)?
    } else {
        None
    };
    Ok([signals, decisions])
}
