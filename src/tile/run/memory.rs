//! Memory: tiles of pointers, tiles of tensors, and atomics. Tokens order what they order already: operations are carried out one
//! after the other.

use std::sync::Arc;

use super::convert::{from_f64, to_f64};
use super::{Host, Order, Run, Stop, Strength};
use crate::isa::types::{Rounding, Scope};
use crate::tile::op::Code;
use crate::tile::read::{Given, Module, Op};
use crate::tile::types::{Element, Padding, TileType, Type, ViewType, Walk};
use crate::tile::value::{Data, Tensor, Tile, Value, View, mask, row_strides, sign_extend};

/// By the numbers of `MemoryOrderingSemantics` and `MemoryScope`, a load's or store's if it says one. `None`: weak.
fn strength(op: &Op) -> Result<Option<Strength>, String> {
    let order = match op.number(0) {
        1 => Order::Relaxed,
        2 => Order::Acquire,
        3 => Order::Release,
        4 => Order::AcquireRelease,
        0 => return Ok(None),
        other => return Err(format!("memory ordering of kind {other}")),
    };
    let scope = match op.attributes.get(1) {
        Some(Given::Number(0)) => Scope::Cta,
        Some(Given::Number(1)) => Scope::Gpu,
        Some(Given::Number(2)) | Some(Given::Nothing) | None => Scope::Sys,
        Some(other) => return Err(format!("a scope of kind {other:?}")),
    };
    Ok(Some(Strength { order, scope }))
}

/// What an atomic operation leaves in memory: the numbers of `AtomicRMWMode`.
fn combine(mode: u64, element: Element, old: u64, new: u64) -> u64 {
    let bits = element.bits();
    let signed = |bits_of: u64| sign_extend(bits, bits_of);
    let result = match mode {
        0 => old & new,
        1 => old | new,
        2 => old ^ new,
        3 => old.wrapping_add(new),
        4 => match element {
            Element::F64 => (f64::from_bits(old) + f64::from_bits(new)).to_bits(),
            Element::F32 => (f32::from_bits(old as u32) + f32::from_bits(new as u32))
                .to_bits()
                .into(),
            // Sums of halves are exact in twice their digits.
            _ => from_f64(element, to_f64(element, old) + to_f64(element, new), Rounding::Rn),
        },
        5 => signed(old).max(signed(new)) as u64,
        6 => signed(old).min(signed(new)) as u64,
        7 => old.max(new),
        8 => old.min(new),
        // There is no other mode ([`mode`]).
        _ => new,
    };
    result & mask(bits)
}

/// One run of a tile through memory: elements `step` apart in the tile, next to each other in memory.
struct Line {
    first: usize,
    step: usize,
    count: usize,
    /// In elements from the tensor's base.
    at: i64,
}

