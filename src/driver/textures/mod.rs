//! Arrays, and what kernels read them through.
//!
//! ```text
//! array.rs    arrays and mipmaps                  format.rs     their formats
//! texture.rs  texture and surface objects         reference.rs  references, which are variables of modules
//! ```

pub mod array;
pub(super) mod format;
pub mod reference;
pub mod texture;
