//! The executor on programs built by hand, without reader and lowering: what fragments, barriers and calls do.

use std::sync::Arc;

use super::interp::compile::{Compiled, Instr, Slot, What};
use super::{Cause, Executables, Launch, Services, run};
use crate::isa::lanes::Width;
use crate::isa::{Operation, decode};
use crate::memory::{AddressSpace, Kind as MemoryKind, Request};
use crate::program::{
    Address, BarrierOp, Body, Callee, Copy3, Element, Function, Guard, Initial, Op, Ordering, Space, Special, Value,
};
use crate::ptx::Source;

struct Silent;

impl Services for Silent {
    fn malloc(&self, _bytes: u64) -> u64 {
        0
    }
    fn free(&self, _address: u64) -> bool {
        false
    }
    fn print(&self, _bytes: &[u8]) {}
    fn assert_failed(&self, _line: &str) {}
    fn set_conditional(&self, _: u64, _: u32) -> bool {
        false
    }
}

const P: Slot = Slot {
    offset: 0,
    width: Width::Pred,
};

/// The n-th 32-bit slot behind the predicates.
fn r(n: u32) -> Slot {
    Slot {
        offset: 64 + n * 128,
        width: Width::B32,
    }
}

/// The n-th 64-bit slot, behind sixteen 32-bit ones.
fn d(n: u32) -> Slot {
    Slot {
        offset: 64 + 16 * 128 + n * 256,
        width: Width::B64,
    }
}

fn instr(op: Op<Slot>) -> Instr {
    Instr {
        guard: None,
        what: What::Op(op),
        span: Default::default(),
        inlined: 0,
    }
}

fn jump(target: u32) -> Instr {
    Instr {
        guard: None,
        what: What::Branch {
            target,
            waits: false,
            block: 0,
        },
        span: Default::default(),
        inlined: 0,
    }
}

fn guarded(reg: Slot, negated: bool, instr: Instr) -> Instr {
    Instr {
        guard: Some(Guard { reg, negated }),
        ..instr
    }
}

fn lane(opcode: &str, dst: &[Slot], src: &[Slot]) -> Instr {
    let Operation::Compute(op) = decode(opcode).expect("the table has it").op else {
        panic!("{opcode} is not lane-wise")
    };
    instr(Op::Compute {
        op,
        dst: dst.iter().copied().collect(),
        src: src.iter().copied().collect(),
    })
}

fn constant(slot: Slot, value: u128) -> (Slot, Initial) {
    (slot, Initial::Constant(value))
}

/// A function as its code, with slots: only what is asked of a function besides is made.
fn function(name: &str, initial: Vec<(Slot, Initial)>, code: Vec<Instr>) -> Compiled {
    with(name, initial, code, |_| {})
}

fn with(name: &str, initial: Vec<(Slot, Initial)>, code: Vec<Instr>, change: impl FnOnce(&mut Function)) -> Compiled {
    let mut function = Function {
        name: name.into(),
        body: Body::default(),
        local: 0,
        local_align: 16,
        return_bytes: 0,
        param_bytes: 0,
        shared: Vec::new(),
        shared_bytes: 0,
        dynamic_shared: 0,
        own_shared: 0,
        reserved_shared: None,
        callees: Vec::new(),
        calls_indirectly: false,
        instructions: Vec::new(),
        source: Arc::new(Source {
            tiles: None,
            name: "test".into(),
            text: "".into(),
        }),
    };
    change(&mut function);
    Compiled {
        function: Arc::new(function),
        code,
        window: 64 + 16 * 128 + 8 * 256,
        initial,
        prologue: Vec::new(),
        affine: None,
        starts: Vec::new(),
        slots: Vec::new(),
        ways: Default::default(),
    }
}

fn global(register: Slot) -> Address<Slot> {
    Address {
        space: Space::Global,
        register: Some(register),
        offset: 0,
    }
}

const U32: Element = Element {
    bytes: 4,
    signed: false,
};

