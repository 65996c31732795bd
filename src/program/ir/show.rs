//! The printed form of the representation: `margay ptx lower` shows it, tests compare it. `docs/ir.md` explains it.
//!
//! A register is written by its class and number: `%p0`, `%h1`, `%r2`, `%d3`, `%q4` are predicates and registers of 16,
//! 32, 64 and 128 bits. Everything comes from the operation itself, nothing from the text that it was made of.

use std::fmt::{self, Display, Formatter, Result, Write};

use super::facts::{Facts, Shape};
use super::op::*;
use super::shadow::{Shadow, ShadowOp};
use super::texture::{Components, Detail, Outside, SurfaceAction, SurfaceOp, TextureOp};
use super::{Body, End};
use crate::isa::joint::warpgroup;
use crate::isa::lanes::Width;

/// The letter of a class of registers.
pub fn class(width: Width) -> char {
    match width {
        Width::Pred => 'p',
        Width::B16 => 'h',
        Width::B32 => 'r',
        Width::B64 => 'd',
        Width::B128 => 'q',
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "%{}{}", class(self.width), self.number)
    }
}

impl<R: Display> Display for Value<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Value::Immediate(value) => write!(f, "{value:#x}"),
            Value::Register(reg) => reg.fmt(f),
        }
    }
}

/// `Debug` gives the name of a variant; the printed form is in small letters.
fn small(name: impl fmt::Debug) -> String {
    format!("{name:?}").to_lowercase()
}

fn of_scope(scope: Option<Scope>) -> String {
    scope.map_or_else(String::new, |scope| format!(".{}", small(scope)))
}

impl Display for Space {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&small(self))
    }
}

impl<R: Display> Display for Address<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}[", self.space)?;
        match &self.register {
            Some(register) if self.offset == 0 => write!(f, "{register}]"),
            Some(register) => write!(f, "{register}{:+}]", self.offset),
            None => write!(f, "{:#x}]", self.offset),
        }
    }
}

impl<R: Display> Display for MadeFrom<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            MadeFrom::Shared {
                base,
                bytes: Some(bytes),
            } => write!(f, "shared[{base}; {bytes}]"),
            MadeFrom::Shared { base, bytes: None } => write!(f, "shared[{base}; ..]"),
            MadeFrom::Frame { offset, bytes } => write!(f, "frame[{offset}; {bytes}]"),
            MadeFrom::Block { base, size } => write!(f, "alloca[{base}; {size}]"),
            MadeFrom::Parameter { offset, bytes } => write!(f, "param[{offset:#x}; {bytes}]"),
            MadeFrom::Pointer { base, parameter: _ } => write!(f, "allocation[{base}]"),
            MadeFrom::Unknown => f.write_str("frames"),
        }
    }
}

impl<R: Display> Display for Object<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let what = match self.what {
            ObjectKind::Shared { bytes: Some(bytes) } => return write!(f, "shared[{}; {bytes}]", self.base),
            ObjectKind::Shared { bytes: None } => return write!(f, "shared[{}; ..]", self.base),
            ObjectKind::Pointer { parameter: _ } => "allocation",
            ObjectKind::Columns => "columns",
        };
        write!(f, "{what}[{}]", self.base)
    }
}

impl Display for Initial {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Initial::Constant(bits) => write!(f, "{bits:#x}"),
            Initial::Param { offset, element } => write!(f, "param[{offset:#x}]{element}"),
            Initial::Special(special) => write!(f, "{special}"),
        }
    }
}

/// `.4` for four bytes, `.s4` for four that extend by sign.
impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".{}{}", if self.signed { "s" } else { "" }, self.bytes)
    }
}

/// `.acquire`; nothing for weak accesses.
impl Display for Ordering {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Ordering::Weak => Ok(()),
            strong => write!(f, ".{}", small(strong)),
        }
    }
}

impl Display for Special {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "%{}", small(self))
    }
}

impl Display for Copy3 {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}→{} ×{}", self.from, self.to, self.bytes)
    }
}

/// Items between commas.
fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::new();
    for item in items {
        let comma = if out.is_empty() { "" } else { ", " };
        let _ = write!(out, "{comma}{item}");
    }
    out
}

fn or_sink<R: Display>(reg: &Option<R>) -> String {
    reg.as_ref().map_or_else(|| "_".to_owned(), R::to_string)
}

fn sinks<R: Display>(regs: &[Option<R>]) -> String {
    list(regs.iter().map(or_sink))
}

/// A predicate, perhaps negated.
fn signed<R: Display>(reg: &R, negated: bool) -> String {
    format!("{}{reg}", if negated { "!" } else { "" })
}

/// `, x` where there is one.
fn more<T: Display>(item: &Option<T>) -> String {
    item.as_ref().map_or_else(String::new, |item| format!(", {item}"))
}

