//! Lowered functions as text: `margay ptx lower` prints them, tests compare them.
//!
//! A slot is written by its class and place: `p0`, `h0`, `r2`, `d4`, `q8` are predicates (numbered by 4 bytes) and 16-,
//! 32-, 64- and 128-bit slots (numbered by 64 bytes of the window). Lane operations show the PTX opcode they came from.

use std::fmt;

use super::affine::{Affine, Op, Source, Step};
use super::instr::*;
use super::texture::SurfaceAction;
use super::visit::Role;
use crate::isa::lanes::Width;

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, unit) = match self.width {
            Width::Pred => ('p', 4),
            Width::B16 => ('h', 64),
            Width::B32 => ('r', 64),
            Width::B64 => ('d', 64),
            Width::B128 => ('q', 64),
        };
        write!(f, "{class}{}", self.offset / unit)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Immediate(value) => write!(f, "{value:#x}"),
            Value::Slot(slot) => slot.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", format!("{:?}", self.space).to_lowercase())?;
        match self.register {
            Some(register) if self.offset == 0 => write!(f, "{register}]"),
            Some(register) => write!(f, "{register}{:+}]", self.offset),
            None => write!(f, "{:#x}]", self.offset),
        }
    }
}

impl fmt::Display for Initial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Initial::Constant(bits) => write!(f, "{bits:#x}"),
            Initial::Param { offset, element } => write!(f, "param {offset}{}", Shown(*element)),
            Initial::Special(special) => write!(f, "%{special:?}"),
        }
    }
}

/// `.4` for four bytes, `.s4` for four that extend by sign.
struct Shown(Element);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}{}", if self.0.signed { "s" } else { "" }, self.0.bytes)
    }
}

fn list<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    items.join(", ")
}

fn or_sink(slot: Option<Slot>) -> String {
    slot.map_or_else(|| "_".to_owned(), |s| s.to_string())
}

fn signed(slot: Slot, negated: bool) -> String {
    format!("{}{slot}", if negated { "!" } else { "" })
}

fn copies(copies: &[Copy3]) -> String {
    list(copies.iter().map(|c| format!("{}→{} ×{}", c.from, c.to, c.bytes)))
}