impl Run {
    pub(super) fn access<H: Host>(
        &mut self,
        module: &Module,
        op: &Op,
        host: &mut H,
    ) -> Result<Vec<Value>, Stop<H::Fault>> {
        let order = strength(op)?;
        let atomically = order.unwrap_or(Strength {
            order: Order::Relaxed,
            scope: Scope::Sys,
        });
        let reads = matches!(
            op.code,
            Code::LoadPtr | Code::LoadView | Code::AtomicCas | Code::AtomicRmw
        );
        self.looks |= reads && order.is_some();
        match op.code {
            Code::LoadPtr => {
                let pointers = Arc::clone(self.tile(op, 0)?);
                let (on, padding) = (self.maybe_tile(op, 1)?.cloned(), self.maybe_tile(op, 2)?.cloned());
                let element = result_type(module, op)?.element;
                let outside = |at: usize| {
                    padding
                        .as_ref()
                        .map_or(0, |tile| tile.data.get(if tile.len() == 1 { 0 } else { at }))
                };
                let mut data = match &padding {
                    None => Data::zeros(element, pointers.len()),
                    Some(_) => Data::collect(element, (0..pointers.len()).map(outside)),
                };
                for (first, count) in neighbours(&pointers, on.as_deref(), element)? {
                    read_row(
                        host,
                        pointers.data.get(first),
                        element,
                        &mut data,
                        (first, 1, count),
                        order,
                    )?;
                }
                let tile = Tile {
                    shape: pointers.shape.clone(),
                    element,
                    data,
                };
                Ok(vec![Value::Tile(Arc::new(tile)), Value::Token])
            }
            Code::StorePtr => {
                let (pointers, values) = (Arc::clone(self.tile(op, 0)?), Arc::clone(self.tile(op, 1)?));
                let on = self.maybe_tile(op, 2)?.cloned();
                same_shape(&pointers, &values)?;
                let element = values.element;
                for (first, count) in neighbours(&pointers, on.as_deref(), element)? {
                    write_row(
                        host,
                        pointers.data.get(first),
                        element,
                        &values.data,
                        (first, 1, count),
                        order,
                    )?;
                }
                Ok(vec![Value::Token])
            }
            Code::AtomicRmw => {
                let (pointers, values) = (Arc::clone(self.tile(op, 0)?), Arc::clone(self.tile(op, 1)?));
                let (on, mode, element) = (self.maybe_tile(op, 2)?.cloned(), mode(op)?, values.element);
                same_shape(&pointers, &values)?;
                update_each(
                    host,
                    &pointers,
                    on.as_deref(),
                    element,
                    (atomically, false),
                    |at, old| Some(combine(mode, element, old, values.data.get(at))),
                )
            }
            Code::AtomicCas => {
                let [pointers, expected, values] = [0, 1, 2].map(|group| self.tile(op, group).cloned());
                let (pointers, expected, values) = (pointers?, expected?, values?);
                let (on, element) = (self.maybe_tile(op, 3)?.cloned(), values.element);
                same_shape(&pointers, &values)?;
                same_shape(&pointers, &expected)?;
                update_each(
                    host,
                    &pointers,
                    on.as_deref(),
                    element,
                    (atomically, true),
                    |at, old| (old == expected.data.get(at)).then(|| values.data.get(at)),
                )
            }
            Code::LoadView => {
                let view = self.view_of(op, 0)?;
                let lines = self.lines(&view, op.group(1))?;
                let ty = result_type(module, op)?;
                let element = ty.element;
                let outside = padding(element, view.ty.padding)?;
                let mut data = Data::splat(element, ty.len(), outside);
                for line in lines {
                    read_line(host, &view.tensor, &line, &mut data, order)?;
                }
                Ok(vec![Value::Tile(Arc::new(Tile::of(ty, data))), Value::Token])
            }
            Code::StoreView => {
                let (tile, view) = (Arc::clone(self.tile(op, 0)?), self.view_of(op, 1)?);
                must_fit(&tile, &view.ty)?;
                for line in self.lines(&view, op.group(2))? {
                    write_line(host, &view.tensor, &line, &tile.data, order)?;
                }
                Ok(vec![Value::Token])
            }
            _ => {
                let (view, tile) = (self.view_of(op, 0)?, Arc::clone(self.tile(op, 2)?));
                must_fit(&tile, &view.ty)?;
                let (mode, element) = (mode(op)?, tile.element);
                for line in self.lines(&view, op.group(1))? {
                    for i in 0..line.count {
                        let new = tile.data.get(line.first + i * line.step);
                        let address = element_address(&view.tensor, line.at + i as i64);
                        host.update(address, element.bytes(), atomically, false, &mut |old| {
                            Some(combine(mode, element, old, new))
                        })
                        .map_err(Stop::Fault)?;
                    }
                }
                Ok(vec![Value::Token])
            }
        }
    }

    fn view_of(&self, op: &Op, group: usize) -> Result<View, String> {
        match op.group(group) {
            [number] => match self.value(*number)? {
                Value::View(view) => Ok(view.clone()),
                _ => Err("an operand is no view".to_string()),
            },
            _ => Err("an operand is missing".to_string()),
        }
    }

