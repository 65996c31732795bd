//! Memory management, pointer attributes, advice, pools.

use super::*;

#[test]
fn allocations_and_their_ranges() {
    let _own = Own::new();
    let pointer = allocate(1000);
    let (mut base, mut size) = (0, 0);
    ok!(cuMemGetAddressRange_v2(&mut base, &mut size, pointer + 999));
    assert_eq!((base, size), (pointer, 1000));
    ok!(cuMemGetAddressRange_v2(null_mut(), &mut size, pointer));
    ok!(cuMemFree_v2(pointer));
    assert_ne!(
        call!(cuMemGetAddressRange_v2(&mut base, &mut size, pointer)),
        CUresult::CUDA_SUCCESS
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(0x1234));
    // cudaFree(NULL) arrives as this.
    ok!(cuMemFree_v2(0));
    let mut pointer = 0;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&mut pointer, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(null_mut(), 16));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut pointer, usize::MAX / 2));
    let (mut free, mut total) = (0, 0);
    ok!(cuMemGetInfo_v2(&mut free, &mut total));
    assert!(0 < free && free <= total);
    let mut pitch = 0;
    ok!(cuMemAllocPitch_v2(&mut pointer, &mut pitch, 100, 7, 4));
    assert!(pitch >= 100 && pitch % 16 == 0, "{pitch}");
    ok!(cuMemFree_v2(pointer));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAllocPitch_v2(&mut pointer, &mut pitch, 100, 7, 5)
    );
}

#[test]
fn pinned_and_registered_host_memory() {
    let _own = Own::new();
    let (mut pinned, mut device, mut flags) = (null_mut(), 0, 0);
    ok!(cuMemHostAlloc(
        &mut pinned,
        4096,
        CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE
    ));
    ok!(cuMemHostGetFlags(&mut flags, pinned));
    assert_eq!(flags & CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
    ok!(cuMemHostGetDevicePointer_v2(&mut device, pinned, 0));
    // Unified addressing: the same address.
    assert_eq!(device, pinned.addr() as u64);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemHostGetDevicePointer_v2(&mut device, pinned, 1)
    );
    ok!(cuMemFreeHost(pinned));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
    // As on hardware: free(NULL), but nothing to unregister.
    ok!(cuMemFreeHost(null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&mut pinned, 16, 0x100));

    let mut buffer = vec![0u8; 8192];
    let host = buffer.as_mut_ptr().cast::<c_void>();
    fails!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
    ok!(cuMemHostRegister_v2(host, 8192, 0));
    fails!(
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        cuMemHostRegister_v2(host, 8192, 0)
    );
    ok!(cuMemHostUnregister(host));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(null_mut(), 16, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(host, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(host, 16, 0x80));
}

/// Asks for six attributes at once, as `cudaPointerGetAttributes` does.
fn attributes(pointer: CUdeviceptr) -> (usize, u32, u64, u64, u32, i32) {
    use CUpointer_attribute as A;
    let (mut context, mut kind, mut device, mut host, mut managed, mut ordinal) =
        (1usize, 9u32, 9u64, 9u64, 9u32, 9i32);
    let mut which = [
        A::CU_POINTER_ATTRIBUTE_CONTEXT,
        A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut data: [*mut c_void; 6] = [
        (&raw mut context).cast(),
        (&raw mut kind).cast(),
        (&raw mut device).cast(),
        (&raw mut host).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
    ];
    ok!(cuPointerGetAttributes(
        6,
        which.as_mut_ptr(),
        data.as_mut_ptr(),
        pointer
    ));
    (context, kind, device, host, managed, ordinal)
}

#[test]
fn pointers_say_what_they_are() {
    let own = Own::new();
    let device = allocate(64);
    assert_eq!(attributes(device + 4), (own.0.addr(), 2, device + 4, 0, 0, 0));
    let mut managed = 0;
    ok!(cuMemAllocManaged(&mut managed, 64, 1));
    let found = attributes(managed);
    assert_eq!((found.1, found.2, found.3, found.4), (2, managed, managed, 1));
    let mut pinned = null_mut();
    ok!(cuMemAllocHost_v2(&mut pinned, 64));
    let address = pinned.addr() as u64;
    let found = attributes(address);
    assert_eq!((found.1, found.2, found.3, found.4), (1, address, address, 0));
    // What the driver does not know has the defaults, and no device (CU_DEVICE_INVALID).
    let local = 0u32;
    assert_eq!(attributes((&raw const local).addr() as u64), (0, 0, 0, 0, 0, -2));

    let mut number = 0u32;
    let data = (&raw mut number).cast::<c_void>();
    let kind = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    ok!(cuPointerGetAttribute(data, kind, device));
    assert_eq!(number, 2);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(data, kind, (&raw const local).addr() as u64)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(null_mut(), kind, device)
    );
    // Never "not supported", which the runtime would hand on.
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(data, CUpointer_attribute::from_raw(4711), device)
    );
    let host = CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER;
    let mut address = 0usize;
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute((&raw mut address).cast(), host, device)
    );

    let on = 1u32;
    let sync = CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    ok!(cuPointerSetAttribute((&raw const on).cast(), sync, device));
    ok!(cuPointerGetAttribute(data, sync, device));
    assert_eq!(number, 1);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerSetAttribute((&raw const on).cast(), kind, device)
    );
    ok!(cuMemFree_v2(device));
    ok!(cuMemFree_v2(managed));
    ok!(cuMemFreeHost(pinned));
}

