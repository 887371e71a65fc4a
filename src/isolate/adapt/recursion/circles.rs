//! Finds the functions of a module that can call each other in a circle without checking the stack,
//! and determines how they fail.

use std::collections::{HashMap, HashSet};

use wasmparser::{BinaryReaderError, FunctionBody, Operator};

/// The facts about a function from which circles are found.
pub(super) struct Calls {
    index: u32,
    direct: Vec<u32>,
    /// Set if it calls through a table: any function, as far as the module shows.
    is_indirect: bool,
    /// The number of parameters and local variables.
    variables: u32,
    /// Set if it can return -1.
    has_minus_one: bool,
    cleared: Vec<ClearedField>,
    /// The functions whose results it uses as signed numbers, and those whose results it uses as
    /// addresses.
    numbers: Vec<u32>,
    addresses: Vec<u32>,
}

/// Where a function stores a result: at an offset from the address in a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClearedField {
    pub(super) parameter: u32,
    pub(super) offset: u64,
}

/// A function at which every circle through it is cut.
pub(super) struct Cut {
    pub(super) variables: u32,
    /// The result when it fails: -1 if its results are numbers, 0 if they are objects.
    pub(super) failure: i32,
    /// What it sets to 0 before anything else. Its callers read these even if it failed.
    pub(super) cleared: Vec<ClearedField>,
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

    /// Records from the operators after a call of `callee` how its result is used.
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

/// Returns what a function with these operators sets to 0, before it calls or branches.
fn cleared(parameters: u32, operators: &[Operator<'_>]) -> Vec<ClearedField> {
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
            let (Operator::LocalSet { local_index } | Operator::LocalTee { local_index }) =
                operator
            else {
                return false;
            };
            *local_index == local
        })
    };
    let stores = first.windows(3).filter_map(|three| match three {
        [
            Operator::LocalGet { local_index },
            Operator::I32Const { value: 0 },
            Operator::I32Store { memarg },
        ] if *local_index < parameters && !is_set(*local_index) => {
            Some(ClearedField { parameter: *local_index, offset: memarg.offset })
        }
        _ => None,
    });
    stores.collect()
}

/// Returns `true` if a function with these operators visibly returns -1.
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

/// Selects functions so that every circle contains at least one: those that call through a table,
/// and those in a circle of direct calls. `all` are the calls of all functions, which also show how
/// results are used.
pub(super) fn cut(all: &[Calls], may_be_cut: impl Fn(u32) -> bool) -> HashMap<u32, Cut> {
    let calls = || all.iter().filter(|calls| may_be_cut(calls.index));
    let (mut cut, mut rest): (Vec<_>, Vec<_>) = calls().partition(|calls| calls.is_indirect);
    // A function that calls none of the others, or is called by none of them, is in no circle of
    // them. After its removal the same may be true of others.
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