    pub(super) fn view(&self, module: &Module, op: &Op) -> Result<Value, String> {
        let ty = op.results.first().map(|&ty| module.types.known(ty));
        match (op.code, ty) {
            (Code::MakeTensorView, Some(Type::Tensor(ty))) => {
                let base = self.tile(op, 0)?.data.get(0);
                let fill = |known: &[Option<i64>], group: usize| -> Result<Vec<i64>, String> {
                    let mut given = op.group(group).iter();
                    let filled: Vec<i64> = known
                        .iter()
                        .map(|size| match size {
                            Some(size) => Ok(*size),
                            None => match given.next() {
                                Some(&number) => Ok(self.tile_of(number)?.signed(0)),
                                None => Err("a size is missing".to_string()),
                            },
                        })
                        .collect::<Result<_, _>>()?;
                    match given.next() {
                        None => Ok(filled),
                        Some(_) => Err("there are sizes too many".to_string()),
                    }
                };
                Ok(Value::Tensor(Arc::new(Tensor {
                    base,
                    element: ty.element,
                    shape: fill(&ty.shape, 1)?,
                    strides: fill(&ty.strides, 2)?,
                })))
            }
            (_, Some(Type::View(ty))) => match op.group(0) {
                [number] => match self.value(*number)? {
                    Value::Tensor(tensor)
                        if tensor.element == ty.tensor.element && tensor.shape.len() == ty.tile.len() =>
                    {
                        Ok(Value::View(View {
                            tensor: Arc::clone(tensor),
                            ty: Arc::clone(ty),
                        }))
                    }
                    _ => Err("the operand is no tensor of the view's".to_string()),
                },
                _ => Err("the operand is missing".to_string()),
            },
            _ => Err("the result is no view".to_string()),
        }
    }

    /// The sizes of a tensor, or how many tiles there are.
    pub(super) fn extents(&self, module: &Module, op: &Op) -> Result<Vec<Value>, String> {
        let [number] = op.group(0) else {
            return Err("the operand is missing".to_string());
        };
        let sizes: Vec<i64> = match self.value(*number)? {
            Value::Tensor(tensor) => tensor.shape.clone(),
            Value::View(view) => {
                let of = |at: usize| view.tensor.shape[view.ty.map[at]];
                let tiles = |at: usize, step: i64| (of(at) + step - 1).div_euclid(step);
                (0..view.ty.tile.len())
                    .map(|at| match &view.ty.walk {
                        Walk::Grid { steps } => tiles(at, steps[at]),
                        Walk::Gather { .. } => of(at),
                    })
                    .collect()
            }
            _ => return Err("the operand has no sizes".to_string()),
        };
        sizes
            .iter()
            .zip(&op.results)
            .map(|(&size, &ty)| match module.types.known(ty) {
                Type::Tile(ty) if ty.element.is_integer() => {
                    let scalar = Tile::scalar(ty.element, size as u64 & mask(ty.element.bits()));
                    Ok(Value::Tile(Arc::new(scalar)))
                }
                _ => Err("a size that is no integer".to_string()),
            })
            .collect()
    }

