//! Changes CPython's exports. Most are removed: an added function puts all functions that were
//! exported into a separate table on demand, and another one puts some of them into CPython's own
//! table. Pyodide's tables of JavaScript objects are added.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use wasm_encoder::{
    Encode, ExportKind, ExportSection, Function, HeapType, Instruction, Module, RawSection,
    RefType, SectionId, TableType,
};
use wasmparser::{BinaryReaderError, Export, ExternalKind, Parser, Payload, TypeRef, ValType};

use super::{appended, constant};

/// The exported function that fills the table, the one that puts functions into CPython's own
/// table, and the exported table. Emscripten has no names of this form.
const FILL: &str = "isolet:fill";
const PLACE: &str = "isolet:place";
const TABLE: &str = "isolet:functions";

/// The exported tables of the JavaScript objects that Python refers to, in the module's order:
/// those that are kept forever, and those that are freed.
const OBJECTS: [&str; 2] = ["isolet:immortals", "isolet:objects"];

/// The header of an element segment that only an instruction copies and whose elements are all
/// functions.
const PASSIVE_FUNCTIONS: [u8; 2] = [1, 0];

/// CPython with a part of its exports.
pub(super) struct Moved {
    pub(super) wasm: Vec<u8>,
    /// [`Exports`] as JSON.
    pub(super) exports: String,
}

/// The removed exports, for packages to link to.
#[derive(Serialize)]
struct Exports<'a> {
    /// All functions, in the order of the table.
    functions: Vec<&'a str>,
    /// The values of the constants that are no longer exported. They are addresses.
    constants: BTreeMap<&'a str, i32>,
}

/// The parts of a module that are needed to change it.
#[derive(Default)]
struct Contents<'a> {
    /// The numbers and bytes of the sections.
    sections: Vec<(u8, &'a [u8])>,
    exports: Vec<Export<'a>>,
    /// Constant globals by index.
    constants: HashMap<u32, i32>,
    functions: u32,
    tables: u32,
    /// The indices of the tables of JavaScript objects.
    objects: Vec<u32>,
    globals: u32,
    elements: u32,
    /// The index of the function type without parameters and results, and of the one with three
    /// numbers as its parameters.
    procedure: u32,
    placing: u32,
    /// The index of CPython's own table.
    own_table: Option<u32>,
}

/// Removes the exports of `wasm` that are not `used`: functions and constants.
pub(super) fn move_exports(wasm: &[u8], used: &HashSet<&str>) -> Result<Moved, BinaryReaderError> {
    let contents = Contents::read(wasm)?;
    let mut exports = Exports { functions: Vec::new(), constants: BTreeMap::new() };
    let mut functions = Vec::new();
    let mut kept = ExportSection::new();
    for Export { name, kind, index } in &contents.exports {
        let (kind, constant) = match kind {
            ExternalKind::Func | ExternalKind::FuncExact => {
                exports.functions.push(name);
                functions.push(*index);
                (ExportKind::Func, None)
            }
            ExternalKind::Table => (ExportKind::Table, None),
            ExternalKind::Memory => (ExportKind::Memory, None),
            ExternalKind::Global => (ExportKind::Global, contents.constants.get(index)),
            ExternalKind::Tag => (ExportKind::Tag, None),
        };
        if used.contains(name) {
            kept.export(name, kind, *index);
        } else if let Some(constant) = constant {
            exports.constants.insert(name, *constant);
        } else if kind != ExportKind::Func {
            kept.export(name, kind, *index);
        }
    }
    kept.export(FILL, ExportKind::Func, contents.functions);
    kept.export(PLACE, ExportKind::Func, contents.functions + 1);
    kept.export(TABLE, ExportKind::Table, contents.tables);
    for (name, table) in OBJECTS.into_iter().zip(&contents.objects) {
        kept.export(name, ExportKind::Table, *table);
    }
    let exports = serde_json::to_string(&exports).unwrap_or_default();
    Ok(Moved { wasm: contents.with(&kept, &functions)?, exports })
}

impl<'a> Contents<'a> {
    fn read(wasm: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut contents = Self::default();
        for payload in Parser::new(0).parse_all(wasm) {
            let payload = payload?;
            contents.note(&payload)?;
            if let Some((id, range)) = payload.as_section() {
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
                let section = wasm.get(at(range.start)..at(range.end)).unwrap_or_default();
                contents.sections.push((id, section));
            }
        }
        Ok(contents)
    }

