//! The parts of a WebAssembly module that a patch needs to know: functions, and where they are.

use std::ops::Range;

use wasmparser::{Encoding, Parser, Payload, TypeRef};

use super::signature::Change;

/// The bytes before the first section.
const HEADER_BYTES: usize = 8;

/// The number of the section of code.
const CODE: u8 = 10;

/// The most functions of a module. One that is empty takes a byte.
const MAX_FUNCTIONS: usize = 100_000;

/// A module as it is in a file.
#[derive(Debug)]
pub(crate) struct Module<'a> {
    bytes: &'a [u8],
    /// The names of imported functions, which come first among all.
    imports: Vec<String>,
    /// Where the section of code is, without its length.
    code: Range<usize>,
    /// Where its length is.
    code_length: Range<usize>,
    /// Where each function is in it, without its length.
    functions: Vec<Range<usize>>,
}

impl<'a> Module<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let mut module = Self {
            bytes,
            imports: Vec::new(),
            code: 0..0,
            code_length: 0..0,
            functions: Vec::new(),
        };
        let mut end = HEADER_BYTES;
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload.map_err(|error| error.to_string())?;
            match &payload {
                Payload::Version { encoding, .. } if *encoding != Encoding::Module => {
                    return Err("it is a component, and no module".to_owned());
                }
                Payload::ImportSection(section) => {
                    for import in section.clone().into_imports() {
                        let import = import.map_err(|error| error.to_string())?;
                        if matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)) {
                            module.imports.push(import.name.to_owned());
                            module.check_functions()?;
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    module.functions.push(place(&body.range()));
                    module.check_functions()?;
                }
                _ => {}
            }
            if let Some((section, range)) = payload.as_section() {
                let range = place(&range);
                if section == CODE {
                    // A section begins with one byte that says which it is.
                    module.code_length = end + 1..range.start;
                    module.code = range.clone();
                }
                end = range.end;
            }
        }
        Ok(module)
    }

    fn check_functions(&self) -> Result<(), String> {
        if self.imports.len() + self.functions.len() > MAX_FUNCTIONS {
            return Err(format!("limit {MAX_FUNCTIONS} functions, has more"));
        }
        Ok(())
    }

    pub(crate) fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Returns the number of the function that contains this place.
    pub(crate) fn function_at(&self, place: usize) -> Option<u32> {
        let index = self.functions.iter().position(|function| function.contains(&place))?;
        u32::try_from(self.imports.len() + index).ok()
    }

    /// Returns the module with these changes, and with lengths that fit.
    ///
    /// # Errors
    ///
    /// Fails if changes overlap, or one outside of functions changes the length.
    pub(crate) fn with(&self, mut changes: Vec<Change>) -> Result<Vec<u8>, String> {
        changes.sort_by_key(|change| change.place.start);
        let misplaced =
            |change: &Change| format!("a change at {} is misplaced", change.place.start);
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for change in changes {
            let is_inside = self.code.contains(&change.place.start);
            if !is_inside && change.place.len() != change.bytes.len() {
                return Err(misplaced(&change));
            }
            if is_inside { &mut inside } else { &mut outside }.push(change);
        }
        let mut code = Vec::new();
        put_number(length(&self.functions)?, &mut code);
        let mut inside = inside.into_iter().peekable();
        for function in &self.functions {
            let (mut body, mut at) = (Vec::new(), function.start);
            while let Some(change) = inside.next_if(|change| change.place.start < function.end) {
                let before = self.bytes.get(at..change.place.start);
                body.extend_from_slice(before.ok_or_else(|| misplaced(&change))?);
                body.extend_from_slice(&change.bytes);
                at = change.place.end;
            }
            let rest = self.bytes.get(at..function.end);
            body.extend_from_slice(rest.ok_or("a change goes beyond its function")?);
            put_number(length(&body)?, &mut code);
            code.append(&mut body);
        }
        if let Some(change) = inside.next() {
            return Err(misplaced(&change));
        }
        let mut module = Vec::with_capacity(self.bytes.len() + code.len());
        // Without code, all of it is what follows the code.
        if !self.code_length.is_empty() {
            module.extend_from_slice(self.bytes.get(..self.code_length.start).unwrap_or_default());
            put_number(length(&code)?, &mut module);
            module.append(&mut code);
        }
        let moved = module.len();
        module.extend_from_slice(self.bytes.get(self.code.end..).unwrap_or_default());
        for change in outside {
            let start = match change.place.start {
                start if start >= self.code.end => moved + (start - self.code.end),
                start => start,
            };
            let bytes = module.get_mut(start..start + change.bytes.len());
            bytes.ok_or_else(|| misplaced(&change))?.copy_from_slice(&change.bytes);
        }
        Ok(module)
    }
}

/// Returns where something is in a module, which is in memory.
fn place(range: &Range<u64>) -> Range<usize> {
    let at = |at| usize::try_from(at).unwrap_or(usize::MAX);
    at(range.start)..at(range.end)
}

fn length<T>(of: &[T]) -> Result<u32, String> {
    u32::try_from(of.len()).map_err(|_| "it is too long".to_owned())
}