#[test]
fn advice_can_be_read_back() {
    let _own = Own::new();
    let mut managed = 0;
    ok!(cuMemAllocManaged(&mut managed, 4096, 1));
    let (mut value, mut devices) = (9i32, [7i32; 3]);
    let data = (&raw mut value).cast::<c_void>();
    let read_mostly = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    ok!(cuMemRangeGetAttribute(data, 4, read_mostly, managed, 4096));
    assert_eq!(value, 0);
    ok!(cuMemAdvise(
        managed,
        4096,
        CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY,
        0
    ));
    ok!(cuMemRangeGetAttribute(data, 4, read_mostly, managed, 4096));
    assert_eq!(value, 1);
    let preferred = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
    ok!(cuMemRangeGetAttribute(data, 4, preferred, managed, 4096));
    assert_eq!(value, -2);
    ok!(cuMemAdvise(
        managed,
        4096,
        CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
        -1
    ));
    ok!(cuMemRangeGetAttribute(data, 4, preferred, managed, 4096));
    assert_eq!(value, -1);
    ok!(cuMemAdvise(
        managed,
        4096,
        CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY,
        0
    ));
    let accessed_by = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    ok!(cuMemRangeGetAttribute(
        devices.as_mut_ptr().cast(),
        12,
        accessed_by,
        managed,
        4096
    ));
    assert_eq!(devices, [0, -2, -2]);
    ok!(cuMemPrefetchAsync(managed, 4096, 0, null_mut()));
    let prefetched = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
    ok!(cuMemRangeGetAttribute(data, 4, prefetched, managed, 4096));
    assert_eq!(value, 0);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemRangeGetAttribute(data, 3, preferred, managed, 4096)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemAdvise(managed, 4096, CUmem_advise::from_raw(99), 0)
    );
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuMemPrefetchAsync(managed, 4096, 44, null_mut())
    );
    let device = allocate(64);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(device, 64, 0, null_mut()));
    ok!(cuMemFree_v2(device));
    ok!(cuMemFree_v2(managed));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&mut managed, 4096, 9));
}

#[test]
#[allow(unused_assignments, reason = "attributes are read through a pointer")]
fn pools_and_stream_ordered_memory() {
    let _own = Own::new();
    // SAFETY: numbers and null pointers.
    let mut properties: CUmemPoolProps = unsafe { std::mem::zeroed() };
    properties.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.r#type = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let (mut pool, mut stream, mut pointer) = (null_mut(), null_mut(), 0);
    ok!(cuMemPoolCreate(&mut pool, &properties));
    ok!(cuStreamCreate(&mut stream, 1));
    ok!(cuMemAllocFromPoolAsync(&mut pointer, 256, pool, stream));
    ok!(cuMemsetD32Async(pointer, 7, 64, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(read_u32(pointer, 64), [7; 64]);
    let mut used = 0u64;
    let data = (&raw mut used).cast::<c_void>();
    ok!(cuMemPoolGetAttribute(
        pool,
        CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        data
    ));
    assert!(used >= 256, "{used}");
    ok!(cuMemFreeAsync(pointer, stream));
    ok!(cuStreamSynchronize(stream));
    used = 1 << 20;
    ok!(cuMemPoolSetAttribute(
        pool,
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
        data
    ));
    used = 0;
    ok!(cuMemPoolGetAttribute(
        pool,
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
        data
    ));
    assert_eq!(used, 1 << 20);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemPoolGetAttribute(pool, CUmemPool_attribute::from_raw(99), data)
    );
    let mut flags = CUmemAccess_flags::from_raw(99);
    ok!(cuMemPoolGetAccess(&mut flags, pool, &mut properties.location));
    assert_eq!(flags, CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok!(cuMemPoolTrimTo(pool, 0));
    ok!(cuMemPoolDestroy(pool));
    assert_ne!(call!(cuMemPoolDestroy(pool)), CUresult::CUDA_SUCCESS);
    let (mut default, mut now) = (null_mut(), null_mut());
    ok!(cuDeviceGetDefaultMemPool(&mut default, 0));
    ok!(cuMemGetDefaultMemPool(
        &mut now,
        &mut properties.location,
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED
    ));
    assert_eq!(default, now);
    ok!(cuMemAllocAsync(&mut pointer, 64, stream));
    ok!(cuMemFreeAsync(pointer, stream));
    ok!(cuStreamDestroy_v2(stream));
    ok!(cuMemAllocAsync(&mut pointer, 0, null_mut()));
    assert_eq!(pointer, 0);
    properties.location.r#type = CUmemLocationType::from_raw(77);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut pool, &properties));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&mut pool, null()));
}