fn store(address: Address<Slot>, value: Slot) -> Instr {
    instr(Op::Store {
        address,
        element: U32,
        ordering: Ordering::Weak,
        scope: None,
        src: Box::new([value]),
    })
}

fn launch(functions: Vec<Compiled>, grid: u32, block: u32) -> Launch {
    Launch {
        code: Arc::new(Executables::of(functions)),
        kernel: 0,
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        cluster: None,
        dynamic_shared: 0,
        params: Box::new([]),
        cooperative: false,
        workspace: 0,
        grid_id: 1,
        device: 0,
        multiprocessors: 16,
        tensor: Default::default(),
        stack_limit: 1024,
        timeout: None,
        seed: None,
        is_checked: true.into(),
        services: Arc::new(Silent),
        references: Arc::default(),
        family: super::Family::default(),
    }
}

fn buffer(bytes: u64) -> u64 {
    AddressSpace::get()
        .allocate(&Request::new(MemoryKind::Device, bytes))
        .expect("there is room")
        .start
}

fn read(address: u64, n: usize) -> Vec<u32> {
    // SAFETY: the buffer was allocated with at least this many words, and the kernel has ended.
    unsafe { std::slice::from_raw_parts(address as *const u32, n).to_vec() }
}

/// `out[global thread] = r(value)`, given tid in r0, ctaid in r1, ntid in r2; r14 and d0, d1 are scratch.
fn store_by_thread(value: Slot) -> Vec<Instr> {
    vec![
        lane("mad.lo.u32", &[r(14)], &[r(1), r(2), r(0)]),
        lane("mul.wide.u32", &[d(0)], &[r(14), r(13)]),
        lane("add.u64", &[d(0)], &[d(0), d(1)]),
        store(global(d(0)), value),
    ]
}

fn common(out: u64) -> Vec<(Slot, Initial)> {
    vec![
        (r(0), Initial::Special(Special::Tid(0))),
        (r(1), Initial::Special(Special::Ctaid(0))),
        (r(2), Initial::Special(Special::Ntid(0))),
        constant(r(13), 4),
        constant(d(1), u128::from(out)),
    ]
}

#[test]
fn lanes_that_loop_for_different_times_meet_again() {
    // acc = 0; x = tid; while (x != 0) { x -= 1; acc += 3 }; out = acc
    for (grid, block) in [(1, 1), (3, 32), (2, 100), (5, 128), (2, 256), (1, 1024)] {
        let out = buffer(u64::from(grid * block) * 4);
        let mut code = vec![
            lane("mul.lo.u32", &[r(3)], &[r(0), r(4)]),
            lane("mul.lo.u32", &[r(5)], &[r(0), r(6)]),
            // 2: head
            lane("setp.eq.u32", &[P], &[r(3), r(6)]),
            guarded(P, false, jump(7)),
            lane("sub.u32", &[r(3)], &[r(3), r(4)]),
            lane("add.u32", &[r(5)], &[r(5), r(7)]),
            jump(2),
            // 7: everybody of the warp must be here again
            instr(Op::Activemask { dst: r(8) }),
        ];
        code.extend(store_by_thread(r(5)));
        code.push(instr(Op::Return));
        let mut initial = common(out);
        initial.extend([constant(r(4), 1), constant(r(6), 0), constant(r(7), 3)]);
        run(Arc::new(launch(vec![function("loops", initial, code)], grid, block))).expect("no fault");
        let expected: Vec<u32> = (0..grid * block).map(|i| i % block * 3).collect();
        assert_eq!(
            read(out, (grid * block) as usize),
            expected,
            "grid {grid}, block {block}"
        );
    }
}

