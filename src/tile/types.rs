//! Types (CUDA Tile IR Reference, Type System).

use std::fmt;
use std::sync::Arc;

use arrayvec::ArrayVec;

use super::bytes::Bytes;
use super::error::Error;

/// Dimensions that a tile may have here.
pub const MAX_RANK: usize = 8;
/// Elements that one may have.
pub const MAX_ELEMENTS: usize = 1 << 24;

pub type Shape = ArrayVec<u32, MAX_RANK>;

/// What tiles and memory hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    Tf32,
    F64,
    E4m3,
    E5m2,
    E8m0,
    E2m1,
    Pointer,
}

impl Element {
    fn of_tag(tag: u64) -> Option<Element> {
        Some(match tag {
            0 => Element::I1,
            1 => Element::I8,
            2 => Element::I16,
            3 => Element::I32,
            4 => Element::I64,
            5 => Element::F16,
            6 => Element::Bf16,
            7 => Element::F32,
            8 => Element::Tf32,
            9 => Element::F64,
            10 => Element::E4m3,
            11 => Element::E5m2,
            18 => Element::E8m0,
            19 => Element::E2m1,
            22 => Element::I4,
            _ => return None,
        })
    }

    /// Bits of a value.
    pub fn bits(self) -> u32 {
        match self {
            Element::I1 => 1,
            Element::I4 | Element::E2m1 => 4,
            Element::I8 | Element::E4m3 | Element::E5m2 | Element::E8m0 => 8,
            Element::I16 | Element::F16 | Element::Bf16 => 16,
            Element::I32 | Element::F32 | Element::Tf32 => 32,
            Element::I64 | Element::F64 | Element::Pointer => 64,
        }
    }

    /// Bytes that one takes in memory by itself, and in a tile; of four bits two are packed in memory's.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub fn is_packed(self) -> bool {
        self.bits() == 4
    }

    pub fn is_float(self) -> bool {
        match self {
            Element::F16
            | Element::Bf16
            | Element::F32
            | Element::Tf32
            | Element::F64
            | Element::E4m3
            | Element::E5m2
            | Element::E8m0
            | Element::E2m1 => true,
            Element::I1 | Element::I4 | Element::I8 | Element::I16 | Element::I32 | Element::I64 | Element::Pointer => {
                false
            }
        }
    }

    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Element::Pointer
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::I1 => "i1",
            Element::I4 => "i4",
            Element::I8 => "i8",
            Element::I16 => "i16",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::F32 => "f32",
            Element::Tf32 => "tf32",
            Element::F64 => "f64",
            Element::E4m3 => "f8E4M3FN",
            Element::E5m2 => "f8E5M2",
            Element::E8m0 => "f8E8M0FNU",
            Element::E2m1 => "f4E2M1FN",
            Element::Pointer => "ptr",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileType {
    pub shape: Shape,
    pub element: Element,
    /// What pointers point to.
    pub pointee: Option<Element>,
}

impl TileType {
    pub fn len(&self) -> usize {
        self.shape.iter().map(|&size| size as usize).product()
    }
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tile<")?;
        self.shape.iter().try_for_each(|size| write!(f, "{size}x"))?;
        match self.pointee {
            Some(pointee) => write!(f, "ptr<{pointee}>>"),
            None => write!(f, "{}>", self.element),
        }
    }
}

/// A tensor in memory. `None`: a size or a stride that is known only when the kernel runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    pub element: Element,
    pub shape: Vec<Option<i64>>,
    pub strides: Vec<Option<i64>>,
}

/// How tiles lie in a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Next to each other, or so many elements from one to the next.
    Grid { steps: Box<[i64]> },
    /// Rows of this dimension are named one by one.
    Gather { dimension: usize },
}

/// What is read outside of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    Zero,
    NegativeZero,
    Nan,
    Infinity,
    NegativeInfinity,
}

/// Tiles of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewType {
    pub tensor: Arc<TensorType>,
    pub tile: Shape,
    /// Of each dimension of the tile, which one of the tensor it is.
    pub map: Box<[usize]>,
    pub walk: Walk,
    pub padding: Option<Padding>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Element(Element),
    Pointer(Element),
    Tile(Arc<TileType>),
    Tensor(Arc<TensorType>),
    View(Arc<ViewType>),
    Function { parameters: Box<[u32]> },
    Token,
}

