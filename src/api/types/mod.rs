//! The words of the C ABI: every type, enumerator and constant of the driver API, under the name C programs write.
//!
//! `build.rs` makes `include/cuda.h` of these files, one for each topic of the manual: an order of fields or a width
//! that is changed here is changed for C programs.
//!
//! C enumerations become transparent integers with associated constants, because a C caller may pass any number, and a
//! number outside a Rust `enum` would be undefined behaviour. `build.rs` turns `c_enum!` and `opaque!` back into C
//! enumerations and incomplete types for the header: keep to the one shape they are written in here.
//!
//! A member called `anonymous` is an unnamed member in C (the header drops its name).

pub use std::ffi::{c_char, c_int, c_longlong, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

/// Declares C enumerations: an integer type, its enumerators as associated constants, and a `Debug` that prints names.
macro_rules! c_enum {
    (pub enum $name:ident: $repr:ident { $($item:ident = $value:expr,)* }) => {
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $repr);

        impl $name {
            $(pub const $item: $name = $name($value);)*

            /// Every enumerator with its value, in the order of declaration (some values have two names).
            pub const ENUMERATORS: &'static [(&'static str, $repr)] = &[$((stringify!($item), $value),)*];

            /// Any number: C callers may pass what has no name.
            pub const fn from_raw(value: $repr) -> $name {
                $name(value)
            }

            /// The C name of this value.
            pub fn name(self) -> Option<&'static str> {
                Self::ENUMERATORS.iter().find(|(_, value)| *value == self.0).map(|(name, _)| *name)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}

/// Declares incomplete types: C programs hold pointers to them and never look inside, and neither do we.
macro_rules! opaque {
    ($($name:ident,)*) => {
        $(
            #[repr(C)]
            pub struct $name {
                _opaque: [u8; 0],
            }
        )*
    };
}

mod array;
mod constants;
mod context;
mod device;
mod execution;
mod graph;
mod interop;
#[cfg(test)]
mod layout;
mod memory;
mod module;
mod other;
mod pool;
mod result;
mod stream;

pub use array::*;
pub use constants::*;
pub use context::*;
pub use device::*;
pub use execution::*;
pub use graph::*;
pub use interop::*;
pub use memory::*;
pub use module::*;
pub use other::*;
pub use pool::*;
pub use result::*;
pub use stream::*;
