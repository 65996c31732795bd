//! Every register that an operation names, in one place: what liveness, renaming, checking, printing and the tiers'
//! compilers walk over, and the change from one kind of register to another.

use super::op::*;
use super::shadow::ShadowOp;
use super::texture::{Detail, SurfaceAction, SurfaceOp, TextureOp};

/// How an operation touches a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Use,
    Def,
}

fn each<T>(list: impl IntoIterator<Item = T>, role: Role, f: &mut impl FnMut(T, Role)) {
    for reg in list {
        f(reg, role);
    }
}

macro_rules! value {
    ($value:expr, $f:ident) => {
        if let Value::Register(reg) = $value {
            $f(reg, Role::Use);
        }
    };
}

/// The walk over one operation, for shared and for unique access alike: `$op` is a reference of either kind, and so is
/// what `$f` gets; `$walk` is the method of textures and surfaces that goes with it. Uses come before definitions.
/// Every field is named, so that a new one is asked for.
macro_rules! walk {
    ($op:expr, $f:ident, $walk:ident) => {{
        use Role::{Def, Use};
        match $op {
            Op::Compute { op: _, src, dst } => {
                each(src, Use, $f);
                each(dst, Def, $f);
            }
            Op::Load {
                address:
                    Address {
                        space: _,
                        register,
                        offset: _,
                    },
                element: _,
                ordering: _,
                scope: _,
                dst,
            } => {
                each(register, Use, $f);
                each(dst.into_iter().flatten(), Def, $f);
            }
            Op::Store {
                address:
                    Address {
                        space: _,
                        register,
                        offset: _,
                    },
                element: _,
                ordering: _,
                scope: _,
                src,
            } => {
                each(register, Use, $f);
                each(src, Use, $f);
            }
            Op::Atomic {
                op: _,
                ty: _,
                in_memory: _,
                ordering: _,
                scope: _,
                address:
                    Address {
                        space: _,
                        register,
                        offset: _,
                    },
                dst,
                b,
                c,
            } => {
                each(register, Use, $f);
                each(b, Use, $f);
                each(c, Use, $f);
                each(dst.into_iter().flatten(), Def, $f);
            }
            Op::Call {
                callee,
                args: _,
                results: _,
            } => match callee {
                Callee::Direct(_) => {}
                Callee::Indirect {
                    address,
                    params: _,
                    returns: _,
                } => $f(address, Use),
            },
            Op::Barrier {
                op: _,
                aligned: _,
                id,
                threads,
                dst,
                pred,
            } => {
                value!(id, $f);
                if let Some(Value::Register(reg)) = threads {
                    $f(reg, Use);
                }
                if let Some((reg, _)) = pred {
                    $f(reg, Use);
                }
                each(dst, Def, $f);
            }
            Op::WarpBarrier { members } => value!(members, $f),
            Op::Shuffle {
                mode: _,
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
            } => {
                $f(a, Use);
                $f(b, Use);
                $f(c, Use);
                if let Some(Value::Register(reg)) = members {
                    $f(reg, Use);
                }
                $f(dst, Def);
                each(dst_pred, Def, $f);
            }
            Op::Vote {
                mode: _,
                dst,
                pred,
                members,
            } => {
                let (reg, _) = pred;
                $f(reg, Use);
                if let Some(Value::Register(reg)) = members {
                    $f(reg, Use);
                }
                $f(dst, Def);
            }
            Op::Match {
                all: _,
                dst,
                dst_pred,
                a,
                members,
            } => {
                $f(a, Use);
                value!(members, $f);
                $f(dst, Def);
                each(dst_pred, Def, $f);
            }
            Op::Redux { op: _, dst, a, members } => {
                $f(a, Use);
                value!(members, $f);
                $f(dst, Def);
            }
            Op::Elect { dst, dst_pred, members } => {
                value!(members, $f);
                each(dst, Def, $f);
                $f(dst_pred, Def);
            }
            Op::Activemask { dst }
            | Op::ReadSpecial { which: _, dst }
            | Op::FrameAddress { dst, offset: _ }
            | Op::StackSave { dst } => $f(dst, Def),
            Op::ConvertAddress {
                space: _,
                to_generic: _,
                dst,
                src,
            }
            | Op::IsSpace { space: _, dst, src }
            | Op::IsHandle { opaque: _, dst, src } => {
                $f(src, Use);
                $f(dst, Def);
            }
            Op::Within(within) => within.$walk($f),
            Op::Alloca { dst, size, align: _ } => {
                $f(size, Use);
                $f(dst, Def);
            }
            Op::StackRestore { src } => $f(src, Use),
            Op::CopyAsync {
                dst:
                    Address {
                        space: _,
                        register: dst,
                        offset: _,
                    },
                src:
                    Address {
                        space: _,
                        register: src,
                        offset: _,
                    },
                bytes: _,
                src_size,
                ignore,
            } => {
                each(dst, Use, $f);
                each(src, Use, $f);
                each(src_size, Use, $f);
                if let Some((reg, _)) = ignore {
                    $f(reg, Use);
                }
            }
            Op::Joint(op) => op.$walk($f),
            Op::Shadow(op) => op.$walk($f),
            Op::Texture(op) => op.$walk($f),
            Op::Surface(op) => op.$walk($f),
            Op::HandleQuery {
                handle,
                attribute: _,
                level,
                dst,
            } => {
                $f(handle, Use);
                each(level, Use, $f);
                $f(dst, Def);
            }
            Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Fence {
                ordering: _,
                scope: _,
                proxy: _,
            }
            | Op::CopyGroup(_)
            | Op::Nanosleep
            | Op::Syscall {
                which: _,
                args: _,
                results: _,
            } => {}
        }
    }};
}

