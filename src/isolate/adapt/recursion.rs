//! Makes CPython notice the end of V8's stack.
//!
//! CPython checks its stack where it recurses. When little is left, it raises `RecursionError` or
//! defers a deallocation. It sees only the stack in its own memory, which holds only values that
//! need an address. V8's stack ends first, but WebAssembly cannot see it. So each function that
//! checks is charged on the stack in memory. The charge is at least what the function, and the
//! functions up to the next one that checks, take of V8's stack. The limit is the size of V8's
//! stacks.
//!
//! CPython does not check everywhere: the hash of a nested tuple, or the next item of a nested
//! iterator, crashes a desktop's python. So further functions are made to check, such that every
//! other circle of calls contains one ([`circles`]). They fail with `RecursionError` when hardly
//! any of the stack is left.

mod circles;

use std::collections::{HashMap, HashSet};

use wasm_encoder::{
    BlockType, CodeSection, Encode, Function, HeapType, Instruction, MemArg, MemArgTarget, Module,
    RawSection, RefType, SectionId, ValType,
};
use wasmparser::{
    BinaryReaderError, DataKind, ExternalKind, FunctionBody, Operator, Parser, Payload, TypeRef,
};

use super::constant;
use circles::{Calls, Cut};

/// Functions that check the stack, each with the charge for its callers, in bytes.
const CHECKS: [(&str, i32); 3] = [
    ("Py_EnterRecursiveCall", 256),
    ("_Py_CheckRecursiveCall", 256),
    // The parser calls this one. Each level of the parsed code takes a dozen functions.
    ("_Py_ReachedRecursionLimitWithMargin", 128),
];

/// Functions with another charge than above, or that check the stack without a call.
const COSTS: [(&str, i32); 4] = [
    ("_PyEval_EvalFrameDefault", 640),
    (FREE, 768),
    // These two call JavaScript, whose frames are not charged separately.
    ("JsMethod_Vectorcall_impl", 2048),
    ("JsMethod_Construct_impl", 2048),
];

/// The function that sets the limits of a thread. Pyodide makes a thread state for each of V8's
/// stacks.
const SET_LIMITS: &str = "_Py_InitializeRecursionLimits";

/// The function that raises `RecursionError`. It returns a value other than 0, unless an exception
/// is being raised already. Its arguments are the thread state and a text for the end of the
/// message.
const RAISE: &str = "_Py_CheckRecursiveCall";
const THREAD: &str = "PyThreadState_Get";

/// A text that CPython itself passes to `RAISE`.
const WHERE: &[u8] = b" while calling a Python object\0";

/// Functions that need not check. Allocators call no functions of CPython, and their failure would
/// become a `MemoryError`. Callers of the others do not expect an exception.
const LEFT_OUT: [&str; 17] = [
    "PyMem_Malloc",
    "PyMem_Calloc",
    "PyMem_Realloc",
    "PyMem_RawMalloc",
    "PyMem_RawCalloc",
    "PyMem_RawRealloc",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "PyErr_ExceptionMatches",
    "PyErr_GivenExceptionMatches",
    "_PyErr_ExceptionMatches",
    "PyObject_CallFinalizerFromDealloc",
    "PyObject_GC_IsFinalized",
    "PyObject_GC_IsTracked",
    "PyObject_IS_GC",
    "PyUnicode_Compare",
];

/// The charge for a function that is made to check, in bytes: the first number is for the functions
/// that it calls. To this come eight bytes for each of its variables, as in V8's first compiler.
/// The second number is the maximum.
const GUARD_COST: (i32, i32) = (208, 768);

/// The size of the stack in memory that CPython may use, in bytes. V8's stacks have 4 MB.
const STACK_BYTES: i32 = 3_900_000;

/// How far beyond that size the functions fail that are made to check, in bytes. They must not fail
/// before those that CPython makes check, nor in code that these call, such as the garbage
/// collector.
const GUARD_BYTES: i32 = 64 << 10;

/// How far before that size CPython raises `RecursionError`, in bytes.
const MARGIN_BYTES: i32 = 16 << 10;