impl<R: Display> Display for Guard<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "@{}", signed(&self.reg, self.negated))
    }
}

impl<R: Display> Display for Inst<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        self.op.fmt(f)
    }
}

impl<R: Display> Display for Op<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Op::Compute { op, dst, src } => {
                write!(f, "{op} {} ← {}", list(dst), list(src))
            }
            Op::Load {
                address,
                element,
                ordering,
                scope,
                dst,
            } => write!(
                f,
                "load{ordering}{}{element} {} ← {address}",
                of_scope(*scope),
                sinks(dst)
            ),
            Op::Store {
                address,
                element,
                ordering,
                scope,
                src,
            } => write!(
                f,
                "store{ordering}{}{element} {address} ← {}",
                of_scope(*scope),
                list(src)
            ),
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
            } => {
                let own = if *in_memory { ".in_memory" } else { "" };
                write!(
                    f,
                    "atomic{ordering}{}.{}{own}.{} ",
                    of_scope(Some(*scope)),
                    small(op),
                    small(ty)
                )?;
                if let Some(dst) = dst {
                    write!(f, "{} ← ", list(dst))?;
                }
                write!(f, "{address}, {}", list(b.iter().chain(c)))
            }
            Op::Call { callee, args, results } => {
                let callee = match callee {
                    Callee::Direct(index) => format!("#{index}"),
                    Callee::Indirect {
                        address,
                        params,
                        returns,
                    } => format!("{address} ({returns}+{params} bytes)"),
                };
                write!(f, "call {callee} args [{}] results [{}]", list(args), list(results))
            }
            Op::Syscall { which, args, results } => {
                write!(
                    f,
                    "syscall {} args [{}] results [{}]",
                    small(which),
                    list(args),
                    list(results)
                )
            }
            Op::Return => f.write_str("return"),
            Op::Exit => f.write_str("exit"),
            Op::Trap => f.write_str("trap"),
            Op::Breakpoint => f.write_str("breakpoint"),
            Op::Fence { ordering, scope, proxy } => {
                let between = match proxy {
                    Proxy::Generic => String::new(),
                    other => format!(".{}", small(other)),
                };
                write!(f, "fence{between}{ordering}{}", of_scope(*scope))
            }
            Op::Nanosleep => f.write_str("nanosleep"),
            Op::Barrier {
                op,
                aligned: _,
                id,
                threads,
                dst,
                pred,
            } => {
                write!(f, "barrier.{} ", small(op))?;
                if let Some(dst) = dst {
                    write!(f, "{dst} ← ")?;
                }
                write!(f, "{id}{}", more(threads))?;
                match pred {
                    Some((reg, negated)) => write!(f, ", {}", signed(reg, *negated)),
                    None => Ok(()),
                }
            }
            Op::WarpBarrier { members } => write!(f, "warp_barrier {members}"),
            Op::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
            } => {
                let (mode, pred) = (small(mode), or_sink(dst_pred));
                write!(f, "shuffle.{mode} {dst}|{pred} ← {a}, {b}, {c}{}", more(members))
            }
            Op::Vote {
                mode,
                dst,
                pred: (reg, negated),
                members,
            } => {
                let pred = signed(reg, *negated);
                write!(f, "vote.{} {dst} ← {pred}{}", small(mode), more(members))
            }
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => {
                let mode = if *all { "all" } else { "any" };
                write!(f, "match.{mode} {dst}|{} ← {a}, {members}", or_sink(dst_pred))
            }
            Op::Redux { op, dst, a, members } => write!(f, "redux.{} {dst} ← {a}, {members}", Redux(*op)),
            Op::Activemask { dst } => write!(f, "activemask {dst}"),
            Op::Elect { dst, dst_pred, members } => write!(f, "elect {}|{dst_pred} ← {members}", or_sink(dst)),
            Op::ReadSpecial { which, dst } => write!(f, "read {dst} ← {which}"),
            Op::FrameAddress { dst, offset } => write!(f, "frame {dst} ← {offset}"),
            Op::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => match to_generic {
                true => write!(f, "convert {space}→generic {dst} ← {src}"),
                false => write!(f, "convert generic→{space} {dst} ← {src}"),
            },
            Op::Within(within) => {
                write!(f, "within {}[{}", within.space, within.register)?;
                for Reached { offset, bytes, .. } in &within.accesses {
                    write!(f, " {offset:+}.{bytes}")?;
                }
                write!(f, "] in {}", within.from)
            }
            Op::IsSpace { space, dst, src } => write!(f, "is {space} {dst} ← {src}"),
            Op::Alloca { dst, size, align } => write!(f, "alloca {dst} ← {size}, {align}"),
            Op::StackSave { dst } => write!(f, "stack_save {dst}"),
            Op::StackRestore { src } => write!(f, "stack_restore {src}"),
            Op::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            } => {
                write!(f, "copy_async {dst} ← {src}, {bytes}{}", more(src_size))?;
                match ignore {
                    Some((reg, negated)) => write!(f, ", unless {}", signed(reg, *negated)),
                    None => Ok(()),
                }
            }
            Op::CopyGroup(CopyGroup::Commit) => f.write_str("commit_copies"),
            Op::CopyGroup(CopyGroup::Wait(but)) => write!(f, "wait_copies but {but}"),
            Op::CopyGroup(CopyGroup::WaitAll) => f.write_str("wait_copies"),
            Op::Joint(op) => op.fmt(f),
            Op::Shadow(op) => op.fmt(f),
            Op::Texture(op) => op.fmt(f),
            Op::Surface(op) => op.fmt(f),
            Op::HandleQuery {
                handle,
                attribute,
                level,
                dst,
            } => write!(f, "query.{} {dst} ← {handle}{}", attribute.word(), more(level)),
            Op::IsHandle { opaque, dst, src } => write!(f, "is {} {dst} ← {src}", small(opaque)),
        }
    }
}

