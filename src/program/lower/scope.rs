//! Names inside a body: registers (`%r<100>` without a hundred names), variables of the frame, labels, prototypes.
//! Scopes nest as braces do; the innermost declaration wins (PTX ISA, Identifiers; Parameterized Variable Names).

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::lanes::Width;
use crate::program::ir::{BlockId, Register};
use crate::program::layout::Place;
use crate::ptx::ast::{CallPrototype, Type};

/// What a name stands for.
#[derive(Clone)]
pub enum Binding {
    Register {
        register: Register,
        ty: Type,
    },
    /// A `.v2`/`.v4` register: its elements.
    Vector {
        elements: Arc<[Register]>,
        ty: Type,
    },
    /// Bytes of the running frame: `.local` variables, `.param` variables of device functions and of calls.
    Frame {
        place: Place,
        ty: Type,
    },
    /// A register of file scope that functions share (PTX 1.x): bytes at the start of the lane's window.
    Persistent {
        place: Place,
        ty: Type,
    },
    /// A kernel's parameter, by its place in the parameter block.
    KernelParam {
        place: Place,
        ty: Type,
    },
    /// A shared variable of the body, by index in the module.
    Shared {
        index: u32,
        ty: Type,
    },
    /// A `.global` or `.const` variable of the body, by index in the module.
    Global {
        index: u32,
        ty: Type,
    },
    Label(BlockId),
    Prototype(Arc<CallPrototype>),
    CallTargets(Arc<[Arc<str>]>),
    BranchTargets(Arc<[BlockId]>),
}

struct Range {
    count: u32,
    ty: Type,
    vector: u8,
    width: Width,
}

#[derive(Default)]
struct Scope {
    names: HashMap<Arc<str>, Binding>,
    ranges: HashMap<Arc<str>, Range>,
    /// Where the frame's allocation stood when the scope was entered.
    frame: u32,
}

impl Scope {
    /// The range that declares a name. `%p1<4>` may declare `%p10`: every split into prefix and number without leading
    /// zeros counts.
    fn range_of(&self, name: &str) -> Option<&Range> {
        if self.ranges.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        (1..=digits.min(9)).find_map(|length| {
            let (prefix, number) = name.split_at(name.len() - length);
            if number.len() > 1 && number.starts_with('0') {
                return None;
            }
            let range = self.ranges.get(prefix)?;
            number.parse::<u32>().is_ok_and(|n| n < range.count).then_some(range)
        })
    }
}

/// The open scopes, innermost last.
#[derive(Default)]
pub struct Scopes {
    stack: Vec<Scope>,
}

/// What a range gives when one of its names is used for the first time.
pub struct Fresh {
    pub ty: Type,
    pub vector: u8,
    pub width: Width,
}

pub enum Found<'a> {
    Bound(&'a Binding),
    /// Declared by a range, not used before: bind it in that scope with [`Scopes::bind_at`].
    Fresh(usize, Fresh),
    Nothing,
}

impl Scopes {
    pub fn enter(&mut self, frame: u32) {
        self.stack.push(Scope {
            frame,
            ..Scope::default()
        });
    }

    /// Leaves the innermost scope; what the frame's allocation was before it.
    pub fn leave(&mut self) -> u32 {
        self.stack.pop().map_or(0, |scope| scope.frame)
    }

    /// Binds a name in the innermost scope; false if the scope has it already.
    pub fn bind(&mut self, name: Arc<str>, binding: Binding) -> bool {
        let Some(scope) = self.stack.last_mut() else {
            return false;
        };
        let in_range = !matches!(binding, Binding::Label(_)) && scope.range_of(&name).is_some();
        scope.names.insert(name, binding).is_none() && !in_range
    }

    pub fn bind_at(&mut self, depth: usize, name: Arc<str>, binding: Binding) {
        self.stack[depth].names.insert(name, binding);
    }

    /// Declares `prefix0` … `prefix(count-1)`.
    pub fn range(&mut self, prefix: Arc<str>, count: u32, ty: Type, vector: u8, width: Width) {
        if let Some(scope) = self.stack.last_mut() {
            scope.ranges.insert(
                prefix,
                Range {
                    count,
                    ty,
                    vector,
                    width,
                },
            );
        }
    }

    pub fn find(&self, name: &str) -> Found<'_> {
        for (depth, scope) in self.stack.iter().enumerate().rev() {
            if let Some(binding) = scope.names.get(name) {
                return Found::Bound(binding);
            }
            if let Some(&Range { ty, vector, width, .. }) = scope.range_of(name) {
                return Found::Fresh(depth, Fresh { ty, vector, width });
            }
        }
        Found::Nothing
    }
}
