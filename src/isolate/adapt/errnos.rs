//! Makes CPython's exceptions carry Linux's error numbers instead of WASI's, with which it is
//! compiled.
//!
//! C code keeps WASI's numbers: the C library, comparisons, packages. A number becomes a Python
//! object in only one function, `PyErr_SetFromErrnoWithFilenameObjects`, which makes a tuple with
//! it and calls the exception's class. It is changed to call a function of ours instead. That
//! function first replaces the number in the tuple, once `js/py/errnos.py` has replaced the numbers
//! in Python. One function reads the number of an exception, to check whether it is `EINTR`. It is
//! changed too.

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, Encode, ExportKind, Function, GlobalType, Instruction,
    Module, RawSection, SectionId, ValType,
};
use wasmparser::{
    BinaryReaderError, ExternalKind, FunctionBody, Operator, Parser, Payload, TypeRef,
};

use super::appended;

/// The exported variable that enables the replacement. Emscripten has no names of this form.
const ADOPTED: &str = "isolet:errnos";

/// Contains lines with a name, WASI's number and Linux's. The rest is Python code that uses them.
const NUMBERS: &str = include_str!("../../../js/py/errnos.py");

/// The function that makes exceptions.
const RAISES: &str = "PyErr_SetFromErrnoWithFilenameObjects";
/// The calls by which the function that checks for `EINTR` is found. No other function makes all of
/// them.
const OF_ASKING: [&str; 4] = [
    "PyErr_ExceptionMatches",
    "PyErr_GetRaisedException",
    "PyLong_AsLongAndOverflow",
    "PyErr_SetRaisedException",
];
const INTERRUPTED: (i32, i32) = (27, 4);

/// The parts of CPython that are needed to change it.
#[derive(Default)]
struct Contents<'a> {
    sections: Vec<(u8, &'a [u8])>,
    exports: Vec<(&'a str, u32)>,
    imported_functions: u32,
    imported_globals: u32,
    globals: u32,
    /// The types of the functions that are not imported.
    types: Vec<u32>,
    bodies: Vec<FunctionBody<'a>>,
}

/// Changes CPython. Returns `None` if it is not as expected.
pub(super) fn adopt(wasm: &[u8]) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    Contents::read(wasm)?.changed()
}

impl<'a> Contents<'a> {
    fn read(wasm: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut contents = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            match &payload {
                Payload::ImportSection(imports) => {
                    for import in imports.clone().into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) | TypeRef::FuncExact(_) => {
                                contents.imported_functions += 1;
                            }
                            TypeRef::Global(_) => contents.imported_globals += 1,
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(functions) => {
                    contents.types = functions.clone().into_iter().collect::<Result<_, _>>()?;
                }
                Payload::GlobalSection(globals) => contents.globals = globals.count(),
                Payload::ExportSection(exports) => {
                    for export in exports.clone() {
                        let export = export?;
                        if matches!(export.kind, ExternalKind::Func | ExternalKind::FuncExact) {
                            contents.exports.push((export.name, export.index));
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => contents.bodies.push(body.clone()),
                _ => {}
            }
            if let Some((id, range)) = payload.as_section() {
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
                let section = wasm.get(at(range.start)..at(range.end)).unwrap_or_default();
                contents.sections.push((id, section));
            }
        }
        Ok(contents)
    }

    fn exported(&self, name: &str) -> Option<u32> {
        self.exports.iter().find(|(export, _)| *export == name).map(|(_, index)| *index)
    }

    fn changed(&self) -> Result<Option<Vec<u8>>, BinaryReaderError> {
        let functions = ["PyObject_Call", RAISES].map(|name| self.exported(name));
        let [Some(call), Some(raises)] = functions else { return Ok(None) };
        let own = |function: u32| {
            function.checked_sub(self.imported_functions).and_then(|own| usize::try_from(own).ok())
        };
        let call_type = own(call).and_then(|own| self.types.get(own));
        let (Some(call_type), Some(raises)) = (call_type, own(raises)) else { return Ok(None) };
        let new = self.imported_functions + u32::try_from(self.types.len()).unwrap_or(u32::MAX);
        let Some(replacing) = self.replacing(call) else { return Ok(None) };
        let Some(asks) = self.asks_for_interrupted()? else { return Ok(None) };

        let mut code = CodeSection::new();
        for (index, body) in self.bodies.iter().enumerate() {
            let replaced = if index == raises {
                let old = |operator: &Operator<'_>| match operator {
                    Operator::Call { function_index } => *function_index == call,
                    _ => false,
                };
                replaced(body, old, &Instruction::Call(new))?
            } else if index == asks {
                let old = |operator: &Operator<'_>| match operator {
                    Operator::I32Const { value } => *value == INTERRUPTED.0,
                    _ => false,
                };
                replaced(body, old, &Instruction::I32Const(INTERRUPTED.1))?
            } else {
                code.raw(body.as_bytes());
                continue;
            };
            let Some(replaced) = replaced else { return Ok(None) };
            code.raw(&replaced);
        }
        code.function(&replacing);

        let mut module = Module::new();
        for (id, section) in &self.sections {
            let data = match *id {
                FUNCTION => appended(section, call_type)?,
                GLOBAL => appended(section, &Adopted)?,
                EXPORT => appended(section, &AdoptedExport(self.imported_globals + self.globals))?,
                CODE => {
                    module.section(&code);
                    continue;
                }
                _ => section.to_vec(),
            };
            module.section(&RawSection { id: *id, data: &data });
        }
        Ok(Some(module.finish()))
    }

