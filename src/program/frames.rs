//! The local memory that a chain of calls needs: known for every function whose call graph says so, and found once, when
//! the function is prepared. A launch reads it.

use super::function::Function;
use super::ir::Op;
use super::module::Module;

/// What the frames of a function and of all that it calls take of a lane's local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Bytes of the deepest chain of frames from the function on. `None` where recursion, an indirect call, or an
    /// `alloca` in something that it calls leaves that open.
    pub frames: Option<u64>,
    /// The function itself takes memory with `alloca`, beyond its frame.
    pub allocates: bool,
}

impl Stack {
    /// A function by itself, without its callees.
    fn own(function: &Function) -> Stack {
        Stack {
            frames: (!function.calls_indirectly).then_some(u64::from(function.local)),
            allocates: function.body.insts().any(|inst| matches!(inst.op, Op::Alloca { .. })),
        }
    }
}

/// A function on the way down the call graph.
struct Visit<'m> {
    number: u32,
    function: &'m Function,
    stack: Stack,
    /// Bytes of the deepest chain below it so far.
    deepest: u64,
    /// Which of its callees is next.
    next: usize,
}

/// Finds the stacks of `root` and of all that it calls directly: each function is visited once, with a stack of our own,
/// for chains may be as long as a text makes them.
///
/// A function that meets one which is still open closes a circle, and all on the circle are open below the first of it
/// that was entered: none of them is known, nor is what calls them.
pub(super) fn find(module: &Module, root: u32) -> Option<Stack> {
    let enter = |number: u32| -> Option<Visit<'_>> {
        let function = module.functions.get(number as usize)?.lowered.get()?.as_ref().ok()?;
        Some(Visit {
            number,
            function,
            stack: Stack::own(function),
            deepest: 0,
            next: 0,
        })
    };
    let mut open = vec![false; module.functions.len()];
    let mut path = Vec::new();
    if module.functions.get(root as usize)?.stack.get().is_none() {
        path.push(enter(root)?);
        open[root as usize] = true;
    }
    while let Some(visit) = path.last_mut() {
        let Some(&callee) = visit.function.callees.get(visit.next) else {
            let stack = Stack {
                frames: visit.stack.frames.map(|own| own + visit.deepest),
                ..visit.stack
            };
            open[visit.number as usize] = false;
            let _ = module.functions[visit.number as usize].stack.set(stack);
            path.pop();
            continue;
        };
        let entry = module.functions.get(callee as usize);
        match entry.and_then(|entry| entry.stack.get()) {
            Some(below) => {
                visit.next += 1;
                let align = entry.and_then(|entry| entry.lowered.get()?.as_ref().ok());
                let align = align.map_or(16, |callee| u64::from(callee.local_align.max(16)));
                match below.frames {
                    Some(frames) if !below.allocates => visit.deepest = visit.deepest.max(frames + align),
                    _ => visit.stack.frames = None,
                }
            }
            None if open.get(callee as usize) == Some(&false) => match enter(callee) {
                Some(below) => {
                    open[callee as usize] = true;
                    path.push(below);
                }
                // Not lowered: nothing is known of it.
                None => {
                    visit.stack.frames = None;
                    visit.next += 1;
                }
            },
            // It is open: a circle.
            None => {
                visit.stack.frames = None;
                visit.next += 1;
            }
        }
    }
    module.functions[root as usize].stack.get().copied()
}
