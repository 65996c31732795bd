//! Reductions and prefixes. The function that they fold with is associative, so that halves of a dimension are folded with each
//! other, as a whole: its operations are carried out on tiles of which each element is a call of its own. If it has an `if` on
//! which elements differ, it is called for each by itself.

use std::sync::Arc;

use super::Run;
use super::shape::at_index;
use crate::tile::op::Code;
use crate::tile::read::{Module, Op};
use crate::tile::types::{Element, Shape, Type};
use crate::tile::value::{Data, Tile, Value};

/// Why a function was not carried out for all elements at once.
enum Parts {
    Differ,
    Wrong(String),
}

impl From<String> for Parts {
    fn from(why: String) -> Parts {
        Parts::Wrong(why)
    }
}

impl Run {
    pub(super) fn fold(&mut self, module: &Module, op: &Op) -> Result<Vec<Value>, String> {
        let tiles: Vec<Arc<Tile>> = op
            .operands
            .iter()
            .map(|&number| self.tile_of(number).cloned())
            .collect::<Result<_, _>>()?;
        let dimension = op.number(0) as usize;
        let Some(first) = tiles.first() else {
            return Err("it folds nothing".to_string());
        };
        let shape = first.shape.clone();
        if dimension >= shape.len() || tiles.iter().any(|tile| tile.shape != shape) {
            return Err(format!("dimension {dimension} of {:?} elements", &shape[..]));
        }
        match op.code {
            Code::Reduce => self.reduce(module, op, &tiles, dimension),
            _ => self.scan(module, op, &tiles, dimension),
        }
    }

    fn reduce(
        &mut self,
        module: &Module,
        op: &Op,
        tiles: &[Arc<Tile>],
        dimension: usize,
    ) -> Result<Vec<Value>, String> {
        let mut rest: Vec<Tile> = tiles.iter().map(|tile| Tile::clone(tile)).collect();
        let mut size = rest[0].shape[dimension];
        while size > 1 {
            size /= 2;
            let half = |tile: &Tile, upper: usize| {
                let start = upper * size as usize;
                let mut shape = tile.shape.clone();
                shape[dimension] = size;
                Tile {
                    shape,
                    element: tile.element,
                    data: at_index(tile, dimension, start..start + size as usize),
                }
            };
            let arguments = rest.iter().flat_map(|tile| [half(tile, 1), half(tile, 0)]).collect();
            rest = self.call(module, op.regions[0], arguments)?;
        }
        Ok(rest
            .into_iter()
            .map(|mut tile| {
                tile.shape.remove(dimension);
                Value::Tile(Arc::new(tile))
            })
            .collect())
    }

    /// Each element with the one so many places before it, for twice as many each time.
    fn scan(&mut self, module: &Module, op: &Op, tiles: &[Arc<Tile>], dimension: usize) -> Result<Vec<Value>, String> {
        let is_reversed = op.number(1) != 0;
        let mut all: Vec<Tile> = tiles.iter().map(|tile| Tile::clone(tile)).collect();
        let size = all[0].shape[dimension] as usize;
        let mut by = 1;
        while by < size {
            // The elements that have one before them, and those.
            let (own, before) = match is_reversed {
                false => (by..size, 0..size - by),
                true => (0..size - by, by..size),
            };
            let part = |tile: &Tile, range: std::ops::Range<usize>| {
                let data = at_index(tile, dimension, range);
                let mut shape = Shape::new();
                shape.push(data.len() as u32);
                Tile {
                    shape,
                    element: tile.element,
                    data,
                }
            };
            let arguments = all
                .iter()
                .flat_map(|tile| [part(tile, own.clone()), part(tile, before.clone())])
                .collect();
            let folded = self.call(module, op.regions[0], arguments)?;
            for (tile, folded) in all.iter_mut().zip(folded) {
                put_at(tile, dimension, own.clone(), &folded.data);
            }
            by *= 2;
        }
        Ok(all.into_iter().map(|tile| Value::Tile(Arc::new(tile))).collect())
    }