    /// What of a tile lies in its tensor, in runs along the dimension whose elements are next to each other, if there is one.
    fn lines(&self, view: &View, indices: &[u32]) -> Result<Vec<Line>, String> {
        let (ty, tensor) = (&*view.ty, &*view.tensor);
        let rank = ty.tile.len();
        if indices.len() != rank {
            return Err(format!("{} indices of {rank} dimensions", indices.len()));
        }
        // Of each dimension, which indices of the tensor the tile has.
        let mut dimensions: Vec<Vec<i64>> = Vec::with_capacity(rank);
        for (at, &number) in indices.iter().enumerate() {
            let index = self.tile_of(number)?;
            let size = i64::from(ty.tile[at]);
            let from = |step: i64| {
                let start = index.signed(0).wrapping_mul(step);
                (0..size).map(|i| start.wrapping_add(i)).collect()
            };
            dimensions.push(match &ty.walk {
                Walk::Grid { steps } => from(steps[at]),
                Walk::Gather { dimension } if *dimension == at => {
                    if index.len() != size as usize {
                        return Err(format!("{} rows of {size}", index.len()));
                    }
                    (0..index.len()).map(|i| index.signed(i)).collect()
                }
                // Where there is no grid, indices count elements, as cuTile has it.
                Walk::Gather { .. } => from(1),
            });
        }
        let is_in = |at: usize, index: i64| (0..tensor.shape[ty.map[at]]).contains(&index);
        let stride = |at: usize| tensor.strides[ty.map[at]];
        let own = row_strides(&ty.tile);
        let is_row = |at: usize| match &ty.walk {
            Walk::Grid { .. } => stride(at) == 1,
            Walk::Gather { dimension } => stride(at) == 1 && *dimension != at,
        };
        let along = (0..rank).rev().find(|&at| is_row(at) && ty.tile[at] > 1);
        // The run's start and length: indices follow each other, and those inside of the tensor do, too.
        let (skip, count, first) = match along {
            None => (0, 1, None),
            Some(at) => {
                let all = &dimensions[at];
                let skip = all.iter().take_while(|&&index| !is_in(at, index)).count();
                let count = all[skip..].iter().take_while(|&&index| is_in(at, index)).count();
                (skip, count, all.get(skip).copied())
            }
        };
        let mut lines = Vec::new();
        if count == 0 {
            return Ok(lines);
        }
        let (start, step) = along.map_or((0, 1), |at| (skip * own[at], own[at]));
        let others: Vec<usize> = (0..rank).filter(|&at| Some(at) != along).collect();
        let mut index = vec![0_usize; rank];
        loop {
            let inside = others.iter().all(|&at| is_in(at, dimensions[at][index[at]]));
            if inside {
                let offset = |at: usize| dimensions[at][index[at]].wrapping_mul(stride(at));
                let place = others
                    .iter()
                    .fold(first.unwrap_or(0), |sum, &at| sum.wrapping_add(offset(at)));
                let first = others.iter().fold(start, |sum, &at| sum + index[at] * own[at]);
                lines.push(Line {
                    first,
                    step,
                    count,
                    at: place,
                });
            }
            let Some(&next) = others.iter().rev().find(|&&at| index[at] + 1 < ty.tile[at] as usize) else {
                return Ok(lines);
            };
            index[next] += 1;
            for &at in others.iter().filter(|&&at| at > next) {
                index[at] = 0;
            }
        }
    }
}

/// Atomics by each of a tile's pointers that is followed: what was there, and a token.
fn update_each<H: Host>(
    host: &mut H,
    pointers: &Tile,
    on: Option<&Tile>,
    element: Element,
    (strength, is_swap): (Strength, bool),
    new: impl Fn(usize, u64) -> Option<u64>,
) -> Result<Vec<Value>, Stop<H::Fault>> {
    let mut old = Vec::with_capacity(pointers.len());
    for at in 0..pointers.len() {
        let address = pointers.data.get(at);
        old.push(match is_on(on, at)? {
            true => host
                .update(address, element.bytes(), strength, is_swap, &mut |old| new(at, old))
                .map_err(Stop::Fault)?,
            false => 0,
        });
    }
    let tile = Tile {
        shape: pointers.shape.clone(),
        element,
        data: Data::collect(element, old.into_iter()),
    };
    Ok(vec![Value::Tile(Arc::new(tile)), Value::Token])
}

/// One of the modes that [`combine`] has.
fn mode(op: &Op) -> Result<u64, String> {
    match op.number(2) {
        mode @ ..=9 => Ok(mode),
        other => Err(format!("an atomic of kind {other}")),
    }
}