/// Types by their numbers.
pub struct Types(Vec<Type>);

impl Types {
    /// `minor`: of the bytecode's version, 13.`minor`.
    pub fn read(section: Bytes<'_>, minor: u8) -> Result<Types, Error> {
        let entries = section.table(4)?;
        let mut reading = Reading {
            done: vec![None; entries.len()],
            entries,
            minor,
            depth: 0,
        };
        let count = reading.done.len() as u32;
        let all: Result<_, _> = (0..count)
            .map(|index| reading.get(index, &Bytes::new(&[], 0)))
            .collect();
        Ok(Types(all?))
    }

    pub fn get(&self, index: u32, at: &Bytes<'_>) -> Result<&Type, Error> {
        self.0
            .get(index as usize)
            .ok_or_else(|| at.wrong(format!("type {index}, of {}", self.0.len())))
    }

    /// A type that an operation has: all of those were looked up when it was read.
    pub fn known(&self, index: u32) -> &Type {
        &self.0[index as usize]
    }

    pub fn tile(&self, index: u32, at: &Bytes<'_>) -> Result<&Arc<TileType>, Error> {
        match self.get(index, at)? {
            Type::Tile(tile) => Ok(tile),
            _ => Err(at.wrong(format!("type {index} is no tile"))),
        }
    }
}

/// Types while they are read: one may name others that stand behind it.
struct Reading<'a> {
    entries: Vec<Bytes<'a>>,
    done: Vec<Option<Type>>,
    minor: u8,
    /// How many types are being read, each for the one before.
    depth: u32,
}

/// A view of a tensor of numbers is as deep as types get.
const DEEPEST: u32 = 8;