/// The function that frees an object. It defers this if less than twice the margin of the stack is
/// left, so that the code that it runs, such as `__del__`, has room. Its margin is 2 to the power
/// of the first number, in bytes, which is as much as four calls take. It is replaced by 2 to the
/// power of the second number, which leaves room for thirty.
const FREE: &str = "_Py_Dealloc";
const MARGIN_SHIFTS: (i32, i32) = (13, 16);

/// How far beyond that size CPython gives up, in bytes. This is never reached, because CPython
/// checks before.
const FATAL_BYTES: i32 = 1 << 20;

const STACK_POINTER: &str = "__stack_pointer";

/// The parts of a module about functions, except their code.
#[derive(Default)]
struct Functions<'a> {
    imported: u32,
    /// For each function type: the number of parameters, and the block type of its results, unless
    /// there are several.
    signatures: Vec<(u32, Option<BlockType>)>,
    /// The types of the functions that are not imported.
    types: Vec<u32>,
    exports: HashMap<&'a str, u32>,
    stack_pointer: Option<u32>,
    /// The address of the text [`WHERE`].
    text: Option<i32>,
    /// The values of constant globals, by index.
    globals: Vec<Option<i32>>,
}

/// The changes to the code.
struct Changes {
    /// The charges for callers of the checking functions.
    checks: HashMap<u32, i32>,
    costs: HashMap<u32, i32>,
    /// The functions that are made to check.
    guards: HashMap<u32, Cut>,
    left_out: HashSet<u32>,
    raise: u32,
    thread: u32,
    /// The address of the text [`WHERE`].
    text: i32,
    set_limits: u32,
    free: u32,
    stack_pointer: u32,
    /// The address at which the stack begins.
    stack: i32,
}

/// A change to a function in addition to its charge.
#[derive(Clone, Copy)]
enum Extra<'a> {
    Nothing,
    /// Replaces the first constant by the second.
    Replaced(i32, i32),
    /// Makes the function fail at the end of the stack.
    Guard(&'a Cut),
}

/// Returns CPython with charges added to its functions. Returns `None` if it does not check its
/// stack as expected.
pub(super) fn charge(wasm: &[u8]) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    let functions = Functions::read(wasm)?;
    let Some(mut changes) = functions.changes() else { return Ok(None) };
    changes.find_checks(wasm, functions.imported)?;
    changes.find_circles(wasm, &functions)?;
    let (mut module, mut code) = (Module::new(), CodeSection::new());
    let mut types = functions.types.iter();
    let mut index = functions.imported;
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let Payload::CodeSectionEntry(body) = &payload {
            let kind = types.next().and_then(|kind| usize::try_from(*kind).ok());
            let results = kind.and_then(|kind| functions.signatures.get(kind)?.1);
            if index == changes.set_limits {
                let Some(set) = changes.set_limits(body)? else { return Ok(None) };
                code.function(&set);
            } else if let Some((cost, results)) = changes.any_cost(index, body)?.zip(results) {
                let extra = changes.extra(index);
                let Some(body) = changes.charged(body, cost, results, extra)? else {
                    return Ok(None);
                };
                code.raw(&body);
            } else {
                code.raw(body.as_bytes());
            }
            index += 1;
            if types.len() == 0 {
                module.section(&code);
            }
        } else if let Some((id, range)) = payload.as_section() {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            let data = wasm.get(at(range.start)..at(range.end)).unwrap_or_default();
            if id != SectionId::Code as u8 {
                module.section(&RawSection { id, data });
            }
        }
    }
    Ok(Some(module.finish()))
}

