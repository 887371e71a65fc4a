//! Which functions of a module can call each other in a circle, none of which looks at the stack,
//! and with what they fail.

use std::collections::{HashMap, HashSet};

use wasmparser::{BinaryReaderError, FunctionBody, Operator};

/// What a function does of which circles are made.
pub(super) struct Calls {
    index: u32,
    direct: Vec<u32>,
    /// Whether it calls what a table says: any function, as far as the module tells.
    is_indirect: bool,
    /// Parameters and local variables.
    variables: u32,
    /// Whether -1 is a result of it.
    has_minus_one: bool,
    cleared: Vec<Place>,
    /// Functions whose results it takes for numbers that may be less than 0, and for addresses.
    numbers: Vec<u32>,
    addresses: Vec<u32>,
}

/// Where a function stores a result: a parameter, and the distance from the address that it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) parameter: u32,
    pub(super) offset: u64,
}

/// A function that every circle through it is cut at.
pub(super) struct Cut {
    pub(super) variables: u32,
    /// What it fails with: -1 if its results are numbers, and 0 if they are objects.
    pub(super) failure: i32,
    /// What it sets to 0 before anything else. Its callers read that also where it failed.
    pub(super) cleared: Vec<Place>,
}

impl Calls {
    pub(super) fn read(
        index: u32,
        parameters: u32,
        body: &FunctionBody<'_>,
    ) -> Result<Self, BinaryReaderError> {
        let mut variables = parameters;
        for locals in body.get_locals_reader()? {
            variables = variables.saturating_add(locals?.0);
        }
        let operators = body.get_operators_reader()?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut calls = Self {
            index,
            direct: Vec::new(),
            is_indirect: false,
            variables,
            has_minus_one: has_minus_one(&operators),
            cleared: cleared(parameters, &operators),
            numbers: Vec::new(),
            addresses: Vec::new(),
        };
        for (at, operator) in operators.iter().enumerate() {
            match operator {
                Operator::Call { function_index } => {
                    calls.direct.push(*function_index);
                    calls.see_use(*function_index, operators.get(at + 1..).unwrap_or_default());
                }
                Operator::CallIndirect { .. } => calls.is_indirect = true,
                _ => {}
            }
        }
        Ok(calls)
    }

    /// Sees from what comes after a call of `callee` what its result is taken for.
    fn see_use(&mut self, callee: u32, after: &[Operator<'_>]) {
        let after = match after {
            [Operator::LocalTee { .. }, rest @ ..] => rest,
            _ => after,
        };
        match after {
            [
                Operator::I32Const { value: 0 | -1 },
                Operator::I32LtS | Operator::I32GeS | Operator::I32GtS | Operator::I32LeS,
                ..,
            ]
            | [Operator::I32Const { value: -1 }, Operator::I32Eq | Operator::I32Ne, ..] => {
                self.numbers.push(callee);
            }
            [Operator::I32Load { .. }, ..] => self.addresses.push(callee),
            _ => {}
        }
    }
}

/// What a function with these operators sets to 0, before it calls or branches.
fn cleared(parameters: u32, operators: &[Operator<'_>]) -> Vec<Place> {
    let is_straight = |operator: &Operator<'_>| {
        !matches!(
            operator,
            Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::Call { .. }
                | Operator::CallIndirect { .. }
                | Operator::BrIf { .. }
                | Operator::End
        )
    };
    let straight = operators.iter().take_while(|operator| is_straight(operator)).count();
    let first = operators.get(..straight).unwrap_or_default();
    let is_set = |local: u32| {
        first.iter().any(|operator| {
            matches!(operator, Operator::LocalSet { local_index } | Operator::LocalTee { local_index }
                if *local_index == local)
        })
    };
    let stores = first.windows(3).filter_map(|three| match three {
        [
            Operator::LocalGet { local_index },
            Operator::I32Const { value: 0 },
            Operator::I32Store { memarg },
        ] if *local_index < parameters && !is_set(*local_index) => {
            Some(Place { parameter: *local_index, offset: memarg.offset })
        }
        _ => None,
    });
    stores.collect()
}

/// Whether a function with these operators returns -1 in a way that can be seen.
fn has_minus_one(operators: &[Operator<'_>]) -> bool {
    let is_end = |at: usize| {
        at + 1 == operators.len() || matches!(operators.get(at), Some(Operator::Return))
    };
    let returned: HashSet<_> = (1..operators.len())
        .filter(|at| is_end(*at))
        .filter_map(|at| match operators.get(at - 1) {
            Some(Operator::LocalGet { local_index }) => Some(*local_index),
            _ => None,
        })
        .collect();
    operators.windows(2).any(|pair| match pair {
        [Operator::I32Const { value: -1 }, then] => match then {
            Operator::Return | Operator::Br { .. } | Operator::End => true,
            Operator::LocalSet { local_index } => returned.contains(local_index),
            _ => false,
        },
        _ => false,
    })
}

/// Of the functions with these `calls` those of which every circle has at least one: whoever calls
/// by a table, and what is in a circle of direct calls besides. `all` are the calls of all
/// functions, and so how results are taken.
pub(super) fn cut(all: &[Calls], may_be_cut: impl Fn(u32) -> bool) -> HashMap<u32, Cut> {
    let calls = || all.iter().filter(|calls| may_be_cut(calls.index));
    let (mut cut, mut rest): (Vec<_>, Vec<_>) = calls().partition(|calls| calls.is_indirect);
    // What calls none of the rest, or is called by none, is in no circle of them; without it the
    // same is true of more.
    loop {
        let among: HashSet<_> = rest.iter().map(|calls| calls.index).collect();
        let called: HashSet<_> = rest.iter().flat_map(|calls| &calls.direct).copied().collect();
        let before = rest.len();
        rest.retain(|calls| {
            called.contains(&calls.index) && calls.direct.iter().any(|index| among.contains(index))
        });
        if rest.len() == before {
            break;
        }
    }
    cut.append(&mut rest);
    let numbers: HashSet<_> = all.iter().flat_map(|calls| &calls.numbers).collect();
    let addresses: HashSet<_> = all.iter().flat_map(|calls| &calls.addresses).collect();
    cut.into_iter()
        .map(|calls| {
            let index = &calls.index;
            let is_number =
                numbers.contains(index) || calls.has_minus_one && !addresses.contains(index);
            let cut = Cut {
                variables: calls.variables,
                failure: -i32::from(is_number),
                cleared: calls.cleared.clone(),
            };
            (*index, cut)
        })
        .collect()
}