/// Returns the number that begins here, and where it ends. Of a signed one it is the bits.
pub(crate) fn number(bytes: &[u8], mut at: usize) -> Option<(u32, usize)> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((u32::try_from(value).ok()?, at));
        }
    }
    None
}

/// Writes a number in as few bytes as it takes.
pub(crate) fn put_number(mut number: u32, into: &mut Vec<u8>) {
    loop {
        let byte = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            into.push(byte);
            return;
        }
        into.push(byte | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with an imported function, two functions and eight bytes of data.
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\
        \x01\x04\x01\x60\0\0\
        \x02\x09\x01\x03env\x01f\0\0\
        \x03\x03\x02\0\0\
        \x05\x03\x01\0\x01\
        \x0a\x0a\x02\x04\0\x10\0\x0b\x03\0\x01\x0b\
        \x0b\x0e\x01\0\x41\0\x0b\x08datadata";

    fn change(place: Range<usize>, bytes: &[u8]) -> Change {
        Change { place, bytes: bytes.to_vec() }
    }

    #[test]
    fn lengths_fit_after_a_change_and_data_moves_with_it() {
        let module = Module::parse(MODULE).unwrap();
        assert_eq!(module.imports(), ["f"]);
        let nop = MODULE.windows(2).position(|bytes| bytes == [1, 0x0b]).unwrap();
        assert_eq!(module.function_at(nop), Some(2));
        let data = MODULE.len() - 8;
        let changes = vec![change(data..data + 4, b"atad"), change(nop..nop + 1, &[1; 200])];
        let longer = module.with(changes).unwrap();
        assert!(longer.ends_with(b"ataddata") && longer.len() > MODULE.len() + 199);
        let again = Module::parse(&longer).unwrap();
        assert_eq!(again.functions.len(), 2);
        assert_eq!(again.functions[1].len(), 202);
        assert_eq!(module.with(Vec::new()).unwrap(), MODULE);
    }

    #[test]
    fn a_module_without_code_has_its_data_changed_in_place() {
        const FUNCTIONS: [u8; 5] = [3, 3, 2, 0, 0];
        const MEMORY: [u8; 5] = [5, 3, 1, 0, 1];
        let functions = MODULE.windows(5).position(|bytes| bytes == FUNCTIONS).unwrap();
        let data = &MODULE[MODULE.len() - 16..];
        let without = [&MODULE[..functions], &MEMORY, data].concat();
        let module = Module::parse(&without).unwrap();
        assert_eq!(module.with(Vec::new()).unwrap(), without);
        let end = without.len();
        let changed = module.with(vec![change(end - 4..end, b"atad")]).unwrap();
        assert_eq!(changed, [&without[..end - 4], b"atad"].concat());
    }

    #[test]
    fn a_change_of_length_outside_of_functions_and_one_across_them_is_refused() {
        let module = Module::parse(MODULE).unwrap();
        assert!(module.with(vec![change(0..4, b"asm")]).is_err());
        let [first, second] = &module.functions[..] else { panic!("{module:?}") };
        assert!(module.with(vec![change(first.start..second.start, &[1])]).is_err());
        let twice = || change(first.start + 1..first.start + 3, &[1]);
        assert!(module.with(vec![twice(), twice()]).is_err());
        assert!(Module::parse(b"one two three").is_err());
        let told = Module::parse(b"\0asm\x0d\0\x01\0").unwrap_err();
        assert_eq!(told, "it is a component, and no module");
    }

    /// Makes a module of these sections, each of as many elements.
    fn of_sections(elements: usize, sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut module = MODULE[..HEADER_BYTES].to_vec();
        for (number, element) in sections {
            let mut section = Vec::new();
            put_number(u32::try_from(elements).unwrap(), &mut section);
            section.extend(element.repeat(elements));
            module.push(*number);
            put_number(u32::try_from(section.len()).unwrap(), &mut module);
            module.extend(section);
        }
        module
    }

    #[test]
    fn a_module_of_too_many_functions_is_refused() {
        const IMPORT: [u8; 4] = [0; 4];
        let import = |count| of_sections(count, &[(2, &IMPORT)]);
        assert_eq!(Module::parse(&import(MAX_FUNCTIONS)).unwrap().imports().len(), MAX_FUNCTIONS);
        let told = Module::parse(&import(MAX_FUNCTIONS + 1)).unwrap_err();
        assert_eq!(told, "limit 100000 functions, has more");
        let body = |count| of_sections(count, &[(3, &[0]), (CODE, &[2, 0, 0x0b])]);
        assert_eq!(Module::parse(&body(MAX_FUNCTIONS)).unwrap().functions.len(), MAX_FUNCTIONS);
        assert_eq!(Module::parse(&body(MAX_FUNCTIONS + 1)).unwrap_err(), told);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 127, 128, 300, 16_384, u32::MAX] {
            let mut bytes = Vec::new();
            put_number(value, &mut bytes);
            assert_eq!(number(&bytes, 0), Some((value, bytes.len())));
            assert_eq!(number(&bytes[..bytes.len() - 1], 0), None);
        }
    }
}
