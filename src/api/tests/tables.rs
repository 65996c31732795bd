//! The private tables, as cudart calls them.

use super::*;

/// A table of this UUID, as words.
fn table(id: u128) -> *const usize {
    let id = CUuuid {
        bytes: id.to_be_bytes().map(|byte| byte as c_char),
    };
    let mut table = null();
    ok!(cuGetExportTable(&mut table, &id));
    table.cast()
}

/// The function in a slot.
macro_rules! slot {
    ($table:expr, $slot:expr, $signature:ty) => {
        // SAFETY: the slot holds a function of this signature.
        unsafe { std::mem::transmute::<usize, $signature>($table.add($slot).read()) }
    };
}

#[test]
fn unknown_tables_are_refused() {
    let mut table = null();
    let id = CUuuid { bytes: [1; 16] };
    fails!(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&mut table, &id));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGetExportTable(&mut table, null()));
}

#[test]
fn storage_belongs_to_the_context() {
    let own = Own::new();
    let cls = table(0xc693336e_1121_df11_a8c3_68f355d89593);
    type Destructor = Option<unsafe extern "C" fn(CUcontext, usize, usize)>;
    let put = slot!(
        cls,
        0,
        unsafe extern "C" fn(CUcontext, usize, usize, Destructor) -> CUresult
    );
    let delete = slot!(cls, 1, unsafe extern "C" fn(CUcontext, usize) -> CUresult);
    let get = slot!(cls, 2, unsafe extern "C" fn(*mut usize, CUcontext, usize) -> CUresult);
    let mut value = 7;
    assert_ne!(call!(get(&mut value, null_mut(), 1)), CUresult::CUDA_SUCCESS);
    ok!(put(null_mut(), 1, 11, None));
    ok!(get(&mut value, null_mut(), 1));
    assert_eq!(value, 11);
    let context = own.0.expose_provenance();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let context = std::ptr::with_exposed_provenance_mut(context);
            let mut value = 0;
            ok!(get(&mut value, context, 1));
            assert_eq!(value, 11);
            // Without a current context there is nothing to find.
            assert_ne!(call!(get(&mut value, null_mut(), 1)), CUresult::CUDA_SUCCESS);
        });
    });
    ok!(delete(null_mut(), 1));
    assert_ne!(call!(get(&mut value, own.0, 1)), CUresult::CUDA_SUCCESS);
}

#[test]
fn storage_is_destroyed_with_the_context() {
    static SEEN: std::sync::Mutex<Vec<(usize, usize)>> = std::sync::Mutex::new(Vec::new());
    unsafe extern "C" fn destroyed(_: CUcontext, key: usize, value: usize) {
        SEEN.lock().unwrap().push((key, value));
    }
    let own = Own::new();
    let cls = table(0xc693336e_1121_df11_a8c3_68f355d89593);
    type Destructor = Option<unsafe extern "C" fn(CUcontext, usize, usize)>;
    let put = slot!(
        cls,
        0,
        unsafe extern "C" fn(CUcontext, usize, usize, Destructor) -> CUresult
    );
    ok!(put(own.0, 3, 33, Some(destroyed)));
    drop(own);
    assert_eq!(*SEEN.lock().unwrap(), [(3, 33)]);
}

#[test]
fn the_primary_context_is_known_before_it_is_retained() {
    let _alone = crate::driver::PRIMARY.lock();
    ok!(cuInit(0));
    let cudart = table(0x6bd5fb6c_5bf4_e74a_8987_d93912fd9df9);
    // SAFETY: word 0 is the size.
    assert_eq!(unsafe { *cudart }, 104);
    let primary = slot!(cudart, 2, unsafe extern "C" fn(*mut CUcontext, CUdevice) -> CUresult);
    let (mut known, mut retained) = (null_mut(), null_mut());
    ok!(primary(&mut known, 0));
    ok!(cuDevicePrimaryCtxRetain(&mut retained, 0));
    assert_eq!(known, retained);
    ok!(cuDevicePrimaryCtxRelease_v2(0));
    fails!(CUDA_ERROR_INVALID_DEVICE, primary(&mut known, 99));
    let ready = slot!(cudart, 12, unsafe extern "C" fn() -> CUresult);
    ok!(ready());
}

#[test]
fn hook_buffers_are_large_and_zero() {
    let hooks = table(0xa094798c_2e74_2e74_93f2_0800200c0a66);
    for index in [2, 6] {
        let buffer = slot!(hooks, index, unsafe extern "C" fn(*mut *const u32, *mut usize));
        let (mut at, mut size) = (null(), 0);
        call!(buffer(&mut at, &mut size));
        // cudart 11.8 wants 1024, in units of 4 bytes.
        assert!(size >= 1024);
        // SAFETY: the table is as long as it says.
        let words = unsafe { std::slice::from_raw_parts(at, size) };
        assert!(words.iter().all(|word| *word == 0));
    }
}

/// The message by hand, the digest by the tested HMAC: the layout is what is at stake.
#[test]
fn the_integrity_answer_covers_what_it_should() {
    ok!(cuInit(0));
    let integrity = table(0xd4082055_bde6_704b_8d34_ba123c66e1f2);
    let cudart = table(0x6bd5fb6c_5bf4_e74a_8987_d93912fd9df9);
    let answer = slot!(integrity, 1, unsafe extern "C" fn(c_uint, u64, *mut u8) -> CUresult);
    let mut out = [0u8; 16];
    ok!(answer(13050, 1, out.as_mut_ptr()));
    assert_eq!(out[..8], 0x3341_181C_03CB_675C_u64.to_le_bytes());
    ok!(answer(13051, 1, out.as_mut_ptr()));
    assert_eq!(out[..8], 0x1841_181C_03CB_675C_u64.to_le_bytes());
    ok!(answer(13052, 1_700_000_000, out.as_mut_ptr()));

    let mut message = Vec::new();
    let mut word = |number: u32| message.extend(number.to_le_bytes());
    word(13050);
    word(13052);
    word(std::process::id());
    // SAFETY: no preconditions.
    word(unsafe { libc::pthread_self() } as u32);
    for address in [cudart.addr(), integrity.addr(), answer as usize] {
        word(address as u32);
        word((address >> 32) as u32);
    }
    word(1_700_000_000);
    word(0);
    let mut count = 0;
    ok!(cuDeviceGetCount(&mut count));
    for device in 0..count {
        let mut uuid = CUuuid { bytes: [0; 16] };
        ok!(cuDeviceGetUuid(&mut uuid, device));
        message.extend(uuid.bytes.map(|byte| byte as u8));
        for attribute in [50, 33, 34] {
            let mut value = 0;
            ok!(cuDeviceGetAttribute(
                &mut value,
                CUdevice_attribute::from_raw(attribute),
                device
            ));
            message.extend(value.to_le_bytes());
        }
    }
    assert_eq!(message.len(), 48 + 28 * count as usize);
    let key: u128 = 0x146a_ddae_53a9_a752_aa08_4136_0bf5_5a9f;
    assert_eq!(out, crate::api::private_tables::hmac(&key.to_be_bytes(), &message));
}