/// `min.u32`, `max.nan.abs.f32`
struct Redux(ReduxOp);

impl Display for Redux {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let float = |f: &mut Formatter<'_>, name: &str, abs: bool, nan: bool| {
            let (abs, nan) = (if abs { ".abs" } else { "" }, if nan { ".nan" } else { "" });
            write!(f, "{name}{nan}{abs}.f32")
        };
        match self.0 {
            ReduxOp::Add => f.write_str("add"),
            ReduxOp::MinU => f.write_str("min.u32"),
            ReduxOp::MaxU => f.write_str("max.u32"),
            ReduxOp::MinS => f.write_str("min.s32"),
            ReduxOp::MaxS => f.write_str("max.s32"),
            ReduxOp::And => f.write_str("and"),
            ReduxOp::Or => f.write_str("or"),
            ReduxOp::Xor => f.write_str("xor"),
            ReduxOp::MinF { abs, nan } => float(f, "min", abs, nan),
            ReduxOp::MaxF { abs, nan } => float(f, "max", abs, nan),
        }
    }
}

impl<R: Display> Display for TextureOp<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let coordinates = if self.floats { "f32" } else { "s32" };
        write!(f, "texture.{}.{coordinates}", small(self.geometry))?;
        if let Some(component) = self.gather {
            write!(f, ".gather{component}")?;
        }
        match self.components {
            Components::Words => {}
            Components::Halves => f.write_str(".halves")?,
            Components::HalfPairs => f.write_str(".pairs")?,
        }
        write!(
            f,
            " {}|{} ← {}",
            sinks(&self.dst),
            or_sink(&self.dst_pred),
            self.texture
        )?;
        write!(
            f,
            "{} at {}",
            more(&self.sampler),
            list(self.layer.iter().chain(&self.at))
        )?;
        match &self.detail {
            Detail::Base => {}
            Detail::Level(level) => write!(f, " level {level}")?,
            Detail::Gradient(x, y) => write!(f, " gradient {}; {}", list(x), list(y))?,
        }
        if !self.offset.is_empty() {
            write!(f, " offset {}", list(&self.offset))?;
        }
        match &self.compare {
            Some(compare) => write!(f, " compare {compare}"),
            None => Ok(()),
        }
    }
}

impl<R: Display> Display for ShadowOp<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.what {
            Shadow::Load(element) => write!(f, "shadow.load{element}")?,
            Shadow::Store(element) => write!(f, "shadow.store{element}")?,
            Shadow::Follow(rule) => write!(f, "shadow.follow.{}", small(rule))?,
            Shadow::Matrix(op) => write!(f, "shadow.{op}")?,
            Shadow::Warpgroup(op) => write!(f, "shadow.{}", warpgroup::Op::Mma(op))?,
            Shadow::Also => f.write_str("shadow.also")?,
            Shadow::Match { all: true } => f.write_str("shadow.match.all")?,
            Shadow::Match { all: false } => f.write_str("shadow.match.any")?,
            Shadow::Undefine => f.write_str("shadow.undefine")?,
            Shadow::Frame(from, to) => write!(f, "shadow.frame {from:#x}..{to:#x}")?,
            Shadow::Check { decision, register } => write!(f, "shadow.check.{} of {register}", small(decision))?,
        }
        let sources = self.address.iter().map(|address| address as &dyn Display);
        let sources = sources.chain(self.src.iter().flatten().map(|reg| reg as &dyn Display));
        let sources = sources.chain(self.values.iter().map(|reg| reg as &dyn Display));
        match &*self.dst {
            [] => write!(f, " {}", list(sources)),
            dst => write!(f, " {} ← {}", sinks(dst), list(sources)),
        }
    }
}

