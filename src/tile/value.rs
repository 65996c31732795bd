//! Tiles and views as they are while a kernel runs.

use std::sync::Arc;

use super::types::{Element, Shape, TileType, ViewType};

/// Elements in the order of rows. Where one has fewer bits than its place, the others are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    B8(Vec<u8>),
    B16(Vec<u16>),
    B32(Vec<u32>),
    B64(Vec<u64>),
}

/// An element as a number of 64 bits.
pub trait Wide: Copy {
    fn wide(self) -> u64;
}
macro_rules! wide {
    ($($type:ty)*) => {$(
        impl Wide for $type {
            fn wide(self) -> u64 {
                self as u64
            }
        }
    )*};
}
wide! { u8 u16 u32 u64 }

/// The same for every width.
macro_rules! with_data {
    ($data:expr, $each:ident => $body:expr) => {
        match $data {
            $crate::tile::value::Data::B8($each) => $body,
            $crate::tile::value::Data::B16($each) => $body,
            $crate::tile::value::Data::B32($each) => $body,
            $crate::tile::value::Data::B64($each) => $body,
        }
    };
}

pub(crate) use with_data;

impl Data {
    /// So many zeros.
    pub fn zeros(element: Element, len: usize) -> Data {
        Data::splat(element, len, 0)
    }

    pub fn splat(element: Element, len: usize, bits: u64) -> Data {
        match element.bytes() {
            1 => Data::B8(vec![bits as u8; len]),
            2 => Data::B16(vec![bits as u16; len]),
            4 => Data::B32(vec![bits as u32; len]),
            _ => Data::B64(vec![bits; len]),
        }
    }

    pub fn collect(element: Element, bits: impl Iterator<Item = u64>) -> Data {
        match element.bytes() {
            1 => Data::B8(bits.map(|bits| bits as u8).collect()),
            2 => Data::B16(bits.map(|bits| bits as u16).collect()),
            4 => Data::B32(bits.map(|bits| bits as u32).collect()),
            _ => Data::B64(bits.collect()),
        }
    }

    pub fn len(&self) -> usize {
        with_data!(self, each => each.len())
    }

    pub fn get(&self, at: usize) -> u64 {
        match self {
            Data::B8(each) => each[at].into(),
            Data::B16(each) => each[at].into(),
            Data::B32(each) => each[at].into(),
            Data::B64(each) => each[at],
        }
    }

    /// Elements at these places, each as often as it is named.
    pub fn pick(&self, places: impl Iterator<Item = usize>) -> Data {
        match self {
            Data::B8(each) => Data::B8(places.map(|at| each[at]).collect()),
            Data::B16(each) => Data::B16(places.map(|at| each[at]).collect()),
            Data::B32(each) => Data::B32(places.map(|at| each[at]).collect()),
            Data::B64(each) => Data::B64(places.map(|at| each[at]).collect()),
        }
    }

    /// As in memory, lowest byte first.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Data::B8(each) => each.clone(),
            Data::B16(each) => each.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Data::B32(each) => each.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
            Data::B64(each) => each.iter().flat_map(|bits| bits.to_le_bytes()).collect(),
        }
    }

    pub fn from_bytes(element: Element, bytes: &[u8]) -> Data {
        match element.bytes() {
            1 => Data::B8(bytes.to_vec()),
            2 => Data::B16(bytes.as_chunks().0.iter().map(|raw| u16::from_le_bytes(*raw)).collect()),
            4 => Data::B32(bytes.as_chunks().0.iter().map(|raw| u32::from_le_bytes(*raw)).collect()),
            _ => Data::B64(bytes.as_chunks().0.iter().map(|raw| u64::from_le_bytes(*raw)).collect()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    pub shape: Shape,
    pub element: Element,
    pub data: Data,
}

impl Tile {
    pub fn scalar(element: Element, bits: u64) -> Tile {
        Tile {
            shape: Shape::new(),
            element,
            data: Data::splat(element, 1, bits),
        }
    }

    pub fn of(ty: &TileType, data: Data) -> Tile {
        Tile {
            shape: ty.shape.clone(),
            element: ty.element,
            data,
        }
    }

    pub fn len(&self) -> usize {
        self.data.len()
    }

    pub fn bytes(&self) -> usize {
        self.len() * self.element.bytes() as usize
    }

    /// An element as a signed number.
    pub fn signed(&self, at: usize) -> i64 {
        sign_extend(self.element.bits(), self.data.get(at))
    }
}

pub fn sign_extend(bits: u32, value: u64) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

/// All bits that a value of this width has.
pub fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// How many elements lie between neighbours of each dimension, in the order of rows.
pub fn row_strides(shape: &[u32]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at] as usize;
    }
    strides
}

/// A tensor in memory, as a kernel found it.
#[derive(Debug)]
pub struct Tensor {
    pub base: u64,
    pub element: Element,
    pub shape: Vec<i64>,
    /// In elements.
    pub strides: Vec<i64>,
}

#[derive(Clone, Debug)]
pub struct View {
    pub tensor: Arc<Tensor>,
    pub ty: Arc<ViewType>,
}

#[derive(Clone, Debug)]
pub enum Value {
    Tile(Arc<Tile>),
    Tensor(Arc<Tensor>),
    View(View),
    Token,
}