macro_rules! walk_texture {
    ($op:expr, $f:ident) => {{
        use Role::{Def, Use};
        let TextureOp {
            texture,
            sampler,
            layer,
            at,
            detail,
            offset,
            compare,
            dst,
            dst_pred,
            geometry: _,
            floats: _,
            gather: _,
            components: _,
        } = $op;
        $f(texture, Use);
        each(sampler, Use, $f);
        each(layer, Use, $f);
        each(at, Use, $f);
        each(offset, Use, $f);
        each(compare, Use, $f);
        match detail {
            Detail::Base => {}
            Detail::Level(level) => $f(level, Use),
            Detail::Gradient(x, y) => {
                each(x, Use, $f);
                each(y, Use, $f);
            }
        }
        each(dst.into_iter().flatten(), Def, $f);
        each(dst_pred, Def, $f);
    }};
}

macro_rules! walk_surface {
    ($op:expr, $f:ident) => {{
        use Role::{Def, Use};
        let SurfaceOp {
            surface,
            layer,
            at,
            action,
            geometry: _,
            outside: _,
            formatted: _,
            bytes: _,
        } = $op;
        $f(surface, Use);
        each(layer, Use, $f);
        each(at, Use, $f);
        match action {
            SurfaceAction::Load(dst) => each(dst.into_iter().flatten(), Def, $f),
            SurfaceAction::Store(src) => each(src, Use, $f),
            SurfaceAction::Reduce {
                op: _,
                signed: _,
                value,
            } => $f(value, Use),
        }
    }};
}

macro_rules! walk_joint {
    ($op:expr, $f:ident) => {{
        use Role::{Def, Use};
        let JointOp {
            what: _,
            addresses,
            src,
            dst,
            objects,
        } = $op;
        for Object { base, what: _ } in objects.into_iter().flatten() {
            $f(base, Use);
        }
        for Address {
            space: _,
            register,
            offset: _,
        } in addresses
        {
            each(register, Use, $f);
        }
        each(src, Use, $f);
        each(dst.into_iter().flatten(), Def, $f);
    }};
}