impl Reading<'_> {
    fn get(&mut self, index: u32, at: &Bytes<'_>) -> Result<Type, Error> {
        let place = index as usize;
        let Some(entry) = self.entries.get(place) else {
            return Err(at.wrong(format!("type {index}, of {}", self.entries.len())));
        };
        if let Some(known) = &self.done[place] {
            return Ok(known.clone());
        }
        let entry = entry.clone();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(entry.wrong("types that consist of each other"));
        }
        let read = self.one(entry)?;
        self.depth -= 1;
        self.done[place] = Some(read.clone());
        Ok(read)
    }

    fn element(&mut self, bytes: &mut Bytes<'_>) -> Result<Element, Error> {
        let index = bytes.index()?;
        match self.get(index, bytes)? {
            Type::Element(element) => Ok(element),
            _ => Err(bytes.wrong(format!("type {index} is no number"))),
        }
    }

    fn tensor(&mut self, bytes: &mut Bytes<'_>) -> Result<Arc<TensorType>, Error> {
        let index = bytes.index()?;
        match self.get(index, bytes)? {
            Type::Tensor(tensor) => Ok(tensor),
            _ => Err(bytes.wrong(format!("type {index} is no tensor_view"))),
        }
    }

    fn one(&mut self, mut bytes: Bytes<'_>) -> Result<Type, Error> {
        let minor = self.minor;
        let tag = bytes.number()?;
        if let Some(element) = Element::of_tag(tag) {
            return Ok(Type::Element(element));
        }
        // Which optional parameters there are: of types that had them from the first, since 13.3; of others, since they had.
        let flags = |bytes: &mut Bytes<'_>, since: u8| if minor >= since { bytes.number() } else { Ok(0) };
        match tag {
            12 => {
                flags(&mut bytes, 4)?;
                Ok(Type::Pointer(self.element(&mut bytes)?))
            }
            13 => {
                let index = bytes.index()?;
                let (element, pointee) = match self.get(index, &bytes)? {
                    Type::Element(element) => (element, None),
                    Type::Pointer(pointee) => (Element::Pointer, Some(pointee)),
                    _ => return Err(bytes.wrong(format!("a tile of type {index}"))),
                };
                let shape = bytes.integers(8)?;
                let shape = tile_shape(&shape, &bytes)?;
                Ok(Type::Tile(Arc::new(TileType {
                    shape,
                    element,
                    pointee,
                })))
            }
            14 => {
                flags(&mut bytes, 4)?;
                let element = self.element(&mut bytes)?;
                let known = |size: i64| (size != i64::MIN).then_some(size);
                let shape: Vec<_> = bytes.integers(8)?.into_iter().map(known).collect();
                let strides: Vec<_> = bytes.integers(8)?.into_iter().map(known).collect();
                if shape.len() != strides.len() || shape.len() > MAX_RANK {
                    return Err(bytes.wrong(format!(
                        "a tensor_view of {} sizes and {} strides",
                        shape.len(),
                        strides.len()
                    )));
                }
                Ok(Type::Tensor(Arc::new(TensorType {
                    element,
                    shape,
                    strides,
                })))
            }
            15 | 20 | 21 => {
                let written = match tag {
                    15 => flags(&mut bytes, 3)?,
                    _ => bytes.number()?,
                };
                let tile = bytes.integers(4)?;
                let tile = tile_shape(&tile, &bytes)?;
                let steps = match tag {
                    21 => bytes.integers(4)?.into(),
                    _ => tile.iter().map(|&size| i64::from(size)).collect(),
                };
                let tensor = self.tensor(&mut bytes)?;
                let (map, walk) = match tag {
                    20 => {
                        let dimension = bytes.index()? as usize;
                        let map: Vec<i64> = (0..tile.len() as i64).collect();
                        (map, Walk::Gather { dimension })
                    }
                    _ => (bytes.integers(4)?, Walk::Grid { steps }),
                };
                // Before 13.3 a byte said whether there is padding.
                let padded = match (tag, minor) {
                    (15, ..3) => bytes.byte()? != 0,
                    _ => written & 1 != 0,
                };
                let padding = match padded {
                    true => Some(padding(&mut bytes)?),
                    false => None,
                };
                let map: Box<[usize]> = map.iter().map(|&at| at as usize).collect();
                let fits = map.len() == tile.len()
                    && tensor.shape.len() == tile.len()
                    && (0..tile.len()).all(|dimension| map.contains(&dimension))
                    && match &walk {
                        Walk::Grid { steps } => steps.len() == tile.len() && steps.iter().all(|&step| step > 0),
                        Walk::Gather { dimension } => *dimension < tile.len(),
                    };
                if !fits {
                    return Err(bytes.wrong("a view whose dimensions are not those of its tensor"));
                }
                Ok(Type::View(Arc::new(ViewType {
                    tensor,
                    tile,
                    map,
                    walk,
                    padding,
                })))
            }
            16 => {
                let count = bytes.count()?;
                let parameters = (0..count).map(|_| bytes.index()).collect::<Result<_, _>>()?;
                if bytes.count()? != 0 {
                    return Err(bytes.wrong("a kernel that returns something"));
                }
                Ok(Type::Function { parameters })
            }
            17 => Ok(Type::Token),
            130 => Err(Error::Unsupported {
                what: "type f8E5M3FNU".into(),
            }),
            _ => Err(bytes.wrong(format!("a type of kind {tag}"))),
        }
    }
}

fn tile_shape(sizes: &[i64], at: &Bytes<'_>) -> Result<Shape, Error> {
    let mut shape = Shape::new();
    let mut elements = 1_usize;
    for &size in sizes {
        let fits = size > 0 && size.count_ones() == 1 && size <= MAX_ELEMENTS as i64;
        elements = elements.saturating_mul(size.max(0) as usize);
        if !fits || elements > MAX_ELEMENTS || shape.try_push(size as u32).is_err() {
            return Err(at.wrong(format!("a tile of {sizes:?} elements")));
        }
    }
    Ok(shape)
}

fn padding(bytes: &mut Bytes<'_>) -> Result<Padding, Error> {
    Ok(match bytes.number()? {
        0 => Padding::Zero,
        1 => Padding::NegativeZero,
        2 => Padding::Nan,
        3 => Padding::Infinity,
        4 => Padding::NegativeInfinity,
        other => return Err(bytes.wrong(format!("padding of kind {other}"))),
    })
}