    /// Builds the function that replaces the number in a tuple and then calls `PyObject_Call`.
    fn replacing(&self, call: u32) -> Option<Function> {
        const ARGUMENTS: u32 = 1;
        const WASI: u32 = 3;
        const LINUX: u32 = 4;
        let mut function = Function::new([(2, ValType::I32)]);
        let mut code = function.instructions();
        code.global_get(self.imported_globals + self.globals).if_(BlockType::Empty);
        code.local_get(ARGUMENTS).i32_const(0).call(self.exported("PyTuple_GetItem")?);
        code.call(self.exported("PyLong_AsLong")?).local_tee(WASI).local_set(LINUX);
        for (wasi, linux) in numbers() {
            code.local_get(WASI).i32_const(wasi).i32_eq();
            code.if_(BlockType::Empty).i32_const(linux).local_set(LINUX).end();
        }
        code.local_get(ARGUMENTS).i32_const(0);
        code.local_get(LINUX).call(self.exported("PyLong_FromLong")?);
        code.call(self.exported("PyTuple_SetItem")?).drop().end();
        code.local_get(0).local_get(ARGUMENTS).local_get(2).call(call).end();
        Some(function)
    }

    /// Returns the index of the function that checks whether an exception is about `EINTR`; `None`
    /// unless there is exactly one.
    fn asks_for_interrupted(&self) -> Result<Option<usize>, BinaryReaderError> {
        let called = OF_ASKING.map(|name| self.exported(name));
        let mut found = Vec::new();
        for (index, body) in self.bodies.iter().enumerate() {
            let mut calls = [false; OF_ASKING.len()];
            for operator in body.get_operators_reader()? {
                if let Operator::Call { function_index } = operator?
                    && let Some(which) = called.iter().position(|one| *one == Some(function_index))
                {
                    calls[which] = true;
                }
            }
            if calls == [true; OF_ASKING.len()] {
                found.push(index);
            }
        }
        Ok(if let [one] = *found { Some(one) } else { None })
    }
}

/// Returns a function's body with the only instruction that is `old` replaced; `None` unless there
/// is exactly one.
fn replaced(
    body: &FunctionBody<'_>,
    old: impl Fn(&Operator<'_>) -> bool,
    new: &Instruction<'_>,
) -> Result<Option<Vec<u8>>, BinaryReaderError> {
    let start = body.range().start;
    let mut places = Vec::new();
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        let place = reader.original_position();
        if old(&reader.read()?) {
            places.push((place - start, reader.original_position() - start));
        }
    }
    let [(from, to)] = *places else { return Ok(None) };
    let bytes = body.as_bytes();
    let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
    let mut changed = bytes.get(..at(from)).unwrap_or_default().to_vec();
    new.encode(&mut changed);
    changed.extend_from_slice(bytes.get(at(to)..).unwrap_or_default());
    Ok(Some(changed))
}

/// Returns pairs of WASI's number and Linux's.
fn numbers() -> impl Iterator<Item = (i32, i32)> {
    NUMBERS.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, wasi, linux) = (words.next()?, words.next()?, words.next()?);
        let is_row = name.starts_with('E') && words.next().is_none();
        is_row.then_some((wasi.parse().ok()?, linux.parse().ok()?))
    })
}