macro_rules! walk_within {
    ($op:expr, $f:ident) => {{
        let Within {
            space: _,
            register,
            from,
            accesses: _,
        } = $op;
        $f(register, Role::Use);
        match from {
            MadeFrom::Shared { base, bytes: _ } | MadeFrom::Pointer { base, parameter: _ } => $f(base, Role::Use),
            MadeFrom::Block { base, size } => {
                $f(base, Role::Use);
                $f(size, Role::Use);
            }
            MadeFrom::Frame { offset: _, bytes: _ }
            | MadeFrom::Parameter { offset: _, bytes: _ }
            | MadeFrom::Unknown => {}
        }
    }};
}

impl<R> Within<R> {
    fn regs<'a>(&'a self, f: &mut impl FnMut(&'a R, Role)) {
        walk_within!(self, f);
    }
    fn regs_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut R, Role)) {
        walk_within!(self, f);
    }
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> Within<S> {
        Within {
            space: self.space,
            register: f(self.register),
            accesses: self.accesses,
            from: match self.from {
                MadeFrom::Shared { base, bytes } => MadeFrom::Shared { base: f(base), bytes },
                MadeFrom::Pointer { base, parameter } => MadeFrom::Pointer {
                    base: f(base),
                    parameter,
                },
                MadeFrom::Block { base, size } => MadeFrom::Block {
                    base: f(base),
                    size: f(size),
                },
                MadeFrom::Frame { offset, bytes } => MadeFrom::Frame { offset, bytes },
                MadeFrom::Parameter { offset, bytes } => MadeFrom::Parameter { offset, bytes },
                MadeFrom::Unknown => MadeFrom::Unknown,
            },
        }
    }
}

macro_rules! walk_shadow {
    ($op:expr, $f:ident) => {{
        use Role::{Def, Use};
        let ShadowOp {
            what: _,
            address,
            src,
            values,
            dst,
        } = $op;
        if let Some(Address {
            space: _,
            register,
            offset: _,
        }) = address
        {
            each(register, Use, $f);
        }
        each(src.into_iter().flatten(), Use, $f);
        each(values, Use, $f);
        each(dst.into_iter().flatten(), Def, $f);
    }};
}

impl<R> ShadowOp<R> {
    fn regs<'a>(&'a self, f: &mut impl FnMut(&'a R, Role)) {
        walk_shadow!(self, f);
    }
    fn regs_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut R, Role)) {
        walk_shadow!(self, f);
    }
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> ShadowOp<S> {
        ShadowOp {
            what: self.what,
            address: self.address.map(|address| address.map(f)),
            src: sinks(self.src, f),
            values: list(self.values, f),
            dst: sinks(self.dst, f),
        }
    }
}

impl<R> JointOp<R> {
    fn regs<'a>(&'a self, f: &mut impl FnMut(&'a R, Role)) {
        walk_joint!(self, f);
    }
    fn regs_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut R, Role)) {
        walk_joint!(self, f);
    }
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> JointOp<S> {
        JointOp {
            what: self.what,
            addresses: self.addresses.into_iter().map(|address| address.map(f)).collect(),
            src: list(self.src, f),
            dst: sinks(self.dst, f),
            objects: self
                .objects
                .into_iter()
                .map(|object| object.map(|Object { base, what }| Object { base: f(base), what }))
                .collect(),
        }
    }
}

impl<R> TextureOp<R> {
    fn regs<'a>(&'a self, f: &mut impl FnMut(&'a R, Role)) {
        walk_texture!(self, f);
    }
    fn regs_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut R, Role)) {
        walk_texture!(self, f);
    }
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> TextureOp<S> {
        TextureOp {
            texture: f(self.texture),
            sampler: self.sampler.map(&mut *f),
            geometry: self.geometry,
            floats: self.floats,
            layer: self.layer.map(&mut *f),
            at: list(self.at, f),
            detail: match self.detail {
                Detail::Base => Detail::Base,
                Detail::Level(level) => Detail::Level(f(level)),
                Detail::Gradient(x, y) => Detail::Gradient(list(x, f), list(y, f)),
            },
            offset: list(self.offset, f),
            compare: self.compare.map(&mut *f),
            gather: self.gather,
            components: self.components,
            dst: sinks(self.dst, f),
            dst_pred: self.dst_pred.map(f),
        }
    }
}

