//! Removes the data segments from CPython. The image stores their contents as pages, which an
//! instance need not copy.

use wasm_encoder::{Module, RawSection, SectionId};
use wasmparser::{BinaryReaderError, DataKind, Parser, Payload};

use super::constant;

/// The memory ends with a whole WebAssembly page, and therefore with a whole page of any system.
const PAGE: usize = 1 << 16;

/// CPython without data segments.
pub(super) struct Taken {
    pub(super) wasm: Vec<u8>,
    /// The contents that they would write to the memory, from its beginning on.
    pub(super) memory: Vec<u8>,
}

/// Removes the data segments. Returns `None` if one of them does not have a constant position in
/// the only memory.
pub(super) fn take_out(wasm: &[u8]) -> Result<Option<Taken>, BinaryReaderError> {
    let (mut module, mut memory) = (Module::new(), Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        if let Payload::DataSection(segments) = &payload {
            for segment in segments.clone() {
                let segment = segment?;
                let Some(start) = place(&segment.kind) else { return Ok(None) };
                let end = start + segment.data.len();
                if memory.len() < end {
                    memory.resize(end.next_multiple_of(PAGE), 0);
                }
                memory[start..end].copy_from_slice(segment.data);
            }
        }
        if let Some((id, range)) = payload.as_section() {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            let data = wasm.get(at(range.start)..at(range.end)).unwrap_or_default();
            if ![SectionId::Data as u8, SectionId::DataCount as u8].contains(&id) {
                module.section(&RawSection { id, data });
            }
        }
    }
    Ok(Some(Taken { wasm: module.finish(), memory }))
}

fn place(kind: &DataKind<'_>) -> Option<usize> {
    match kind {
        DataKind::Active { memory_index: 0, offset_expr } => {
            usize::try_from(constant(offset_expr)?.cast_unsigned()).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        ConstExpr, DataCountSection, DataSection, ExportKind, ExportSection, MemorySection,
        MemoryType,
    };

    use super::*;

    fn module(data: &DataSection, count: u32) -> Vec<u8> {
        let mut memories = MemorySection::new();
        let (minimum, maximum) = (2, None);
        memories.memory(MemoryType {
            minimum,
            maximum,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        let mut module = Module::new();
        let module = module.section(&memories).section(&exports);
        module.section(&DataCountSection { count }).section(data).clone().finish()
    }

    #[test]
    fn what_segments_hold_is_in_the_memory_and_nothing_else_is_gone() {
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(2), *b"first");
        data.active(0, &ConstExpr::i32_const(65534), *b"over");
        data.active(0, &ConstExpr::i32_const(4), *b"R");
        let Taken { wasm, memory } = take_out(&module(&data, 3)).unwrap().unwrap();
        assert_eq!((memory.len(), &memory[..8]), (2 * PAGE, &b"\0\0fiRst\0"[..]));
        assert_eq!(memory[65534..65539], *b"over\0");
        let sections = Parser::new(0).parse_all(&wasm);
        let ids: Vec<u8> =
            sections.filter_map(|part| Some(part.unwrap().as_section()?.0)).collect();
        assert_eq!(ids, [SectionId::Memory as u8, SectionId::Export as u8]);
    }

    #[test]
    fn segments_without_a_place_of_their_own_stay() {
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(2), *b"first");
        data.passive(*b"second");
        assert!(take_out(&module(&data, 2)).unwrap().is_none());
    }
}