impl Changes {
    /// Adds functions to the checks that only call one of them: compilers make such copies.
    fn find_checks(&mut self, wasm: &[u8], imported: u32) -> Result<(), BinaryReaderError> {
        let mut index = imported;
        let mut copies = Vec::new();
        for payload in Parser::new(0).parse_all(wasm) {
            if let Payload::CodeSectionEntry(body) = payload? {
                let mut cost = None;
                for operator in body.get_operators_reader()? {
                    let called = match operator? {
                        Operator::Call { function_index } => self.checks.get(&function_index),
                        Operator::CallIndirect { .. } => None,
                        _ => continue,
                    };
                    cost = called.copied();
                    if cost.is_none() {
                        break;
                    }
                }
                copies.extend(cost.map(|cost| (index, cost)));
                index += 1;
            }
        }
        self.checks.extend(copies);
        Ok(())
    }

    /// Finds the functions that must be made to check.
    fn find_circles(
        &mut self,
        wasm: &[u8],
        functions: &Functions<'_>,
    ) -> Result<(), BinaryReaderError> {
        let (mut calls, mut may_be_cut) = (Vec::new(), HashSet::new());
        let mut types = functions.types.iter();
        let mut index = functions.imported;
        for payload in Parser::new(0).parse_all(wasm) {
            if let Payload::CodeSectionEntry(body) = payload? {
                let kind = types.next().and_then(|kind| usize::try_from(*kind).ok());
                let signature = kind.and_then(|kind| functions.signatures.get(kind)).copied();
                let (parameters, results) = signature.unwrap_or_default();
                let can_fail = matches!(results, Some(BlockType::Result(_)));
                let is_left_out =
                    self.checks.contains_key(&index) || self.left_out.contains(&index);
                if can_fail && !is_left_out && self.cost(index, &body)?.is_none() {
                    may_be_cut.insert(index);
                }
                calls.push(Calls::read(index, parameters, &body)?);
                index += 1;
            }
        }
        self.guards = circles::cut(&calls, |index| may_be_cut.contains(&index));
        Ok(())
    }

    /// Returns the charge of a function, if it checks or is made to check.
    fn any_cost(
        &self,
        index: u32,
        body: &FunctionBody<'_>,
    ) -> Result<Option<i32>, BinaryReaderError> {
        let guarded = |cut: &Cut| {
            let variables = i32::try_from(cut.variables).unwrap_or(i32::MAX).saturating_mul(8);
            // The stack is aligned to 16 bytes.
            variables.saturating_add(GUARD_COST.0).min(GUARD_COST.1) & !15
        };
        Ok(self.cost(index, body)?.or_else(|| self.guards.get(&index).map(guarded)))
    }