    fn note(&mut self, payload: &Payload<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(types) => {
                for (index, kind) in (0..).zip(types.clone().into_iter_err_on_gc_types()) {
                    let kind = kind?;
                    match (kind.params(), kind.results()) {
                        ([], []) => self.procedure = index,
                        ([ValType::I32, ValType::I32, ValType::I32], []) => self.placing = index,
                        _ => {}
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    match import?.ty {
                        TypeRef::Func(_) | TypeRef::FuncExact(_) => self.functions += 1,
                        TypeRef::Table(table) => self.note_table(table),
                        TypeRef::Global(_) => self.globals += 1,
                        TypeRef::Memory(_) | TypeRef::Tag(_) => {}
                    }
                }
            }
            Payload::FunctionSection(functions) => self.functions += functions.count(),
            Payload::TableSection(tables) => {
                for table in tables.clone() {
                    self.note_table(table?.ty);
                }
            }
            Payload::GlobalSection(globals) => {
                for (index, global) in (self.globals..).zip(globals.clone()) {
                    let global = global?;
                    let value = constant(&global.init_expr);
                    if let Some(value) = value.filter(|_| !global.ty.mutable) {
                        self.constants.insert(index, value);
                    }
                }
            }
            Payload::ExportSection(exports) => {
                self.exports = exports.clone().into_iter().collect::<Result<_, _>>()?;
            }
            Payload::ElementSection(elements) => self.elements = elements.count(),
            _ => {}
        }
        Ok(())
    }

    fn note_table(&mut self, table: wasmparser::TableType) {
        match table.element_type {
            wasmparser::RefType::EXTERNREF => self.objects.push(self.tables),
            wasmparser::RefType::FUNCREF => {
                self.own_table.get_or_insert(self.tables);
            }
            _ => {}
        }
        self.tables += 1;
    }

    /// Returns the module with these exports, the added functions and the table for `functions`.
    fn with(
        &self,
        exports: &ExportSection,
        functions: &[u32],
    ) -> Result<Vec<u8>, BinaryReaderError> {
        let length = u32::try_from(functions.len()).unwrap_or(u32::MAX);
        let mut module = Module::new();
        for (id, section) in &self.sections {
            let added = |item: &dyn Encode| appended(section, item);
            let data = match *id {
                FUNCTION => appended(&added(&self.procedure)?, &self.placing)?,
                TABLE_SECTION => added(&TableType {
                    element_type: RefType::FUNCREF,
                    table64: false,
                    minimum: 0,
                    maximum: Some(length.into()),
                    shared: false,
                })?,
                ELEMENT => added(&PassiveSegment(functions))?,
                CODE => appended(&added(&self.fill(length.cast_signed()))?, &self.place())?,
                EXPORT => {
                    module.section(exports);
                    continue;
                }
                _ => section.to_vec(),
            };
            module.section(&RawSection { id: *id, data: &data });
        }
        Ok(module.finish())
    }

    /// Builds the function that grows the table to its length and copies the segment into it.
    fn fill(&self, length: i32) -> Function {
        let mut fill = Function::new([]);
        fill.instruction(&Instruction::RefNull(HeapType::FUNC))
            .instruction(&Instruction::I32Const(length))
            .instruction(&Instruction::TableGrow(self.tables))
            .instruction(&Instruction::Drop)
            .instruction(&Instruction::I32Const(0))
            .instruction(&Instruction::I32Const(0))
            .instruction(&Instruction::I32Const(length))
            .instruction(&Instruction::TableInit { elem_index: self.elements, table: self.tables })
            .instruction(&Instruction::End);
        fill
    }

    /// Builds the function that puts functions into CPython's table: from this place on, from the
    /// function of this index on, this many.
    fn place(&self) -> Function {
        let mut place = Function::new([]);
        place
            .instruction(&Instruction::LocalGet(0))
            .instruction(&Instruction::LocalGet(1))
            .instruction(&Instruction::LocalGet(2))
            .instruction(&Instruction::TableInit {
                elem_index: self.elements,
                table: self.own_table.unwrap_or_default(),
            })
            .instruction(&Instruction::End);
        place
    }
}

const FUNCTION: u8 = SectionId::Function as u8;
const TABLE_SECTION: u8 = SectionId::Table as u8;
const EXPORT: u8 = SectionId::Export as u8;
const ELEMENT: u8 = SectionId::Element as u8;
const CODE: u8 = SectionId::Code as u8;

struct PassiveSegment<'a>(&'a [u32]);

impl Encode for PassiveSegment<'_> {
    fn encode(&self, sink: &mut Vec<u8>) {
        sink.extend(PASSIVE_FUNCTIONS);
        self.0.encode(sink);
    }
}