impl<R> SurfaceOp<R> {
    fn regs<'a>(&'a self, f: &mut impl FnMut(&'a R, Role)) {
        walk_surface!(self, f);
    }
    fn regs_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut R, Role)) {
        walk_surface!(self, f);
    }
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> SurfaceOp<S> {
        SurfaceOp {
            surface: f(self.surface),
            geometry: self.geometry,
            layer: self.layer.map(&mut *f),
            at: list(self.at, f),
            outside: self.outside,
            formatted: self.formatted,
            bytes: self.bytes,
            action: match self.action {
                SurfaceAction::Load(dst) => SurfaceAction::Load(sinks(dst, f)),
                SurfaceAction::Store(src) => SurfaceAction::Store(list(src, f)),
                SurfaceAction::Reduce { op, signed, value } => SurfaceAction::Reduce {
                    op,
                    signed,
                    value: f(value),
                },
            },
        }
    }
}

impl<R> Address<R> {
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> Address<S> {
        Address {
            space: self.space,
            register: self.register.map(f),
            offset: self.offset,
        }
    }
}

impl<R> Value<R> {
    fn map<S>(self, f: &mut impl FnMut(R) -> S) -> Value<S> {
        match self {
            Value::Immediate(value) => Value::Immediate(value),
            Value::Register(reg) => Value::Register(f(reg)),
        }
    }
}

fn list<R, S>(list: Box<[R]>, f: &mut impl FnMut(R) -> S) -> Box<[S]> {
    list.into_iter().map(f).collect()
}

fn sinks<R, S>(list: Box<[Option<R>]>, f: &mut impl FnMut(R) -> S) -> Box<[Option<S>]> {
    list.into_iter().map(|reg| reg.map(&mut *f)).collect()
}

impl<R> Op<R> {
    /// Calls `f` with every register and its role, uses first.
    pub fn regs<'a>(&'a self, mut f: impl FnMut(&'a R, Role)) {
        let f = &mut f;
        walk!(self, f, regs);
    }

    /// As [`Op::regs`]; `f` may replace the register.
    pub fn regs_mut<'a>(&'a mut self, mut f: impl FnMut(&'a mut R, Role)) {
        let f = &mut f;
        walk!(self, f, regs_mut);
    }