#[test]
fn reconvergence_is_complete() {
    let out = buffer(128 * 4);
    let mut code = vec![
        lane("setp.lt.u32", &[P], &[r(0), r(4)]),
        guarded(P, false, jump(4)),
        lane("add.u32", &[r(5)], &[r(0), r(4)]),
        jump(5),
        lane("sub.u32", &[r(5)], &[r(0), r(4)]),
        instr(Op::Activemask { dst: r(8) }),
    ];
    code.extend(store_by_thread(r(8)));
    code.push(instr(Op::Exit));
    let mut initial = common(out);
    initial.push(constant(r(4), 40));
    run(Arc::new(launch(vec![function("masks", initial, code)], 1, 100))).expect("no fault");
    let expected: Vec<u32> = (0..100).map(|i| if i < 96 { u32::MAX } else { 0xf }).collect();
    assert_eq!(read(out, 100), expected);
}

#[test]
fn barriers_order_shared_memory() {
    // shared[tid] = tid; barrier; out = shared[ntid - 1 - tid]
    let out = buffer(1024 * 4);
    let shared = |register| Address {
        space: Space::Shared,
        register: Some(register),
        offset: 0,
    };
    let barrier: Op<Slot> = Op::Barrier {
        op: BarrierOp::Sync,
        aligned: true,
        id: Value::Immediate(0),
        threads: None,
        dst: None,
        pred: None,
    };
    let mut code = vec![
        lane("mul.lo.u32", &[r(3)], &[r(0), r(13)]),
        instr(Op::Store {
            address: shared(r(3)),
            element: U32,
            ordering: Ordering::Weak,
            scope: None,
            src: Box::new([r(0)]),
        }),
        instr(barrier),
        lane("sub.u32", &[r(5)], &[r(2), r(0)]),
        lane("mad.lo.u32", &[r(5)], &[r(5), r(13), r(6)]),
        instr(Op::Load {
            address: shared(r(5)),
            element: U32,
            ordering: Ordering::Weak,
            scope: None,
            dst: Box::new([Some(r(7))]),
        }),
    ];
    code.extend(store_by_thread(r(7)));
    code.push(instr(Op::Return));
    let mut initial = common(out);
    initial.push(constant(r(6), (-4i32) as u32 as u128));
    let f = with("reverse", initial, code, |f| f.shared_bytes = 4096);
    run(Arc::new(launch(vec![f], 1, 1024))).expect("no fault");
    assert_eq!(read(out, 1024), (0..1024).rev().collect::<Vec<u32>>());
}

#[test]
fn divergent_recursion_keeps_frames_apart() {
    // f(x) = x == 0 ? 0 : x + f(x - 1), called with x = tid by every other thread.
    let out = buffer(64 * 4);
    let param = |offset| Address {
        space: Space::Local,
        register: None,
        offset,
    };
    let load = |offset, to| {
        instr(Op::Load {
            address: param(offset),
            element: U32,
            ordering: Ordering::Weak,
            scope: None,
            dst: Box::new([Some(to)]),
        })
    };
    let save = |offset, from| {
        instr(Op::Store {
            address: param(offset),
            element: U32,
            ordering: Ordering::Weak,
            scope: None,
            src: Box::new([from]),
        })
    };
    let call = || Op::Call {
        callee: Callee::Direct(1),
        args: Box::new([Copy3 {
            from: 16,
            to: 4,
            bytes: 4,
        }]),
        results: Box::new([Copy3 {
            from: 0,
            to: 20,
            bytes: 4,
        }]),
    };
    let mut kernel = vec![
        lane("and.b32", &[r(3)], &[r(0), r(4)]),
        lane("setp.eq.u32", &[P], &[r(3), r(4)]),
        lane("mul.lo.u32", &[r(5)], &[r(0), r(6)]),
        guarded(P, true, jump(7)),
        save(16, r(0)),
        instr(call()),
        load(20, r(5)),
    ];
    kernel.extend(store_by_thread(r(5)));
    kernel.push(instr(Op::Return));
    let mut initial = common(out);
    initial.extend([constant(r(4), 1), constant(r(6), 0)]);
    let kernel = with("kernel", initial, kernel, |f| (f.local, f.callees) = (32, vec![1]));
    let callee = vec![
        load(4, r(0)),
        lane("setp.eq.u32", &[P], &[r(0), r(6)]),
        lane("add.u32", &[r(5)], &[r(0), r(6)]),
        guarded(P, false, jump(9)),
        lane("sub.u32", &[r(3)], &[r(0), r(4)]),
        save(16, r(3)),
        instr(call()),
        load(20, r(5)),
        lane("add.u32", &[r(5)], &[r(5), r(0)]),
        save(0, r(5)),
        instr(Op::Return),
    ];
    let initial = vec![constant(r(4), 1), constant(r(6), 0)];
    let callee = with("f", initial, callee, |f| {
        (f.local, f.return_bytes, f.param_bytes, f.callees) = (32, 4, 4, vec![1]);
    });
    let stack = Launch {
        stack_limit: 4096,
        ..launch(vec![kernel, callee], 1, 64)
    };
    let functions: Vec<_> = (0..2)
        .map(|index| Arc::downgrade(&stack.code.module.prepare(index).expect("built by hand")))
        .collect();
    run(Arc::new(stack)).expect("no fault");
    // What ran, and called itself, goes with its module.
    assert!(functions.iter().all(|f| f.upgrade().is_none()));
    let expected: Vec<u32> = (0..64).map(|x| if x % 2 == 1 { x * (x + 1) / 2 } else { 0 }).collect();
    assert_eq!(read(out, 64), expected);
}