    /// The function of a fold, for all elements of its arguments: element by element, if it has to be.
    fn call(&mut self, module: &Module, block: u32, arguments: Vec<Tile>) -> Result<Vec<Tile>, String> {
        let (shape, len) = (arguments[0].shape.clone(), arguments[0].len());
        let in_shape = |data: Data, element: Element| -> Result<Tile, String> {
            match data.len() {
                all if all == len => Ok(Tile {
                    shape: shape.clone(),
                    element,
                    data,
                }),
                // What does not depend on its arguments.
                1 => Ok(Tile {
                    shape: shape.clone(),
                    element,
                    data: Data::splat(element, len, data.get(0)),
                }),
                other => Err(format!("{other} results for {len} elements")),
            }
        };
        let whole = arguments
            .iter()
            .cloned()
            .map(|tile| Value::Tile(Arc::new(tile)))
            .collect();
        match self.evaluate(module, block, whole) {
            Ok(results) => results
                .iter()
                .map(|tile| in_shape(tile.data.clone(), tile.element))
                .collect(),
            Err(Parts::Wrong(why)) => Err(why),
            Err(Parts::Differ) => {
                let mut results: Vec<Vec<u64>> = vec![Vec::with_capacity(len); arguments.len() / 2];
                for at in 0..len {
                    let scalar = |tile: &Tile| Value::Tile(Arc::new(Tile::scalar(tile.element, tile.data.get(at))));
                    match self.evaluate(module, block, arguments.iter().map(scalar).collect()) {
                        Ok(scalars) if scalars.len() == results.len() => {
                            results
                                .iter_mut()
                                .zip(scalars)
                                .for_each(|(all, one)| all.push(one.data.get(0)));
                        }
                        Ok(_) => return Err("it yields another number of values than it folds".to_string()),
                        Err(Parts::Wrong(why)) => return Err(why),
                        Err(Parts::Differ) => return Err("an `if` on a tile".to_string()),
                    }
                }
                let elements = arguments.iter().step_by(2).map(|tile| tile.element);
                elements
                    .zip(results)
                    .map(|(element, bits)| in_shape(Data::collect(element, bits.into_iter()), element))
                    .collect()
            }
        }
    }

    /// What a block of operations that compute yields.
    fn evaluate(&mut self, module: &Module, block: u32, arguments: Vec<Value>) -> Result<Vec<Arc<Tile>>, Parts> {
        let block = &module.entries[self.entry].blocks[block as usize];
        if arguments.len() != block.arguments as usize {
            return Err(format!(
                "{} values for a block of {} arguments",
                arguments.len(),
                block.arguments
            )
            .into());
        }
        let first = block.first_argument as usize;
        arguments
            .into_iter()
            .zip(first..)
            .try_for_each(|(value, at)| self.put(at, value))?;
        for op in &block.ops {
            let results = match op.code {
                Code::Yield => {
                    let values = op.operands.iter().map(|&number| self.tile_of(number).cloned());
                    return values.collect::<Result<_, _>>().map_err(Parts::Wrong);
                }
                Code::If => {
                    let condition = self.tile(op, 0)?;
                    let bits = condition.data.get(0);
                    if (1..condition.len()).any(|at| condition.data.get(at) != bits) {
                        return Err(Parts::Differ);
                    }
                    match op.regions.get(usize::from(bits == 0)) {
                        Some(&taken) => {
                            let results = self.evaluate(module, taken, Vec::new())?;
                            results.into_iter().map(Value::Tile).collect()
                        }
                        None => Vec::new(),
                    }
                }
                _ => self.pure(module, op)?,
            };
            if results.len() != op.results.len() {
                return Err(format!("`{}` has {} results", op.code.layout().name, results.len()).into());
            }
            for (at, (value, &ty)) in results.into_iter().zip(&op.results).enumerate() {
                // Of scalars there are as many as elements are folded at once.
                let fits = match (&value, module.types.known(ty)) {
                    (Value::Tile(tile), Type::Tile(ty)) => tile.element == ty.element && ty.shape.is_empty(),
                    _ => false,
                };
                if !fits {
                    return Err(format!("`{}` does not compute a scalar", op.code.layout().name).into());
                }
                self.put(op.first_result as usize + at, value)?;
            }
        }
        Err("a block that yields nothing".to_string().into())
    }
}

/// Puts elements back to where [`at_index`] has them from.
fn put_at(tile: &mut Tile, dimension: usize, range: std::ops::Range<usize>, from: &Data) {
    let size = tile.shape[dimension] as usize;
    let inner: usize = tile.shape[dimension + 1..].iter().map(|&size| size as usize).product();
    let part = range.len() * inner;
    macro_rules! put {
        ($into:expr, $from:expr) => {
            for (chunk, from) in $into.chunks_exact_mut(size * inner).zip($from.chunks_exact(part)) {
                chunk[range.start * inner..range.end * inner].copy_from_slice(from);
            }
        };
    }
    match (&mut tile.data, from) {
        (Data::B8(into), Data::B8(from)) => put!(into, from),
        (Data::B16(into), Data::B16(from)) => put!(into, from),
        (Data::B32(into), Data::B32(from)) => put!(into, from),
        (Data::B64(into), Data::B64(from)) => put!(into, from),
        _ => {}
    }
}