fn result_type<'a>(module: &'a Module, op: &Op) -> Result<&'a TileType, String> {
    match op.results.first().map(|&ty| module.types.known(ty)) {
        Some(Type::Tile(ty)) => Ok(ty),
        _ => Err("the result is no tile".to_string()),
    }
}

fn same_shape(a: &Tile, b: &Tile) -> Result<(), String> {
    match a.shape == b.shape {
        true => Ok(()),
        false => Err(format!("tiles of {:?} and {:?} elements", &a.shape[..], &b.shape[..])),
    }
}

fn must_fit(tile: &Tile, view: &ViewType) -> Result<(), String> {
    match tile.shape == view.tile && tile.element == view.tensor.element {
        true => Ok(()),
        false => Err("the tile is none of the view's".to_string()),
    }
}

fn is_on(mask: Option<&Tile>, at: usize) -> Result<bool, String> {
    match mask {
        None => Ok(true),
        Some(tile) if at < tile.len() => Ok(tile.data.get(at) != 0),
        Some(tile) if tile.len() == 1 => Ok(tile.data.get(0) != 0),
        Some(_) => Err("a mask of fewer elements".to_string()),
    }
}

fn padding(element: Element, padding: Option<Padding>) -> Result<u64, String> {
    let value = match padding {
        None | Some(Padding::Zero) => return Ok(0),
        Some(Padding::NegativeZero) => -0.0,
        Some(Padding::Nan) => f64::NAN,
        Some(Padding::Infinity) => f64::INFINITY,
        Some(Padding::NegativeInfinity) => f64::NEG_INFINITY,
    };
    match element.is_float() {
        true => Ok(from_f64(element, value, Rounding::Rn)),
        false => Err(format!("padding with {value} of {element}")),
    }
}

/// The address of an element, if it has bytes of its own.
fn element_address(tensor: &Tensor, at: i64) -> u64 {
    let bytes = i64::from(tensor.element.bytes());
    tensor.base.wrapping_add(at.wrapping_mul(bytes) as u64)
}

/// As tiles keep it: a truth value is one bit, whatever else a byte in memory has.
fn in_tile(element: Element, bits: u64) -> u64 {
    match element {
        Element::I1 => u64::from(bits != 0),
        _ => bits & mask(element.bits()),
    }
}

fn read_line<H: Host>(
    host: &mut H,
    tensor: &Tensor,
    line: &Line,
    data: &mut Data,
    order: Option<Strength>,
) -> Result<(), Stop<H::Fault>> {
    let element = tensor.element;
    if element.is_packed() {
        let (bytes, first) = packed_bytes(host, tensor, line)?;
        if let Data::B8(all) = data {
            for i in 0..line.count {
                let at = first + i;
                all[line.first + i * line.step] = bytes[at / 2] >> (4 * (at % 2)) & 15;
            }
        }
        return Ok(());
    }
    let place = (line.first, line.step, line.count);
    read_row(host, element_address(tensor, line.at), element, data, place, order)
}