impl<R: Display> Display for JointOp<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.what.to_string())?;
        let sources = self.addresses.iter().map(|address| address as &dyn Display);
        let sources = sources.chain(self.src.iter().map(|reg| reg as &dyn Display));
        match &*self.dst {
            [] => write!(f, " {}", list(sources))?,
            dst => write!(f, " {} ← {}", sinks(dst), list(sources))?,
        }
        let mut word = " in";
        for object in &self.objects {
            match object {
                Some(object) => write!(f, "{word} {object}")?,
                None => write!(f, "{word} _")?,
            }
            word = ",";
        }
        Ok(())
    }
}

impl<R: Display> Display for SurfaceOp<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let what = if self.formatted { "formatted" } else { "bytes" };
        let outside = match self.outside {
            Outside::Trap => "trap",
            Outside::Clamp => "clamp",
            Outside::Zero => "zero",
        };
        write!(f, "surface.{}.{what}.{}.{outside} ", small(self.geometry), self.bytes)?;
        let place = format!("{} at {}", self.surface, list(self.layer.iter().chain(&self.at)));
        match &self.action {
            SurfaceAction::Load(dst) => write!(f, "{} ← {place}", sinks(dst)),
            SurfaceAction::Store(src) => write!(f, "{place} ← {}", list(src)),
            SurfaceAction::Reduce { op, signed, value } => {
                let sign = match signed {
                    None => "",
                    Some(true) => ".s",
                    Some(false) => ".u",
                };
                write!(f, "{place} ← {}{sign} {value}", small(op))
            }
        }
    }
}

impl Display for End {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            End::Jump { to, .. } => write!(f, "jump b{to}"),
            End::Branch { guard, taken, fall, .. } => write!(f, "{guard} jump b{taken} else b{fall}"),
            End::Indexed { index, targets, .. } => {
                write!(f, "jump {index} of {}", list(targets.iter().map(|to| format!("b{to}"))))
            }
            End::Stop => f.write_str("stop"),
        }
    }
}

/// `uniform`, `row×4 align 16 in 0..=1020`; nothing where nothing is known.
impl Display for Facts {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.shape {
            Shape::Uniform => f.write_str(" uniform")?,
            Shape::Affine { stride } => write!(f, " row×{stride}")?,
            Shape::Varying => {}
        }
        // Zero is a multiple of every power of two; its range says enough.
        if (1..u64::BITS).contains(&u32::from(self.align)) {
            write!(f, " align {}", 1u64 << self.align)?;
        }
        match self.range {
            Some((low, high)) => write!(f, " in {low:#x}..={high:#x}"),
            None => Ok(()),
        }
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let facts = |reg: &Reg| self.facts.get(reg.number as usize).copied().unwrap_or_default();
        let named = self.named();
        for (number, info) in self.registers.iter().enumerate() {
            let Some(initial) = info.initial else { continue };
            let reg = Reg {
                number: number as Register,
                width: info.width,
            };
            // Passes leave registers behind that nobody reads.
            if named[number] {
                writeln!(f, "  {reg} = {initial}{}", Note(facts(&reg)))?;
            }
        }
        for inst in &self.prologue {
            writeln!(f, "  once {inst}")?;
        }
        let mut line = None;
        for (number, block) in self.blocks.iter().enumerate() {
            writeln!(f, "b{number}:")?;
            for inst in &block.insts {
                if inst.line.is_some() && inst.line != line {
                    line = inst.line;
                    if let Some((file, line)) = line {
                        writeln!(f, "  // {file}:{line}")?;
                    }
                }
                let mut notes = Vec::new();
                inst.op.regs(|reg, role| {
                    let facts = facts(reg);
                    if role == super::Role::Def && facts != Facts::default() {
                        notes.push(format!("{reg}{facts}"));
                    }
                });
                match notes.is_empty() {
                    true => writeln!(f, "  {inst}")?,
                    false => writeln!(f, "  {inst}    // {}", list(notes))?,
                }
            }
            writeln!(f, "  {}", block.end)?;
        }
        Ok(())
    }
}

/// Facts as a comment.
struct Note(Facts);

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 == Facts::default() {
            true => Ok(()),
            false => write!(f, "    //{}", self.0),
        }
    }
}

impl Display for crate::program::Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "{}:", self.name)?;
        if self.local != 0 {
            let (returns, params) = (self.return_bytes, self.param_bytes);
            writeln!(
                f,
                "  frame {} bytes, aligned {} ({returns} returned, {params} passed)",
                self.local, self.local_align
            )?;
        }
        if !self.shared.is_empty() {
            let variables = list(
                self.shared
                    .iter()
                    .map(|(index, offset)| format!("#{index} at {offset}")),
            );
            writeln!(
                f,
                "  shared {} bytes: {variables}; dynamic from {}",
                self.shared_bytes, self.dynamic_shared
            )?;
        }
        self.body.fmt(f)
    }
}
