use super::*;

// The arena and its accounts are the process's: each test takes a device of its own.

fn device(number: u32, bytes: u64) -> Request {
    Request {
        device: number,
        ..Request::new(Kind::Device, bytes)
    }
}

#[test]
fn kernels_reach_whole_pages_of_an_allocation_and_not_the_next() {
    let space = AddressSpace::get();
    let view = space.view();
    for bytes in [1, 4, 4095, 4096, 4097, 300_000, 5 << 20] {
        let a = space.allocate(&device(1, bytes)).unwrap();
        assert_eq!(a.start % 4096, 0);
        assert!(view.check(a.start, bytes, READ | WRITE));
        assert!(view.check(a.start, 1, WRITE));
        assert!(view.check(a.start + bytes - 1, 1, READ));
        let end = a.start + bytes.next_multiple_of(PAGE);
        assert!(!view.check(end, 1, READ), "page after {bytes}");
        assert!(!view.check(end - 1, 2, READ), "straddling the end of {bytes}");
        assert!(!view.check(a.start, bytes.next_multiple_of(PAGE) + 1, READ));
        space.free(a.start).unwrap();
        assert!(!view.check(a.start, 1, READ));
    }
}

#[test]
fn nonsense_ranges_are_refused() {
    let space = AddressSpace::get();
    let view = space.view();
    let a = space.allocate(&device(1, 4096)).unwrap();
    for (address, bytes) in [
        (0, 1),
        (8, 8),
        (u64::MAX, 1),
        (u64::MAX, 2),
        (a.start, u64::MAX),
        (a.start, u64::MAX - a.start),
        (view.base - 1, 1),
        (view.base - 1, 2),
        (view.base + view.len, 1),
        (view.base + view.len - 1, 1),
        (view.base + view.len - 1, 4096),
        (view.base + view.len - 1, 1 << 30),
        (view.base, 0),
    ] {
        assert!(!view.check(address, bytes, READ), "{address:#x} + {bytes:#x}");
    }
    space.free(a.start);
}

#[test]
fn constants_can_be_read_only_and_the_drivers_own_memory_not_at_all() {
    let space = AddressSpace::get();
    let view = space.view();
    let constant = space.allocate(&Request::new(Kind::Constant, 100)).unwrap();
    assert!(view.check(constant.start, 100, READ));
    assert!(!view.check(constant.start, 100, WRITE));
    space.free(constant.start);
    let region = space.allocate_internal(100_000, 1 << 16).unwrap();
    assert_eq!(region.start() % (1 << 16), 0);
    assert!(!view.check(region.start(), 1, READ));
    assert!(space.find(region.start()).is_none());
    // SAFETY: the region is ours to write.
    unsafe { std::ptr::write_bytes(region.start() as *mut u8, 7, 100_000) };
}

#[test]
fn limits_are_enforced_to_the_byte_granted() {
    let space = AddressSpace::get();
    space.set_limit(2, 1 << 20);
    let a = space.allocate(&device(2, 1 << 19)).unwrap();
    let b = space.allocate(&device(2, 1 << 19)).unwrap();
    assert_eq!(space.used(2), 1 << 20);
    assert_eq!(space.allocate(&device(2, 1)), Err(OutOfMemory));
    space.free(a.start);
    assert_eq!(space.used(2), 1 << 19);
    assert_eq!(space.allocate(&device(2, (1 << 19) + 1)), Err(OutOfMemory));
    let c = space.allocate(&device(2, 1 << 19)).unwrap();
    space.free(b.start);
    space.free(c.start);
    assert_eq!(space.used(2), 0);
    assert_eq!(space.allocate(&device(2, u64::MAX)), Err(OutOfMemory));
    assert_eq!(space.allocate(&device(2, u64::MAX - 600)), Err(OutOfMemory));
    assert_eq!(space.allocate(&device(3, 1 << 60)), Err(OutOfMemory));
    assert_eq!(space.used(3), 0);
}

#[test]
fn an_address_finds_its_allocation_and_a_stray_one_its_neighbour() {
    let space = AddressSpace::get();
    // Freed twice below: of a size that no other test asks for.
    let a = space.allocate(&device(4, 240_000)).unwrap();
    assert_eq!(space.find(a.start).unwrap(), a);
    assert_eq!(space.find(a.start + 239_999).unwrap(), a);
    assert_eq!(space.find(a.start + 240_000), None);
    let near = space.nearest(a.start + 240_002).unwrap();
    assert_eq!(
        near.to_string(),
        format!(
            "2 bytes past the end of an allocation of 240000 bytes at {:#x} (device memory)",
            a.start
        )
    );
    // Other tests free memory, too, and only the last thousand are remembered: it may take more than one attempt.
    let remembered = (0..100).any(|_| {
        let big = space.allocate(&device(4, 70 << 20)).unwrap();
        space.free(big.start);
        let near = space.nearest(big.start + 16).unwrap();
        let text = format!(
            "16 bytes inside a freed allocation of 73400320 bytes at {:#x} (device memory)",
            big.start
        );
        near.freed && near.to_string() == text
    });
    assert!(remembered);
    space.free(a.start);
    assert!(space.free(a.start).is_none());
    assert!(space.free(a.start + 1).is_none());
}