    fn extra(&self, index: u32) -> Extra<'_> {
        if index == self.free {
            Extra::Replaced(MARGIN_SHIFTS.0, MARGIN_SHIFTS.1)
        } else {
            self.guards.get(&index).map_or(Extra::Nothing, Extra::Guard)
        }
    }

    /// Returns the charge of a function, if it checks by itself.
    fn cost(&self, index: u32, body: &FunctionBody<'_>) -> Result<Option<i32>, BinaryReaderError> {
        let mut cost = self.costs.get(&index).copied();
        if cost.is_none() && !self.checks.contains_key(&index) {
            for operator in body.get_operators_reader()? {
                if let Operator::Call { function_index } = operator? {
                    cost = cost.max(self.checks.get(&function_index).copied());
                }
            }
        }
        Ok(cost)
    }

    /// Builds the function that sets a thread's limits, in the fields that `body` sets: the
    /// beginning of the stack, the point at which errors are raised, the point at which CPython
    /// gives up, and the stack's own end and beginning. Returns `None` if `body` sets other fields.
    fn set_limits(&self, body: &FunctionBody<'_>) -> Result<Option<Function>, BinaryReaderError> {
        let mut places = Vec::new();
        for operator in body.get_operators_reader()? {
            if let Operator::I32Store { memarg } = operator? {
                places.push(memarg.offset);
            }
        }
        places.sort_unstable();
        let [first, .., end, _] = *places else { return Ok(None) };
        if places != [first, first + 4, first + 8, end, end + 4] {
            return Ok(None);
        }
        let end_of_stack = self.stack - STACK_BYTES;
        let fatal = end_of_stack - FATAL_BYTES;
        let values = [self.stack, end_of_stack + MARGIN_BYTES, fatal, fatal, self.stack];
        let mut set = Function::new([]);
        for (offset, value) in places.into_iter().zip(values) {
            let target = MemArgTarget::Memory(0);
            let place = MemArg { offset, align: 2, target, ordering: None };
            set.instruction(&Instruction::LocalGet(0))
                .instruction(&Instruction::I32Const(value))
                .instruction(&Instruction::I32Store(place));
        }
        set.instruction(&Instruction::End);
        Ok(Some(set))
    }

    /// Returns the function `body` within a block. The stack pointer is moved by `cost` before the
    /// block and back after it. A return becomes a branch out of the block. Returns `None` if there
    /// is not exactly one constant to replace.
    fn charged(
        &self,
        body: &FunctionBody<'_>,
        cost: i32,
        results: BlockType,
        extra: Extra<'_>,
    ) -> Result<Option<Vec<u8>>, BinaryReaderError> {
        let move_pointer = |by: &Instruction<'_>, code: &mut Vec<u8>| {
            Instruction::GlobalGet(self.stack_pointer).encode(code);
            Instruction::I32Const(cost).encode(code);
            by.encode(code);
            Instruction::GlobalSet(self.stack_pointer).encode(code);
        };
        let (range, bytes) = (body.range(), body.as_bytes());
        let slice = |from: u64, to: u64| {
            let at = |place: u64| usize::try_from(place - range.start).unwrap_or(usize::MAX);
            bytes.get(at(from)..at(to)).unwrap_or_default()
        };
        let mut operators = body.get_operators_reader()?;
        let mut copied = operators.original_position();
        let mut code = slice(range.start, copied).to_vec();
        move_pointer(&Instruction::I32Sub, &mut code);
        Instruction::Block(results).encode(&mut code);
        if let Extra::Guard(cut) = extra {
            self.guard(results, cut, &mut code);
        }
        let (mut depth, mut constants) = (0_u32, 0);
        while !operators.eof() {
            let (operator, place) = operators.read_with_offset()?;
            let instead = match (operator, extra) {
                (
                    Operator::Block { .. }
                    | Operator::Loop { .. }
                    | Operator::If { .. }
                    | Operator::Try { .. }
                    | Operator::TryTable { .. },
                    _,
                ) => {
                    depth += 1;
                    continue;
                }
                (Operator::End | Operator::Delegate { .. }, _) => {
                    // The last `end` ends the function, which is now the block.
                    depth = depth.saturating_sub(1);
                    continue;
                }
                (Operator::Return, _) => Instruction::Br(depth),
                (Operator::I32Const { value }, Extra::Replaced(from, to)) if value == from => {
                    constants += 1;
                    Instruction::I32Const(to)
                }
                _ => continue,
            };
            code.extend_from_slice(slice(copied, place));
            instead.encode(&mut code);
            copied = operators.original_position();
        }
        code.extend_from_slice(slice(copied, range.end));
        move_pointer(&Instruction::I32Add, &mut code);
        Instruction::End.encode(&mut code);
        let expected = i32::from(matches!(extra, Extra::Replaced(..)));
        Ok((constants == expected).then_some(code))
    }

    /// Adds code that leaves the enclosing block with the failure of `cut`, if the stack has ended
    /// and CPython can raise an error for it.
    fn guard(&self, results: BlockType, cut: &Cut, code: &mut Vec<u8>) {
        let limit = self.stack - STACK_BYTES - GUARD_BYTES;
        let failure = match results {
            BlockType::Result(ValType::I64) => Instruction::I64Const(cut.failure.into()),
            BlockType::Result(ValType::F32) => Instruction::F32Const((-1.0).into()),
            BlockType::Result(ValType::F64) => Instruction::F64Const((-1.0).into()),
            BlockType::Result(ValType::Ref(_)) => Instruction::RefNull(HeapType::EXTERN),
            _ => Instruction::I32Const(cut.failure),
        };
        let looks = [
            Instruction::GlobalGet(self.stack_pointer),
            Instruction::I32Const(limit),
            Instruction::I32LtU,
            Instruction::If(BlockType::Empty),
            Instruction::Call(self.thread),
            Instruction::I32Const(self.text),
            Instruction::Call(self.raise),
            Instruction::If(BlockType::Empty),
        ];
        let clears = cut.cleared.iter().flat_map(|place| {
            let target = MemArgTarget::Memory(0);
            let memarg = MemArg { offset: place.offset, align: 2, target, ordering: None };
            [
                Instruction::LocalGet(place.parameter),
                Instruction::I32Const(0),
                Instruction::I32Store(memarg),
            ]
        });
        // The branch leaves both conditions and the block.
        let leaves = [failure, Instruction::Br(2), Instruction::End, Instruction::End];
        for instruction in looks.into_iter().chain(clears).chain(leaves) {
            instruction.encode(code);
        }
    }
}