    /// The same operation on other registers.
    pub fn map<S>(self, f: &mut impl FnMut(R) -> S) -> Op<S> {
        match self {
            Op::Compute { op, dst, src } => Op::Compute {
                op,
                dst: dst.into_iter().map(&mut *f).collect(),
                src: src.into_iter().map(f).collect(),
            },
            Op::Load {
                address,
                element,
                ordering,
                scope,
                dst,
            } => Op::Load {
                address: address.map(f),
                element,
                ordering,
                scope,
                dst: sinks(dst, f),
            },
            Op::Store {
                address,
                element,
                ordering,
                scope,
                src,
            } => Op::Store {
                address: address.map(f),
                element,
                ordering,
                scope,
                src: list(src, f),
            },
            Op::Atomic {
                op,
                ty,
                in_memory,
                ordering,
                scope,
                address,
                dst,
                b,
                c,
            } => Op::Atomic {
                op,
                ty,
                in_memory,
                ordering,
                scope,
                address: address.map(f),
                dst: dst.map(|dst| list(dst, f)),
                b: list(b, f),
                c: c.map(f),
            },
            Op::Call { callee, args, results } => Op::Call {
                callee: match callee {
                    Callee::Direct(function) => Callee::Direct(function),
                    Callee::Indirect {
                        address,
                        params,
                        returns,
                    } => Callee::Indirect {
                        address: f(address),
                        params,
                        returns,
                    },
                },
                args,
                results,
            },
            Op::Return => Op::Return,
            Op::Exit => Op::Exit,
            Op::Trap => Op::Trap,
            Op::Breakpoint => Op::Breakpoint,
            Op::Barrier {
                op,
                aligned,
                id,
                threads,
                dst,
                pred,
            } => Op::Barrier {
                op,
                aligned,
                id: id.map(f),
                threads: threads.map(|threads| threads.map(f)),
                dst: dst.map(&mut *f),
                pred: pred.map(|(reg, negated)| (f(reg), negated)),
            },
            Op::WarpBarrier { members } => Op::WarpBarrier {
                members: members.map(f),
            },
            Op::Fence { ordering, scope, proxy } => Op::Fence { ordering, scope, proxy },
            Op::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
            } => Op::Shuffle {
                mode,
                dst: f(dst),
                dst_pred: dst_pred.map(&mut *f),
                a: f(a),
                b: f(b),
                c: f(c),
                members: members.map(|members| members.map(f)),
            },
            Op::Vote {
                mode,
                dst,
                pred: (reg, negated),
                members,
            } => Op::Vote {
                mode,
                dst: f(dst),
                pred: (f(reg), negated),
                members: members.map(|members| members.map(f)),
            },
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => Op::Match {
                all,
                dst: f(dst),
                dst_pred: dst_pred.map(&mut *f),
                a: f(a),
                members: members.map(f),
            },
            Op::Redux { op, dst, a, members } => Op::Redux {
                op,
                dst: f(dst),
                a: f(a),
                members: members.map(f),
            },
            Op::Activemask { dst } => Op::Activemask { dst: f(dst) },
            Op::Elect { dst, dst_pred, members } => Op::Elect {
                dst: dst.map(&mut *f),
                dst_pred: f(dst_pred),
                members: members.map(f),
            },
            Op::ReadSpecial { which, dst } => Op::ReadSpecial { which, dst: f(dst) },
            Op::FrameAddress { dst, offset } => Op::FrameAddress { dst: f(dst), offset },
            Op::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => Op::ConvertAddress {
                space,
                to_generic,
                dst: f(dst),
                src: f(src),
            },
            Op::Within(within) => Op::Within(Box::new(within.map(f))),
            Op::IsSpace { space, dst, src } => Op::IsSpace {
                space,
                dst: f(dst),
                src: f(src),
            },
            Op::CopyGroup(what) => Op::CopyGroup(what),
            Op::Nanosleep => Op::Nanosleep,
            Op::Alloca { dst, size, align } => Op::Alloca {
                dst: f(dst),
                size: f(size),
                align,
            },
            Op::StackSave { dst } => Op::StackSave { dst: f(dst) },
            Op::StackRestore { src } => Op::StackRestore { src: f(src) },
            Op::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            } => Op::CopyAsync {
                dst: dst.map(f),
                src: src.map(f),
                bytes,
                src_size: src_size.map(&mut *f),
                ignore: ignore.map(|(reg, negated)| (f(reg), negated)),
            },
            Op::Joint(op) => Op::Joint(Box::new(op.map(f))),
            Op::Shadow(op) => Op::Shadow(Box::new(op.map(f))),
            Op::Texture(op) => Op::Texture(Box::new(op.map(f))),
            Op::Surface(op) => Op::Surface(Box::new(op.map(f))),
            Op::HandleQuery {
                handle,
                attribute,
                level,
                dst,
            } => Op::HandleQuery {
                handle: f(handle),
                attribute,
                level: level.map(&mut *f),
                dst: f(dst),
            },
            Op::IsHandle { opaque, dst, src } => Op::IsHandle {
                opaque,
                dst: f(dst),
                src: f(src),
            },
            Op::Syscall { which, args, results } => Op::Syscall { which, args, results },
        }
    }
}

impl<R> Inst<R> {
    /// Calls `f` with every register and its role, the guard's and other uses first.
    pub fn regs<'a>(&'a self, mut f: impl FnMut(&'a R, Role)) {
        if let Some(guard) = &self.guard {
            f(&guard.reg, Role::Use);
        }
        self.op.regs(f);
    }

    /// As [`Inst::regs`]; `f` may replace the register.
    pub fn regs_mut<'a>(&'a mut self, mut f: impl FnMut(&'a mut R, Role)) {
        if let Some(guard) = &mut self.guard {
            f(&mut guard.reg, Role::Use);
        }
        self.op.regs_mut(f);
    }
}
