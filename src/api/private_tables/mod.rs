//! The tables that NVIDIA's runtime asks for by UUID (`cuGetExportTable`): undocumented, and no program starts without them.
//!
//! A table's address is the same for the life of the process. One file per table; each slot says who calls it, when,
//! and what is known of it: observed calls and published descriptions, nothing else.
//!
//! Word 0 of a table is its size in bytes, itself included; function pointers follow (CLS is the exception). The tables
//! must answer before `cuInit`.

mod cls;
mod ctxcheck;
mod cudart;
mod hmac_md2;
mod integrity;
mod logctl;
mod rthooks;
mod tab213;
mod toolstls;

#[cfg(test)]
pub(super) use hmac_md2::hmac;

use super::types::*;
use std::ptr;

/// Words that C reads as sizes and function pointers.
#[repr(transparent)]
pub(super) struct Table<const WORDS: usize>([*const c_void; WORDS]);

// SAFETY: never written, and what it points to is code.
unsafe impl<const WORDS: usize> Sync for Table<WORDS> {}

impl<const WORDS: usize> Table<WORDS> {
    /// A table whose word 0 is its size; the rest as given.
    const fn sized(mut words: [*const c_void; WORDS]) -> Self {
        words[0] = ptr::without_provenance(WORDS * size_of::<usize>());
        Table(words)
    }

    fn address(&'static self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    fn word(&self, slot: usize) -> *const c_void {
        self.0[slot]
    }
}

/// What stands in slots nobody has been seen to call.
extern "C" fn unused() -> CUresult {
    tracing::warn!(target: "cuda::api", "a private table was called in a slot whose use is not known");
    CUresult::CUDA_ERROR_NOT_SUPPORTED
}
const UNUSED: *const c_void = unused as *const c_void;

/// The table of this UUID (bytes in memory order).
pub(super) fn find(id: &[u8; 16]) -> Option<*const c_void> {
    Some(match u128::from_be_bytes(*id) {
        cudart::ID => cudart::TABLE.address(),
        rthooks::ID => rthooks::TABLE.address(),
        toolstls::ID => toolstls::TABLE.address(),
        cls::ID => cls::TABLE.address(),
        integrity::ID => integrity::TABLE.address(),
        ctxcheck::ID => ctxcheck::TABLE.address(),
        tab213::ID => tab213::TABLE.address(),
        logctl::ID => logctl::TABLE.address(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_word_0() {
        assert_eq!(cudart::TABLE.word(0) as usize, 104);
        assert_eq!(rthooks::TABLE.word(0) as usize, 56);
        assert_eq!(integrity::TABLE.word(0) as usize, 24);
        assert_eq!(ctxcheck::TABLE.word(0) as usize, 40);
        assert_eq!(logctl::TABLE.word(0) as usize, 24);
        assert_eq!(toolstls::TABLE.word(0) as usize, 8);
        assert_eq!(tab213::TABLE.word(0) as usize, 8);
        assert!(cls::TABLE.word(3).is_null());
    }

    #[test]
    fn ids_are_bytes_in_memory_order() {
        let id = [
            0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
        ];
        assert_eq!(find(&id), Some(cudart::TABLE.address()));
        assert_eq!(find(&[0; 16]), None);
    }
}