#[test]
fn a_spinning_lane_lets_its_neighbour_come() {
    // Lane 0 waits (at a lower pc) for a flag that lane 1 sets.
    let out = buffer(4096);
    let code = vec![
        lane("setp.eq.u32", &[P], &[r(0), r(6)]),
        guarded(P, true, jump(5)),
        // 2: spin
        instr(Op::Load {
            address: global(d(1)),
            element: U32,
            ordering: Ordering::Volatile,
            scope: None,
            dst: Box::new([Some(r(3))]),
        }),
        lane("setp.eq.u32", &[P], &[r(3), r(6)]),
        guarded(P, false, jump(2)),
        store(global(d(1)), r(4)),
        instr(Op::Return),
    ];
    let mut initial = common(out);
    initial.extend([constant(r(4), 7), constant(r(6), 0)]);
    run(Arc::new(launch(vec![function("spin", initial, code)], 1, 2))).expect("no fault");
    assert_eq!(read(out, 1), [7]);
}

#[test]
fn a_stray_store_is_a_fault_with_a_place() {
    let out = buffer(4096);
    let mut initial = common(out);
    initial.push(constant(d(2), 0x1000));
    let code = vec![
        lane("setp.eq.u32", &[P], &[r(0), r(4)]),
        guarded(P, false, store(global(d(2)), r(0))),
        instr(Op::Return),
    ];
    initial.push(constant(r(4), 37));
    let fault =
        run(Arc::new(launch(vec![function("stray", initial, code)], 2, 64))).expect_err("address 4096 is nobody's");
    assert_eq!(
        fault.cause,
        Cause::IllegalAddress {
            address: 0x1000,
            bytes: 4,
            write: true,
            space: Space::Global,
        }
    );
    assert_eq!(fault.thread, [37, 0, 0]);
}

#[test]
fn waiting_for_nobody_is_a_deadlock() {
    let barrier: Op<Slot> = Op::Barrier {
        op: BarrierOp::Sync,
        aligned: true,
        id: Value::Immediate(1),
        threads: Some(Value::Immediate(128)),
        dst: None,
        pred: None,
    };
    let code = vec![instr(barrier), instr(Op::Return)];
    let fault = run(Arc::new(launch(vec![function("alone", vec![], code)], 1, 64))).expect_err("64 of 128 came");
    assert!(
        matches!(&fault.cause, Cause::Deadlock { why } if why.contains("128")),
        "{:?}",
        fault.cause
    );
}
