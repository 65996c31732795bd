//! Operations that move elements and compute nothing.

use super::Run;
use crate::tile::op::Code;
use crate::tile::read::{Given, Op};
use crate::tile::types::{Element, Shape, TileType};
use crate::tile::value::{Data, Tile, Wide, row_strides, with_data};

impl Run {
    pub(super) fn arrange(&self, op: &Op, result: &TileType) -> Result<Tile, String> {
        match op.code {
            Code::Select => select(self.tile(op, 0)?, self.tile(op, 1)?, self.tile(op, 2)?),
            Code::Extract | Code::Insert => {
                let (tiles, indices) = op.operands.split_at(op.operands.len().min(match op.code {
                    Code::Extract => 1,
                    _ => 2,
                }));
                let tiles: Vec<_> = tiles
                    .iter()
                    .map(|&number| self.tile_of(number))
                    .collect::<Result<_, _>>()?;
                let indices: Vec<u64> = indices
                    .iter()
                    .map(|&number| Ok(self.tile_of(number)?.data.get(0)))
                    .collect::<Result<_, String>>()?;
                match *tiles {
                    [whole] => {
                        let places = slice(&whole.shape, &result.shape, &indices)?;
                        Ok(Tile::of(result, whole.data.pick(places.into_iter())))
                    }
                    [part, whole] => {
                        let places = slice(&whole.shape, &part.shape, &indices)?;
                        let mut filled = Tile::clone(whole);
                        put(&mut filled.data, &part.data, &places)?;
                        Ok(filled)
                    }
                    _ => Err("operands are missing".to_string()),
                }
            }
            code => {
                let from = self.tile(op, 0)?;
                match code {
                    Code::Reshape if from.len() == result.len() => Ok(Tile::of(result, from.data.clone())),
                    Code::Broadcast => broadcast(from, result),
                    Code::Permute => match op.attributes.first() {
                        Some(Given::List(order)) => permute(from, order),
                        _ => Err("it has no permutation".to_string()),
                    },
                    Code::Cat => cat(from, self.tile(op, 1)?, op.number(0)),
                    Code::Pack => Ok(Tile::of(result, Data::B8(packed(from))).checked(result.len())?),
                    Code::Unpack => Ok(Tile::of(result, unpacked(from, result.element)).checked(result.len())?),
                    _ => Err(format!("{} elements become {result}", from.len())),
                }
            }
        }
    }
}

impl Tile {
    fn checked(self, len: usize) -> Result<Tile, String> {
        match self.len() == len {
            true => Ok(self),
            false => Err(format!("{} elements, of {len}", self.len())),
        }
    }
}

/// Calls `each` for every element of a shape, in the order of rows, with the sum of its indices times these strides.
fn walk(shape: &[u32], strides: &[usize], mut each: impl FnMut(usize)) {
    let mut index: Vec<u32> = vec![0; shape.len()];
    let mut place = 0;
    loop {
        each(place);
        let mut at = shape.len();
        loop {
            if at == 0 {
                return;
            }
            at -= 1;
            index[at] += 1;
            place += strides[at];
            if index[at] < shape[at] {
                break;
            }
            place -= strides[at] * shape[at] as usize;
            index[at] = 0;
        }
    }
}

fn places(shape: &[u32], strides: &[usize]) -> Vec<usize> {
    let mut all = Vec::with_capacity(shape.iter().map(|&size| size as usize).product());
    walk(shape, strides, |place| all.push(place));
    all
}

/// Where the elements of one of the slices lie in the whole: the one of these indices, counted in slices.
fn slice(whole: &[u32], part: &[u32], indices: &[u64]) -> Result<Vec<usize>, String> {
    if whole.len() != part.len() || whole.len() != indices.len() {
        return Err(format!("{} indices of a slice {part:?} of {whole:?}", indices.len()));
    }
    let strides = row_strides(whole);
    let mut start = 0;
    for at in 0..whole.len() {
        let slices = u64::from(whole[at] / part[at]);
        if indices[at] >= slices {
            return Err(format!("slice {} of {slices} in dimension {at}", indices[at]));
        }
        start += indices[at] as usize * part[at] as usize * strides[at];
    }
    let mut all = places(part, &strides);
    all.iter_mut().for_each(|place| *place += start);
    Ok(all)
}

fn put(into: &mut Data, from: &Data, places: &[usize]) -> Result<(), String> {
    macro_rules! put {
        ($into:expr, $from:expr) => {
            places
                .iter()
                .zip($from)
                .for_each(|(&place, &bits)| $into[place] = bits)
        };
    }
    match (into, from) {
        (Data::B8(into), Data::B8(from)) => put!(into, from),
        (Data::B16(into), Data::B16(from)) => put!(into, from),
        (Data::B32(into), Data::B32(from)) => put!(into, from),
        (Data::B64(into), Data::B64(from)) => put!(into, from),
        _ => return Err("elements of two widths".to_string()),
    }
    Ok(())
}

fn broadcast(from: &Tile, result: &TileType) -> Result<Tile, String> {
    let fits = from.shape.len() == result.shape.len()
        && from
            .shape
            .iter()
            .zip(&result.shape)
            .all(|(&from, &to)| from == to || from == 1);
    if !fits {
        return Err(format!("from {:?} elements to {result}", &from.shape[..]));
    }
    if from.len() == 1 {
        return Ok(Tile::of(
            result,
            Data::splat(result.element, result.len(), from.data.get(0)),
        ));
    }
    let own = row_strides(&from.shape);
    let strides: Vec<usize> = own
        .iter()
        .zip(&from.shape)
        .map(|(&stride, &size)| if size == 1 { 0 } else { stride })
        .collect();
    Ok(Tile::of(
        result,
        from.data.pick(places(&result.shape, &strides).into_iter()),
    ))
}