const FUNCTION: u8 = SectionId::Function as u8;
const GLOBAL: u8 = SectionId::Global as u8;
const EXPORT: u8 = SectionId::Export as u8;
const CODE: u8 = SectionId::Code as u8;

/// The variable, which is 0 until JavaScript sets it.
struct Adopted;

impl Encode for Adopted {
    fn encode(&self, sink: &mut Vec<u8>) {
        GlobalType { val_type: ValType::I32, mutable: true, shared: false }.encode(sink);
        ConstExpr::i32_const(0).encode(sink);
    }
}

/// The export of the global with this index.
struct AdoptedExport(u32);

impl Encode for AdoptedExport {
    fn encode(&self, sink: &mut Vec<u8>) {
        ADOPTED.encode(sink);
        ExportKind::Global.encode(sink);
        self.0.encode(sink);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wasm_encoder::{ExportSection, FunctionSection, GlobalSection, TypeSection};

    use super::*;

    const CALL: u32 = 0;

    /// A module with the parts of CPython that are changed. Its functions only call each other.
    fn cpython(raises: &[Instruction<'_>]) -> Vec<u8> {
        let names = ["PyObject_Call", "PyTuple_GetItem", "PyTuple_SetItem", "PyLong_AsLong"];
        let names = names.into_iter().chain(["PyLong_FromLong"]).chain(OF_ASKING).chain([RAISES]);
        let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
        types.ty().function([ValType::I32; 3], [ValType::I32]);
        let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
        let asks = (5..9).map(Instruction::Call).chain([Instruction::I32Const(INTERRUPTED.0)]);
        let asks: Vec<_> = asks.collect();
        for (index, name) in (0..).zip(names) {
            functions.function(0);
            exports.export(name, ExportKind::Func, index);
            code.function(&body(if name == RAISES { raises } else { &[] }));
        }
        functions.function(0);
        code.function(&body(&asks));
        let mut globals = GlobalSection::new();
        let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(kind, &ConstExpr::i32_const(1));
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&globals);
        module.section(&exports).section(&code);
        module.finish()
    }

    fn body(instructions: &[Instruction<'_>]) -> Function {
        let mut function = Function::new([]);
        for instruction in instructions {
            function.instruction(instruction);
        }
        function.instruction(&Instruction::End);
        function
    }

    fn operators(body: &FunctionBody<'_>) -> Vec<String> {
        let operators = body.get_operators_reader().unwrap();
        operators.into_iter().map(|operator| format!("{:?}", operator.unwrap())).collect()
    }

    #[test]
    fn exceptions_are_made_by_another_function_and_eintr_is_linuxs() {
        let raises = [Instruction::Call(CALL), Instruction::Call(3)];
        let changed = adopt(&cpython(&raises)).unwrap().unwrap();
        let contents = Contents::read(&changed).unwrap();
        assert_eq!(contents.bodies.len(), 12);
        assert_eq!(contents.types, [0; 12]);
        assert_eq!(contents.globals, 2);
        let calls = operators(&contents.bodies[9]);
        assert!(calls[0].contains("function_index: 11"), "{calls:?}");
        assert!(calls[1].contains("function_index: 3"), "{calls:?}");
        assert!(operators(&contents.bodies[10])[4].contains("value: 4"));
        let replacing = operators(&contents.bodies[11]);
        assert!(replacing[0].contains("global_index: 1"), "{replacing:?}");
        let last_call = &replacing[replacing.len() - 2];
        assert!(last_call.contains("function_index: 0"), "{last_call}");
    }

    #[test]
    fn what_is_not_as_expected_is_not_changed() {
        for raises in [&[][..], &[Instruction::Call(CALL), Instruction::Call(CALL)]] {
            assert!(adopt(&cpython(raises)).unwrap().is_none());
        }
        assert!(adopt(&Module::new().finish()).unwrap().is_none());
    }

    #[test]
    fn every_number_has_one_of_linux() {
        let numbers: BTreeSet<_> = numbers().collect();
        for which in [|(wasi, _)| wasi, |(_, linux)| linux] {
            let each: BTreeSet<i32> = numbers.iter().copied().map(which).collect();
            assert_eq!(each.len(), 131);
        }
        assert!(numbers.contains(&INTERRUPTED) && numbers.contains(&(2, 13)));
    }
}