/// So many elements that are next to each other in memory, and `step` apart in a tile, from `first` on.
fn read_row<H: Host>(
    host: &mut H,
    address: u64,
    element: Element,
    data: &mut Data,
    (first, step, count): (usize, usize, usize),
    order: Option<Strength>,
) -> Result<(), Stop<H::Fault>> {
    let read = match order {
        Some(order) => {
            let bytes = element.bytes();
            let mut bits = Vec::with_capacity(count);
            for i in 0..count as u64 {
                let loaded = host.load(address.wrapping_add(i * u64::from(bytes)), bytes, order);
                bits.push(in_tile(element, loaded.map_err(Stop::Fault)?));
            }
            Data::collect(element, bits.into_iter())
        }
        None => {
            let mut raw = vec![0; count * element.bytes() as usize];
            host.read(address, element.bytes(), &mut raw).map_err(Stop::Fault)?;
            if element.bits() < 8 {
                raw.iter_mut()
                    .for_each(|byte| *byte = in_tile(element, (*byte).into()) as u8);
            }
            Data::from_bytes(element, &raw)
        }
    };
    macro_rules! put {
        ($into:expr, $from:expr) => {
            for (i, bits) in $from.into_iter().enumerate() {
                $into[first + i * step] = bits;
            }
        };
    }
    match (data, read) {
        (Data::B8(into), Data::B8(from)) => put!(into, from),
        (Data::B16(into), Data::B16(from)) => put!(into, from),
        (Data::B32(into), Data::B32(from)) => put!(into, from),
        (Data::B64(into), Data::B64(from)) => put!(into, from),
        _ => return Err("a tile of another width than its tensor".to_string().into()),
    }
    Ok(())
}

fn write_line<H: Host>(
    host: &mut H,
    tensor: &Tensor,
    line: &Line,
    data: &Data,
    order: Option<Strength>,
) -> Result<(), Stop<H::Fault>> {
    let element = tensor.element;
    if element.is_packed() {
        let places = (0..line.count).map(|i| line.first + i * line.step);
        // What shares a byte with the first or the last one stays as it is.
        let (mut bytes, first) = packed_bytes(host, tensor, line)?;
        for (i, place) in places.enumerate() {
            let (at, shift) = ((first + i) / 2, 4 * ((first + i) % 2));
            bytes[at] = bytes[at] & !(15 << shift) | (data.get(place) as u8 & 15) << shift;
        }
        return host.write(packed_address(tensor, line), 1, &bytes).map_err(Stop::Fault);
    }
    let place = (line.first, line.step, line.count);
    write_row(host, element_address(tensor, line.at), element, data, place, order)
}

/// As [`read_row`], the other way.
fn write_row<H: Host>(
    host: &mut H,
    address: u64,
    element: Element,
    data: &Data,
    (first, step, count): (usize, usize, usize),
    order: Option<Strength>,
) -> Result<(), Stop<H::Fault>> {
    let (bytes, places) = (element.bytes(), (0..count).map(|i| first + i * step));
    match order {
        Some(order) => places.zip(0_u64..).try_for_each(|(place, i)| {
            let address = address.wrapping_add(i * u64::from(bytes));
            host.store(address, bytes, data.get(place), order).map_err(Stop::Fault)
        }),
        None => host
            .write(address, bytes, &data.pick(places).to_bytes())
            .map_err(Stop::Fault),
    }
}

/// Runs of a tile's pointers that are followed and point to neighbours: where each begins, and how long it is.
fn neighbours(pointers: &Tile, on: Option<&Tile>, element: Element) -> Result<Vec<(usize, usize)>, String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in 0..pointers.len() {
        if !is_on(on, at)? {
            continue;
        }
        match runs.last_mut() {
            Some((first, count))
                if *first + *count == at
                    && pointers.data.get(at)
                        == pointers
                            .data
                            .get(*first)
                            .wrapping_add(*count as u64 * u64::from(element.bytes())) =>
            {
                *count += 1;
            }
            _ => runs.push((at, 1)),
        }
    }
    Ok(runs)
}

fn packed_address(tensor: &Tensor, line: &Line) -> u64 {
    tensor.base.wrapping_add(line.at.div_euclid(2) as u64)
}

/// The bytes that hold a run of elements of four bits, and whether it begins in the middle of the first.
fn packed_bytes<H: Host>(host: &mut H, tensor: &Tensor, line: &Line) -> Result<(Vec<u8>, usize), Stop<H::Fault>> {
    let first = line.at.rem_euclid(2) as usize;
    let mut bytes = vec![0; (first + line.count).div_ceil(2)];
    host.read(packed_address(tensor, line), 1, &mut bytes)
        .map_err(Stop::Fault)?;
    Ok((bytes, first))
}