#[test]
fn large_blocks_are_reused_and_merge() {
    let mut blocks = blocks::LargeBlocks::new(0, 1000);
    let [a, b, c] = [0, 100, 200];
    for fresh in [a, b, c] {
        assert_eq!(blocks.allocate(99, 1), Some((fresh, false)));
    }
    blocks.free(a, 99);
    blocks.free(c, 99);
    blocks.free(b, 99);
    // 300 pages in one piece again, and the guard page is part of a block.
    assert_eq!(blocks.allocate(299, 1), Some((0, true)));
    assert_eq!(blocks.used_end(), 300);
    assert_eq!(blocks.allocate(512, 256), None);
    assert_eq!(blocks.allocate(200, 256), Some((512, false)));
    // The gap that alignment left is not lost.
    assert_eq!(blocks.allocate(200, 1), Some((300, true)));
}

#[test]
fn registered_host_ranges_are_found_whole() {
    let space = AddressSpace::get();
    let mut memory = vec![0_u8; 100_000];
    let start = memory.as_mut_ptr() as u64;
    assert!(!space.host_range_contains(start, 1, READ));
    assert!(space.register_host(start, 50_000, READ | WRITE, 77, 0, 0));
    assert!(!space.register_host(start + 49_999, 10, READ, 77, 0, 0), "overlap");
    assert!(space.register_host(start + 50_000, 50_000, READ, 77, 0, 0));
    assert!(space.host_range_contains(start, 50_000, READ | WRITE));
    assert!(space.host_range_contains(start + 49_999, 1, WRITE));
    assert!(!space.host_range_contains(start + 49_999, 2, READ), "across two ranges");
    assert!(!space.host_range_contains(start + 50_000, 1, WRITE));
    assert!(!space.host_range_contains(start - 1, 2, READ));
    assert!(!space.host_range_contains(start, u64::MAX, READ));
    assert_eq!(space.find_host(start + 7).unwrap().bytes, 50_000);
    assert!(space.unregister_host(start + 7).is_none());
    space.free_all_of(77);
    assert!(!space.host_range_contains(start, 1, READ));
    let view = space.view();
    assert!(!space.register_host(view.base, 10, READ, 0, 0, 0), "the arena itself");
}

#[test]
fn many_threads_get_memory_of_their_own() {
    let space = AddressSpace::get();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            scope.spawn(move || {
                let mut live: Vec<(u64, u64)> = Vec::new();
                for round in 0..2000_u64 {
                    let bytes = 1 + (round * 7919 + thread * 104_729) % 20_000;
                    let a = space.allocate(&device(5, bytes)).unwrap();
                    let stamp = thread << 32 | round;
                    // SAFETY: the allocation is at least a page, and ours.
                    unsafe { (a.start as *mut u64).write(stamp) };
                    live.push((a.start, stamp));
                    if round % 3 != 0 {
                        let (start, stamp) = live.swap_remove((round as usize * 31) % live.len());
                        // SAFETY: `live` holds allocations of this test, at least a page each, not freed yet.
                        assert_eq!(unsafe { (start as *const u64).read() }, stamp);
                        assert!(space.free(start).is_some());
                    }
                }
                for (start, stamp) in live {
                    // SAFETY: what is left in `live` is still allocated, and at least a page.
                    assert_eq!(unsafe { (start as *const u64).read() }, stamp);
                    space.free(start);
                }
            });
        }
    });
    assert_eq!(space.used(5), 0);
}

#[test]
fn small_allocations_are_quick_and_do_not_run_out_of_mappings() {
    let space = AddressSpace::get();
    let count = 200_000;
    let began = std::time::Instant::now();
    let all: Vec<u64> = (0..count)
        .map(|_| space.allocate(&device(6, 64)).unwrap().start)
        .collect();
    for start in &all {
        space.free(*start);
    }
    let each = began.elapsed() / count;
    println!("allocate and free: {each:?}");
    assert!(each.as_micros() < 50, "{each:?}");
}
