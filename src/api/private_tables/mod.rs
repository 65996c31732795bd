//! The tables that NVIDIA's runtime asks for by UUID (`cuGetExportTable`): undocumented, and no program starts without them.
//! One is ours, for a companion.
//!
//! A table's address is the same for the life of the process. One file per table; each slot says who calls it, when,
//! and what is known of it: observed calls and published descriptions, nothing else.
//!
//! Word 0 of a table is its size in bytes, itself included; function pointers follow (CLS is the exception). The tables
//! must answer before `cuInit`.

mod cls;
mod ctxcheck;
mod cudart;
mod cupti;
mod hmac_md2;
mod integrity;
mod logctl;
mod management;
mod rthooks;
mod tab213;
mod toolsmodule;
mod toolstls;

#[cfg(test)]
pub(super) use hmac_md2::hmac;

use super::types::*;
use std::ptr;

/// Words that a caller may look at, whatever a table says of its size: the longest one seen has 86.
const ROOM: usize = 160;

/// Words that C reads as sizes and function pointers. `NAME` is the table's index in [`NAMES`].
#[repr(transparent)]
pub(super) struct Table<const NAME: usize>([*const c_void; ROOM]);

/// The tables' names, which are ours, for messages.
const NAMES: [&str; 12] = [
    "CUDART",
    "RTHOOKS",
    "TOOLSTLS",
    "CLS",
    "INTEGRITY",
    "CTXCHECK",
    "TAB213",
    "LOGCTL",
    "TOOLSMODULE",
    "MANAGEMENT",
    "CUPTI",
    "CUPTI_STATE",
];

// SAFETY: never written, and what it points to is code.
unsafe impl<const NAME: usize> Sync for Table<NAME> {}

impl<const NAME: usize> Table<NAME> {
    /// A table that says it has `words` words, itself included, with functions in these slots. Whoever calls another one
    /// is refused, and told of in the log: callers index without asking for the size.
    const fn sized(words: usize, functions: &[(usize, *const c_void)]) -> Self {
        let mut table = Table::<NAME>::of(functions);
        table.0[0] = ptr::without_provenance(words * size_of::<usize>());
        table
    }

    /// The same without a word for the size.
    const fn of(functions: &[(usize, *const c_void)]) -> Self {
        let mut table = [ptr::null(); ROOM];
        let mut slot = 0;
        while slot < ROOM {
            table[slot] = Unknown::<NAME>::SLOTS[slot / 10][slot % 10];
            slot += 1;
        }
        let mut index = 0;
        while index < functions.len() {
            let (slot, function) = functions[index];
            table[slot] = function;
            index += 1;
        }
        Table(table)
    }

    fn address(&'static self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    fn word(&self, slot: usize) -> *const c_void {
        self.0[slot]
    }
}

/// What stands in slots nobody has been seen to call, a function each so that it can say which one it is.
struct Unknown<const NAME: usize>;

/// Ten of them.
macro_rules! ten {
    ($first:literal) => {
        [
            unknown::<NAME, { $first }> as *const c_void,
            unknown::<NAME, { $first + 1 }> as *const c_void,
            unknown::<NAME, { $first + 2 }> as *const c_void,
            unknown::<NAME, { $first + 3 }> as *const c_void,
            unknown::<NAME, { $first + 4 }> as *const c_void,
            unknown::<NAME, { $first + 5 }> as *const c_void,
            unknown::<NAME, { $first + 6 }> as *const c_void,
            unknown::<NAME, { $first + 7 }> as *const c_void,
            unknown::<NAME, { $first + 8 }> as *const c_void,
            unknown::<NAME, { $first + 9 }> as *const c_void,
        ]
    };
}

impl<const NAME: usize> Unknown<NAME> {
    const SLOTS: [[*const c_void; 10]; ROOM / 10] = [
        ten!(0),
        ten!(10),
        ten!(20),
        ten!(30),
        ten!(40),
        ten!(50),
        ten!(60),
        ten!(70),
        ten!(80),
        ten!(90),
        ten!(100),
        ten!(110),
        ten!(120),
        ten!(130),
        ten!(140),
        ten!(150),
    ];
}