impl<'a> Functions<'a> {
    fn read(wasm: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut functions = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(types) => {
                    for kind in types.into_iter_err_on_gc_types() {
                        let kind = kind?;
                        let parameters = u32::try_from(kind.params().len()).unwrap_or(u32::MAX);
                        functions.signatures.push((parameters, block_of(kind.results())));
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) | TypeRef::FuncExact(_) => functions.imported += 1,
                            TypeRef::Global(_) => functions.globals.push(None),
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(types) => {
                    functions.types = types.into_iter().collect::<Result<_, _>>()?;
                }
                Payload::GlobalSection(globals) => {
                    for global in globals {
                        functions.globals.push(constant(&global?.init_expr));
                    }
                }
                Payload::DataSection(segments) => {
                    for segment in segments {
                        let segment = segment?;
                        if let DataKind::Active { offset_expr, .. } = segment.kind
                            && let Some(start) = constant(&offset_expr)
                            && let Some(at) = find(segment.data, WHERE)
                        {
                            functions.text = start.checked_add_unsigned(at);
                        }
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        match export.kind {
                            ExternalKind::Func | ExternalKind::FuncExact => {
                                functions.exports.insert(export.name, export.index);
                            }
                            ExternalKind::Global if export.name == STACK_POINTER => {
                                functions.stack_pointer = Some(export.index);
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(functions)
    }

    fn changes(&self) -> Option<Changes> {
        let index = |name: &str| self.exports.get(name).copied();
        let named = |names: &[(&str, i32)]| -> Option<HashMap<u32, i32>> {
            names.iter().map(|(name, cost)| Some((index(name)?, *cost))).collect()
        };
        let all = |names: &[&str]| names.iter().map(|name| index(name)).collect::<Option<_>>();
        let stack_pointer = self.stack_pointer?;
        Some(Changes {
            checks: named(&CHECKS)?,
            costs: named(&COSTS)?,
            guards: HashMap::new(),
            left_out: all(&LEFT_OUT)?,
            raise: index(RAISE)?,
            thread: index(THREAD)?,
            text: self.text?,
            set_limits: index(SET_LIMITS)?,
            free: index(FREE)?,
            stack_pointer,
            stack: (*self.globals.get(usize::try_from(stack_pointer).ok()?)?)?,
        })
    }
}

/// Returns the block type for these results. CPython's functions have at most one.
fn block_of(results: &[wasmparser::ValType]) -> Option<BlockType> {
    let result = match results {
        [] => return Some(BlockType::Empty),
        [wasmparser::ValType::I32] => ValType::I32,
        [wasmparser::ValType::I64] => ValType::I64,
        [wasmparser::ValType::F32] => ValType::F32,
        [wasmparser::ValType::F64] => ValType::F64,
        [wasmparser::ValType::Ref(kind)] if kind.is_extern_ref() => {
            ValType::Ref(RefType::EXTERNREF)
        }
        _ => return None,
    };
    Some(BlockType::Result(result))
}

/// Returns the position of `text` in `data`.
fn find(data: &[u8], text: &[u8]) -> Option<u32> {
    let at = data.windows(text.len()).position(|window| window == text)?;
    u32::try_from(at).ok()
}

#[cfg(test)]
mod tests;