impl Instr {
    /// One line; `text` is the PTX that spans point into.
    pub fn show(&self, text: &str) -> String {
        let guard = self
            .guard
            .map_or_else(String::new, |g| format!("@{} ", signed(g.slot, g.negated)));
        let name = format!("{:?}", self.kind);
        let name = name.split([' ', '{', '(']).next().unwrap_or_default().to_lowercase();
        let ordering = |ordering: &Ordering, scope: Option<Scope>| match (ordering, scope) {
            (Ordering::Weak, _) => String::new(),
            (other, None) => format!(".{other:?}").to_lowercase(),
            (other, Some(scope)) => format!(".{other:?}.{scope:?}").to_lowercase(),
        };
        let body = match &self.kind {
            Kind::Lane { operands, .. } => {
                let (mut dst, mut src) = (Vec::new(), Vec::new());
                let unguarded = Instr {
                    guard: None,
                    ..self.clone()
                };
                unguarded.slots(|slot, role| {
                    if role == Role::Def {
                        dst.push(slot)
                    } else {
                        src.push(slot)
                    }
                });
                let mut line = format!("{} {} ← {}", self.opcode(text), list(dst), list(src));
                if operands.imm != 0 {
                    line += &format!(", {:#x}", operands.imm);
                }
                line
            }
            Kind::Load {
                address,
                element,
                ordering: o,
                scope,
                dst,
            } => {
                let dst = list(dst.iter().map(|d| or_sink(*d)));
                format!("load{}{} {dst} ← {address}", ordering(o, *scope), Shown(*element))
            }
            Kind::Store {
                address,
                element,
                ordering: o,
                scope,
                src,
            } => {
                format!(
                    "store{}{} {address} ← {}",
                    ordering(o, *scope),
                    Shown(*element),
                    list(src.iter())
                )
            }
            Kind::Atomic {
                op,
                ty,
                ordering: o,
                scope,
                address,
                dst,
                b,
                c,
                ..
            } => {
                let dst = dst
                    .as_ref()
                    .map_or_else(String::new, |d| format!("{} ← ", list(d.iter())));
                let what = format!("atomic{}.{op:?}.{ty:?}", ordering(o, Some(*scope))).to_lowercase();
                format!("{what} {dst}{address}, {}", list(b.iter().chain(c)))
            }
            Kind::Branch { target } => format!("branch {target}"),
            Kind::BranchIndexed { index, targets } => format!("branch {index} of {}", list(targets.iter())),
            Kind::Call { callee, args, results } => {
                let callee = match callee {
                    Callee::Direct(index) => format!("#{index}"),
                    Callee::Indirect {
                        address,
                        params,
                        returns,
                    } => format!("{address} ({returns}+{params} bytes)"),
                };
                format!("call {callee} args [{}] results [{}]", copies(args), copies(results))
            }
            Kind::Syscall { which, args, results } => {
                let which = format!("{which:?}").to_lowercase();
                format!("syscall {which} args [{}] results [{}]", copies(args), copies(results))
            }
            Kind::Barrier {
                op,
                id,
                threads,
                dst,
                pred,
            } => {
                let mut line = format!("barrier.{op:?}").to_lowercase();
                if let Some(dst) = dst {
                    line += &format!(" {dst} ←");
                }
                line += &format!(" {id}");
                if let Some(threads) = threads {
                    line += &format!(", {threads}");
                }
                if let Some((slot, negated)) = pred {
                    line += &format!(", {}", signed(*slot, *negated));
                }
                line
            }
            Kind::WarpBarrier { members } => format!("{name} {members}"),
            Kind::Shuffle {
                mode,
                dst,
                dst_pred,
                a,
                b,
                c,
                members,
            } => {
                let members = members.map_or_else(String::new, |m| format!(", {m}"));
                let mode = format!("{mode:?}").to_lowercase();
                format!("shuffle.{mode} {dst}|{} ← {a}, {b}, {c}{members}", or_sink(*dst_pred))
            }
            Kind::Vote {
                mode,
                dst,
                pred,
                members,
            } => {
                let members = members.map_or_else(String::new, |m| format!(", {m}"));
                let mode = format!("{mode:?}").to_lowercase();
                format!("vote.{mode} {dst} ← {}{members}", signed(pred.0, pred.1))
            }
            Kind::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => {
                let mode = if *all { "all" } else { "any" };
                format!("match.{mode} {dst}|{} ← {a}, {members}", or_sink(*dst_pred))
            }
            Kind::Redux { op, dst, a, members } => {
                format!("redux.{} {dst} ← {a}, {members}", format!("{op:?}").to_lowercase())
            }
            Kind::Activemask { dst } | Kind::StackSave { dst } => format!("{name} {dst}"),
            Kind::Elect { dst, dst_pred, members } => format!("elect {}|{dst_pred} ← {members}", or_sink(*dst)),
            Kind::ReadSpecial { which, dst } => format!("read {dst} ← %{which:?}"),
            Kind::FrameAddress { dst, offset } => format!("frame {dst} ← {offset}"),
            Kind::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } => {
                let space = format!("{space:?}").to_lowercase();
                let direction = if *to_generic {
                    format!("{space}→generic")
                } else {
                    format!("generic→{space}")
                };
                format!("convert {direction} {dst} ← {src}")
            }
            Kind::IsSpace { space, dst, src } => {
                format!("is {} {dst} ← {src}", format!("{space:?}").to_lowercase())
            }
            Kind::Texture(op) => {
                let dst = list(op.dst.iter().map(|slot| or_sink(*slot)));
                let geometry = format!("{:?}", op.geometry).to_lowercase();
                let layer = op.layer.iter().chain(&op.at);
                format!("texture.{geometry} {dst} ← {} at {}", op.texture, list(layer))
            }
            Kind::Surface(op) => {
                let geometry = format!("{:?}", op.geometry).to_lowercase();
                let place = format!("{} at {}", op.surface, list(op.layer.iter().chain(&op.at)));
                match &op.action {
                    SurfaceAction::Load(dst) => {
                        format!(
                            "surface.{geometry} {} ← {place}",
                            list(dst.iter().map(|slot| or_sink(*slot)))
                        )
                    }
                    SurfaceAction::Store(src) => format!("surface.{geometry} {place} ← {}", list(src.iter())),
                    SurfaceAction::Reduce { op, value, .. } => {
                        format!(
                            "surface.{geometry} {place} ← {} {value}",
                            format!("{op:?}").to_lowercase()
                        )
                    }
                }
            }
            Kind::HandleQuery {
                handle, attribute, dst, ..
            } => format!("query {dst} ← {}, {handle}", attribute.word()),
            Kind::IsHandle { opaque, dst, src } => {
                format!("is {} {dst} ← {src}", format!("{opaque:?}").to_lowercase())
            }
            Kind::Alloca { dst, size, align } => format!("alloca {dst} ← {size}, {align}"),
            Kind::StackRestore { src } => format!("{name} {src}"),
            Kind::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            } => {
                let mut line = format!("copy {dst} ← {src}, {bytes}");
                if let Some(size) = src_size {
                    line += &format!(", {size}");
                }
                if let Some((slot, negated)) = ignore {
                    line += &format!(", unless {}", signed(*slot, *negated));
                }
                line
            }
            Kind::Return | Kind::Exit | Kind::Trap | Kind::Breakpoint | Kind::Nanosleep => name,
            Kind::Fence {
                ordering: o,
                scope,
                proxy,
            } => match proxy {
                Proxy::Generic => format!("fence{}", ordering(o, *scope)),
                other => format!("fence.{other:?}{}", ordering(o, *scope)).to_lowercase(),
            },
        };
        guard + &body
    }

    /// The opcode in the text that this came from.
    fn opcode<'t>(&self, text: &'t str) -> &'t str {
        let text = text
            .get(self.span.start as usize..self.span.end as usize)
            .unwrap_or_default();
        let text = text.trim_start();
        let text = match text.strip_prefix('@') {
            Some(rest) => rest
                .split_once(char::is_whitespace)
                .map_or("", |(_, rest)| rest.trim_start()),
            None => text,
        };
        text.split([' ', '\t', '\n', ';']).next().unwrap_or_default()
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.source.text;
        writeln!(f, "{}: window {} bytes", self.name, self.window)?;
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
        for (slot, initial) in &self.initial {
            writeln!(f, "  {slot} = {initial}")?;
        }
        for instr in &self.prologue {
            writeln!(f, "  once {}", instr.show(text))?;
        }
        if let Some(affine) = &self.affine {
            write!(f, "{affine}")?;
        }
        for (pc, instr) in self.code.iter().enumerate() {
            if let Some((_, file, line)) = self.lines.iter().find(|(at, ..)| *at == pc as u32) {
                writeln!(f, "  // {file}:{line}")?;
            }
            let note = self
                .affine
                .as_ref()
                .map_or_else(String::new, |affine| affine.note(pc as Pc));
            writeln!(f, "  {pc:4} {}{note}", instr.show(text))?;
        }
        Ok(())
    }
}