extern "C" fn unknown<const NAME: usize, const SLOT: usize>() -> CUresult {
    refuse(NAMES[NAME], SLOT)
}

/// Out of line: there are nearly two thousand of those who call it.
#[cold]
#[inline(never)]
fn refuse(name: &str, slot: usize) -> CUresult {
    tracing::warn!(target: "cuda::api", "slot {slot} of the private table {name} was called, whose use is not known");
    CUresult::CUDA_ERROR_NOT_SUPPORTED
}

/// Slots that have been seen called, with whatever arguments, and whose callers are content with success.
extern "C" fn content() -> CUresult {
    CUresult::CUDA_SUCCESS
}

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
        toolsmodule::ID => toolsmodule::TABLE.address(),
        management::ID => management::TABLE.address(),
        cupti::ID => cupti::TABLE.address(),
        cupti::STATE_ID => cupti::STATE.address(),
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
        assert_eq!(management::TABLE.word(0) as usize, 64);
        assert_eq!(toolstls::TABLE.word(0) as usize, 24);
        assert_eq!(tab213::TABLE.word(0) as usize, 688);
        assert_eq!(toolsmodule::TABLE.word(0) as usize, 64);
        assert_eq!(cupti::TABLE.word(0) as usize, 24);
        assert_eq!(cupti::STATE.word(0) as usize, 32);
        assert!(cls::TABLE.word(3).is_null());
    }

    /// cublasLt indexes beyond what a table says of its size.
    #[test]
    fn whatever_is_called_answers() {
        type Slot = extern "C" fn() -> CUresult;
        let call = |word: *const c_void| {
            // SAFETY: slots without a function of their own hold functions that take nothing.
            unsafe { std::mem::transmute::<*const c_void, Slot>(word)() }
        };
        for slot in [1, 2, 3, 5, 50, 52, 85, 86, ROOM - 1] {
            assert_eq!(
                call(tab213::TABLE.word(slot)),
                CUresult::CUDA_ERROR_NOT_SUPPORTED,
                "{slot}"
            );
        }
        for slot in [4, 39, 51] {
            assert_eq!(call(tab213::TABLE.word(slot)), CUresult::CUDA_SUCCESS);
        }
        // cuptiGetVersion calls this one, and no other.
        assert_eq!(call(cupti::STATE.word(3)), CUresult::CUDA_SUCCESS);
        for table in [
            cupti::TABLE.word(1),
            cupti::STATE.word(2),
            cupti::STATE.word(4),
            toolstls::TABLE.word(1),
            cudart::TABLE.word(13),
            integrity::TABLE.word(2),
        ] {
            assert_eq!(call(table), CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
    }

    #[test]
    fn tools_have_no_storage() {
        type Find = unsafe extern "C" fn(*mut *mut c_void) -> CUresult;
        // SAFETY: slot 2 of this table is such a function.
        let find: Find = unsafe { std::mem::transmute(toolstls::TABLE.word(2)) };
        let mut found = ptr::without_provenance_mut(8);
        // SAFETY: null, or a place for a pointer.
        unsafe {
            assert_eq!(find(ptr::null_mut()), CUresult::CUDA_SUCCESS);
            assert_eq!(find(&mut found), CUresult::CUDA_SUCCESS);
        }
        assert!(found.is_null());
    }

    #[test]
    fn ids_are_bytes_in_memory_order() {
        let id = [
            0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9,
        ];
        assert_eq!(find(&id), Some(cudart::TABLE.address()));
        let state = [
            0xd7, 0xbd, 0x8a, 0xf8, 0xe7, 0xac, 0xca, 0x4a, 0xbd, 0xbc, 0xfb, 0x1f, 0x1b, 0x3f, 0xcf, 0x33,
        ];
        assert_eq!(find(&state), Some(cupti::STATE.address()));
        assert_eq!(find(&[0; 16]), None);
    }
}