fn permute(from: &Tile, order: &[i64]) -> Result<Tile, String> {
    let rank = from.shape.len();
    let is_order = order.len() == rank && (0..rank as i64).all(|at| order.contains(&at));
    if !is_order {
        return Err(format!("{order:?} of {rank} dimensions"));
    }
    let own = row_strides(&from.shape);
    let shape: Shape = order.iter().map(|&at| from.shape[at as usize]).collect();
    let strides: Vec<usize> = order.iter().map(|&at| own[at as usize]).collect();
    let data = from.data.pick(places(&shape, &strides).into_iter());
    Ok(Tile {
        shape,
        element: from.element,
        data,
    })
}

fn cat(a: &Tile, b: &Tile, dimension: u64) -> Result<Tile, String> {
    let at = dimension as usize;
    let fits = a.element == b.element
        && a.shape.len() == b.shape.len()
        && at < a.shape.len()
        && (0..a.shape.len()).all(|other| other == at || a.shape[other] == b.shape[other]);
    if !fits {
        return Err(format!(
            "{:?} and {:?} elements, in dimension {at}",
            &a.shape[..],
            &b.shape[..]
        ));
    }
    let mut shape = a.shape.clone();
    shape[at] += b.shape[at];
    let inner = |tile: &Tile| tile.shape[at..].iter().map(|&size| size as usize).product::<usize>();
    let (from_a, from_b) = (inner(a), inner(b));
    macro_rules! join {
        ($kind:ident, $a:expr, $b:expr) => {
            Data::$kind(
                $a.chunks_exact(from_a)
                    .zip($b.chunks_exact(from_b))
                    .flat_map(|(a, b)| a.iter().chain(b).copied())
                    .collect(),
            )
        };
    }
    let data = match (&a.data, &b.data) {
        (Data::B8(a), Data::B8(b)) => join!(B8, a, b),
        (Data::B16(a), Data::B16(b)) => join!(B16, a, b),
        (Data::B32(a), Data::B32(b)) => join!(B32, a, b),
        (Data::B64(a), Data::B64(b)) => join!(B64, a, b),
        _ => return Err("elements of two widths".to_string()),
    };
    Ok(Tile {
        shape,
        element: a.element,
        data,
    })
}

fn select(condition: &Tile, yes: &Tile, no: &Tile) -> Result<Tile, String> {
    let len = condition.len().max(yes.len()).max(no.len());
    let fits = |tile: &Tile| tile.len() == len || (tile.len() == 1 && tile.shape.is_empty());
    if yes.element != no.element || condition.element != Element::I1 || ![condition, yes, no].into_iter().all(fits) {
        return Err("operands that do not go together".to_string());
    }
    let shape = [condition, yes, no].into_iter().find(|tile| tile.len() == len);
    let shape = shape.map(|tile| tile.shape.clone()).unwrap_or_default();
    let at = |tile: &Tile, i: usize| if tile.len() == 1 { 0 } else { i };
    let chosen = |i: usize| condition.data.get(at(condition, i)) != 0;
    macro_rules! choose {
        ($kind:ident, $yes:expr, $no:expr) => {
            Data::$kind(
                (0..len)
                    .map(|i| {
                        if chosen(i) {
                            $yes[at(yes, i)]
                        } else {
                            $no[at(no, i)]
                        }
                    })
                    .collect(),
            )
        };
    }
    let data = match (&yes.data, &no.data) {
        (Data::B8(y), Data::B8(n)) => choose!(B8, y, n),
        (Data::B16(y), Data::B16(n)) => choose!(B16, y, n),
        (Data::B32(y), Data::B32(n)) => choose!(B32, y, n),
        (Data::B64(y), Data::B64(n)) => choose!(B64, y, n),
        _ => return Err("elements of two widths".to_string()),
    };
    Ok(Tile {
        shape,
        element: yes.element,
        data,
    })
}

/// The bytes of a tile, two elements of four bits in one, the first one below.
fn packed(tile: &Tile) -> Vec<u8> {
    match (&tile.data, tile.element.is_packed()) {
        (Data::B8(all), true) => all
            .chunks(2)
            .map(|two| two[0] | two.get(1).unwrap_or(&0) << 4)
            .collect(),
        _ => tile.data.to_bytes(),
    }
}

fn unpacked(bytes: &Tile, element: Element) -> Data {
    match (element.is_packed(), &bytes.data) {
        (true, Data::B8(all)) => Data::B8(all.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()),
        _ => Data::from_bytes(element, &bytes.data.to_bytes()),
    }
}

/// Elements of several tiles at the places where an index of one dimension is this one, as one row.
pub fn at_index(tile: &Tile, dimension: usize, index: std::ops::Range<usize>) -> Data {
    let size = tile.shape[dimension] as usize;
    let inner: usize = tile.shape[dimension + 1..].iter().map(|&size| size as usize).product();
    with_data!(&tile.data, all => {
        let parts = all.chunks_exact(size * inner).flat_map(|chunk| &chunk[index.start * inner..index.end * inner]);
        Data::collect(tile.element, parts.map(|&bits| bits.wide()))
    })
}
