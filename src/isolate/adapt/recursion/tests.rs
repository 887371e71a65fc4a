//! Tests of the changes to a small module that has all the named functions.

use wasm_encoder::{
    ConstExpr, DataSection, ExportKind, ExportSection, FunctionSection, GlobalSection, GlobalType,
    TypeSection,
};

use super::*;

const STACK: i32 = 10_000_000;

/// Functions that are called in circles: through a table, with -1 as a result; by themselves; by
/// themselves, with the result compared to 0. The last one is in no circle.
const CIRCLES: [&str; 4] = ["table", "itself", "number", "none"];

/// Makes a module with a function for each name, and one more that calls the first of them and
/// returns from within a block.
fn module(left_out: &str) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let names = CHECKS.iter().chain(&COSTS).map(|(name, _)| *name).chain([THREAD, SET_LIMITS]);
    let names = names.chain(LEFT_OUT).chain(CIRCLES).chain(["caller"]);
    let names: Vec<_> = names.filter(|name| *name != left_out).collect();
    let (mut functions, mut exports, mut code) =
        (FunctionSection::new(), ExportSection::new(), CodeSection::new());
    for (index, name) in (0..).zip(&names) {
        functions.function(0);
        exports.export(name, ExportKind::Func, index);
        let mut body = Function::new([]);
        match *name {
            SET_LIMITS => {
                for offset in [748, 708, 752, 712, 716] {
                    let target = MemArgTarget::Memory(0);
                    let place = MemArg { offset, align: 2, target, ordering: None };
                    body.instruction(&Instruction::I32Store(place));
                }
            }
            FREE => {
                body.instruction(&Instruction::I32Const(MARGIN_SHIFTS.0));
            }
            "table" => {
                body.instruction(&Instruction::I32Const(1))
                    .instruction(&Instruction::I32Const(1))
                    .instruction(&Instruction::CallIndirect { type_index: 0, table_index: 0 })
                    .instruction(&Instruction::Drop)
                    .instruction(&Instruction::I32Const(-1));
            }
            "itself" => {
                body.instruction(&Instruction::I32Const(1)).instruction(&Instruction::Call(index));
            }
            "number" => {
                body.instruction(&Instruction::I32Const(1))
                    .instruction(&Instruction::Call(index))
                    .instruction(&Instruction::I32Const(0))
                    .instruction(&Instruction::I32LtS);
            }
            name if name == LEFT_OUT[0] => {
                body.instruction(&Instruction::I32Const(1))
                    .instruction(&Instruction::CallIndirect { type_index: 0, table_index: 0 });
            }
            "caller" => {
                body.instruction(&Instruction::Block(BlockType::Empty))
                    .instruction(&Instruction::Call(0))
                    .instruction(&Instruction::Call(3))
                    .instruction(&Instruction::Return)
                    .instruction(&Instruction::End)
                    .instruction(&Instruction::Unreachable);
            }
            _ => {
                body.instruction(&Instruction::LocalGet(0));
            }
        }
        code.function(body.instruction(&Instruction::End));
    }
    let mut globals = GlobalSection::new();
    let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
    globals.global(kind, &ConstExpr::i32_const(STACK));
    exports.export(STACK_POINTER, ExportKind::Global, 0);
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(1000), [b"other", WHERE].concat());
    let mut module = Module::new();
    let module = module.section(&types).section(&functions).section(&globals);
    module.section(&exports).section(&code).section(&data).clone().finish()
}

fn bodies(wasm: &[u8]) -> Vec<Vec<String>> {
    let bodies = Parser::new(0).parse_all(wasm).filter_map(|payload| match payload.unwrap() {
        Payload::CodeSectionEntry(body) => Some(body.get_operators_reader().unwrap()),
        _ => None,
    });
    let text = |operators: wasmparser::OperatorsReader<'_>| {
        operators.into_iter().map(|operator| format!("{:?}", operator.unwrap())).collect()
    };
    bodies.map(text).collect()
}

#[test]
fn who_looks_at_the_stack_takes_of_it_and_gives_it_back_however_it_returns() {
    let wasm = charge(&module("")).unwrap().unwrap();
    let (before, bodies) = (bodies(&module("")), bodies(&wasm));
    assert_eq!(bodies.len(), before.len());
    let caller = bodies.last().unwrap().join(" ");
    let cost = CHECKS[0].1;
    let expected = format!(
        "GlobalGet {{ global_index: 0 }} I32Const {{ value: {cost} }} I32Sub \
         GlobalSet {{ global_index: 0 }} Block {{ blockty: Type(I32) }} Block {{ blockty: Empty }} \
         Call {{ function_index: 0 }} Call {{ function_index: 3 }} Br {{ relative_depth: 1 }} End \
         Unreachable End \
         GlobalGet {{ global_index: 0 }} I32Const {{ value: {cost} }} I32Add \
         GlobalSet {{ global_index: 0 }} End"
    );
    assert_eq!(caller, expected);
    // The checking functions themselves are unchanged.
    assert_eq!(bodies[0], before[0]);
}

#[test]
fn the_limits_are_set_where_they_were() {
    let wasm = charge(&module("")).unwrap().unwrap();
    let bodies = bodies(&wasm);
    let set =
        bodies.iter().map(|body| body.join(" ")).find(|body| body.contains("I32Store")).unwrap();
    let soft = STACK - STACK_BYTES + MARGIN_BYTES;
    let stored = format!(
        "I32Const {{ value: {soft} }} I32Store {{ \
         memarg: MemArg {{ align: 2, max_align: 2, offset: 712"
    );
    assert!(set.contains(&stored), "{set}");
    let free = bodies.iter().find(|body| body.join(" ").contains("I32Const { value: 16 }"));
    assert!(free.is_some());
}

#[test]
fn a_module_without_one_of_the_functions_is_not_changed() {
    for name in [CHECKS[0].0, COSTS[0].0, THREAD, SET_LIMITS, LEFT_OUT[0]] {
        assert!(charge(&module(name)).unwrap().is_none(), "{name}");
    }
}

#[test]
fn who_is_called_in_a_circle_fails_where_the_stack_ends() {
    let (wasm, before) = (charge(&module("")).unwrap().unwrap(), bodies(&module("")));
    let bodies = bodies(&wasm);
    let first = bodies.len() - 1 - CIRCLES.len();
    for (at, failure) in [(first, -1), (first + 1, 0), (first + 2, -1)] {
        let limit = STACK - STACK_BYTES - GUARD_BYTES;
        let guard = format!(
            "Block {{ blockty: Type(I32) }} GlobalGet {{ global_index: 0 }} \
             I32Const {{ value: {limit} }} I32LtU If {{ blockty: Empty }} \
             Call {{ function_index: 7 }} I32Const {{ value: 1005 }} Call {{ function_index: 1 }} \
             If {{ blockty: Empty }} I32Const {{ value: {failure} }} \
             Br {{ relative_depth: 2 }} End End {}",
            before[at][..before[at].len() - 1].join(" ")
        );
        let body = bodies[at].join(" ");
        assert!(body.contains(&guard), "{}: {body}", CIRCLES[at - first]);
    }
    assert_eq!(bodies[first + 3], before[first + 3]);
    // An allocator's failure would be mistaken for exhausted memory.
    let allocator = first - LEFT_OUT.len();
    assert_eq!(bodies[allocator], before[allocator]);
}