impl Affine {
    /// What becomes of the instruction at `pc` where these values are at hand.
    fn note(&self, pc: Pc) -> String {
        if self.spared.binary_search(&pc).is_ok() {
            return "    // spared".to_owned();
        }
        match self.addresses.binary_search_by_key(&pc, |&(at, _)| at) {
            Ok(at) => format!("    // at v{}", self.addresses[at].1),
            Err(_) => String::new(),
        }
    }
}

/// `v3 = v0 + v1`: once a launch, or once for each block.
impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (value, source) in self.sources.iter().enumerate() {
            match source {
                Source::Constant(bits) => writeln!(f, "  v{value} = {bits:#x}")?,
                Source::Slot(slot) => writeln!(f, "  v{value} = {slot}")?,
                Source::Tid(axis) => writeln!(f, "  v{value} = %Tid({axis})")?,
                Source::Ctaid(axis) => writeln!(f, "  v{value} = %Ctaid({axis})")?,
            }
        }
        let steps = self.once.iter().map(|step| ("once", step));
        for (when, Step { op, dst, a, b }) in steps.chain(self.each.iter().map(|step| ("block", step))) {
            write!(f, "  {when} ")?;
            let bits = |wide: &bool| if *wide { 64 } else { 32 };
            match op {
                Op::Add { wide } => writeln!(f, "v{dst} = v{a} + v{b} mod 2^{}", bits(wide))?,
                Op::Sub { wide } => writeln!(f, "v{dst} = v{a} - v{b} mod 2^{}", bits(wide))?,
                Op::Mul { wide } => writeln!(f, "v{dst} = v{a} · v{b} mod 2^{}", bits(wide))?,
                Op::Widen { signed } => {
                    writeln!(f, "v{dst} = {}32 v{a}", if *signed { 's' } else { 'u' })?;
                }
                Op::Narrow => writeln!(f, "v{dst} = v{a} mod 2^32")?,
                Op::Compare {
                    relation,
                    signed,
                    wide,
                    dst,
                } => {
                    let relation = format!("{relation:?}").to_lowercase();
                    let sign = if *signed { 's' } else { 'u' };
                    writeln!(f, "{dst} = v{a} {relation}.{sign}{} v{b}", bits(wide))?;
                }
            }
        }
        Ok(())
    }
}
