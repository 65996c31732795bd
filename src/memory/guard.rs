//! Registered host memory that the program takes away while kernels and copies use it: a fault report instead of a signal.
//!
//! The program owns its memory. It may unmap or protect a range that it has registered, or shorten the file behind it,
//! and then an access of ours raises SIGSEGV or SIGBUS. A handler, installed when the first range is registered, acts only
//! when the thread is inside a [`Guarded`] region and the address lies in a registered range; everything else goes to the
//! handler that was there before, under the mask that it would have had. Ours makes the page usable, says so in the cell
//! that the region was entered with, and takes the range from kernels: their next access of it is refused like any other
//! that is not allowed. When the thread leaves its region, the pages are as the program left them.
//!
//! | what the program did | what the page becomes for a while |
//! | --- | --- |
//! | unmapped it | zeros, in the hole |
//! | protected it | readable and writable: real hardware writes to it, too |
//! | shortened the file, or protected what cannot be made writable | zeros in its place; the page itself stands aside |
//!
//! The same handler opens pages that are hidden from the host for a checker ([`host_access`]); then it is installed when that begins to
//! look.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::host_access::{self, HostAccess};
use super::{AddressSpace, PAGE, caller};

/// What a thread knows of the region that it is in.
struct Inside {
    /// Where to say that memory was gone; null: this thread is not inside a region.
    gone: Cell<*const AtomicU64>,
    /// Pages that the handler has mended for this thread since it entered its region.
    mended: Cell<u32>,
    /// The program's own code runs, whatever call it is within.
    in_program: Cell<bool>,
}

thread_local! {
    /// A constant without a destructor: it can be read in a signal handler, and as long as the thread runs.
    static INSIDE: Inside = const {
        Inside {
            gone: Cell::new(ptr::null()),
            mended: Cell::new(0),
            in_program: Cell::new(false),
        }
    };
}

/// A thread that mends more pages than this in one region goes round in circles.
const MOST: u32 = 1 << 20;

/// The thread is inside a region until this is dropped.
pub struct Guarded<'a> {
    before: (*const AtomicU64, bool),
    cell: PhantomData<&'a AtomicU64>,
}

/// Enters a region. `gone` becomes the first address whose memory was not there; 0 if all was.
pub fn guard(gone: &AtomicU64) -> Guarded<'_> {
    Guarded {
        before: INSIDE.with(|inside| (inside.gone.replace(gone), inside.in_program.replace(false))),
        cell: PhantomData,
    }
}

/// Leaves the region for a while: the program's own code runs.
pub fn unguarded() -> Guarded<'static> {
    Guarded {
        before: INSIDE.with(|inside| (inside.gone.replace(ptr::null()), inside.in_program.replace(true))),
        cell: PhantomData,
    }
}

/// Whether this thread does the driver's work: a kernel's, a copy's, or that of a call of the program's.
fn is_drivers() -> bool {
    let in_call = !caller::name().is_empty();
    INSIDE.with(|inside| !inside.gone.get().is_null() || in_call && !inside.in_program.get())
}

/// Whether memory was gone since the thread entered its region: for who waits for what may be in it.
pub fn was_gone() -> bool {
    let cell = INSIDE.with(|inside| inside.gone.get());
    // SAFETY: the cell outlives the region that the thread is in.
    !cell.is_null() && unsafe { &*cell }.load(Ordering::Relaxed) != 0
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        let mended = INSIDE.with(|inside| {
            inside.gone.set(self.before.0);
            inside.in_program.set(self.before.1);
            inside.mended.get()
        });
        if mended > 0 {
            restore();
        }
    }
}

/// What has been done to a page.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Mend {
    /// There was nothing; now there are zeros.
    Filled = 1,
    /// It could not be read nor written, or only be read; now it can be both.
    OpenedUnreadable = 2,
    OpenedReadable = 3,
    /// It stands aside, and zeros in its place.
    Moved = 4,
}

/// A page that has been mended and is to be restored. Only who holds [`LOCK`] touches it.
struct Page {
    /// 0: not in use.
    address: AtomicU64,
    mend: AtomicU32,
    aside: AtomicU64,
    /// The thread's: its number is the address of its cell.
    thread: AtomicUsize,
}

/// More at a time stay as they are.
const PAGES: usize = 1024;

static MENDED_PAGES: [Page; PAGES] = [const {
    Page {
        address: AtomicU64::new(0),
        mend: AtomicU32::new(0),
        aside: AtomicU64::new(0),
        thread: AtomicUsize::new(0),
    }
}; PAGES];

/// Held with all signals blocked, and for system calls only.
static LOCK: AtomicBool = AtomicBool::new(false);

struct Locked;

impl Locked {
    fn new() -> Locked {
        while LOCK
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        Locked
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        LOCK.store(false, Ordering::Release);
    }
}

fn thread() -> usize {
    INSIDE.with(|inside| ptr::from_ref(inside) as usize)
}

/// Handlers that were there before ours: of SIGSEGV and of SIGBUS.
struct Before(std::cell::UnsafeCell<[MaybeUninit<libc::sigaction>; 2]>);

// SAFETY: written once, by `install`, before a handler that reads it can run.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(std::cell::UnsafeCell::new([MaybeUninit::uninit(); 2]));

/// A handler that was to be called once (SA_RESETHAND) has been.
static SPENT: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// Has somebody told of accesses to hidden pages ([`host_access`]); `false`: not on this machine.
pub fn listen_to_host(listener: fn(HostAccess)) -> bool {
    let can = cfg!(target_arch = "x86_64");
    if can {
        host_access::listen(listener);
        install();
    }
    can
}

/// Installs the handlers, once: a program that installs its own later keeps it, and with it the consequences.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (index, signal) in SIGNALS.into_iter().enumerate() {
            // SAFETY: all-zero is fit to be filled; the handler lives as long as the process and does only what a handler
            // may do. What was there before is written down before ours can be called.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, ptr::null(), &mut before) != 0 {
                    continue;
                }
                (*BEFORE.0.get())[index].write(before);
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = handle as *const () as usize;
                ours.sa_flags = libc::SA_SIGINFO;
                // A handler of the program's that did not ask for the alternate stack does not get it.
                // Who is told of accesses of the host's needs a whole stack.
                let is_theirs = before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN;
                if !host_access::has_listener() && (!is_theirs || before.sa_flags & libc::SA_ONSTACK != 0) {
                    ours.sa_flags |= libc::SA_ONSTACK;
                }
                libc::sigfillset(&mut ours.sa_mask);
                libc::sigaction(signal, &ours, ptr::null_mut());
            }
        }
    });
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives valid pointers; `errno` is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let (code, address) = ((*info).si_code, (*info).si_addr() as u64);
        let is_kept_off = signal == libc::SIGSEGV && code == ACCERR;
        let mended = is_kept_off && is_caught(address, &*context.cast()) || mend(signal, code, address);
        *libc::__errno_location() = errno;
        if !mended {
            pass_on(signal, info, context);
        }
    }
}

/// An access to what is hidden from the host.
#[cfg(target_arch = "x86_64")]
fn is_caught(address: u64, context: &libc::ucontext_t) -> bool {
    /// Of the processor's code of a page fault: it was a write (Intel SDM, volume 3, section 4.7).
    const WRITE: i64 = 2;
    if !AddressSpace::get().view().contains(address) {
        return false;
    }
    let registers = &context.uc_mcontext.gregs;
    let access = HostAccess {
        address,
        writes: registers[libc::REG_ERR as usize] & WRITE != 0,
        code: registers[libc::REG_RIP as usize] as usize,
    };
    host_access::caught(access, is_drivers())
}

/// Nothing is hidden there.
#[cfg(not(target_arch = "x86_64"))]
fn is_caught(_: u64, _: &libc::ucontext_t) -> bool {
    false
}

/// `si_code`: nothing is mapped there; it is, but not for this; a file does not reach so far.
const MAPERR: c_int = 1;
const ACCERR: c_int = 2;
const ADRERR: c_int = 2;

/// Makes the page of an address usable, if it is one that we answer for. `true`: the access may be tried again.
fn mend(signal: c_int, code: c_int, address: u64) -> bool {
    let hosts = &AddressSpace::get().hosts;
    if code <= 0 || !hosts.contains(address, 1, 0) {
        return false;
    }
    let (cell, mended) = INSIDE.with(|inside| (inside.gone.get(), inside.mended.get()));
    if cell.is_null() || mended > MOST {
        return false;
    }
    let page = address & !(PAGE - 1);
    let _locked = Locked::new();
    let known = MENDED_PAGES
        .iter()
        .find(|known| known.address.load(Ordering::Relaxed) == page);
    if let Some(known) = known {
        if known.thread.load(Ordering::Relaxed) != thread() {
            // Another thread has just mended it.
            return true;
        }
        // The program has taken away what we had put there.
        known.address.store(0, Ordering::Relaxed);
    }
    let done = match (signal, code) {
        (libc::SIGSEGV, MAPERR) => fill(page),
        (libc::SIGSEGV, ACCERR) => open(page).or_else(|| put_aside(page)),
        (libc::SIGBUS, ADRERR) => put_aside(page),
        _ => None,
    };
    let Some((mend, aside)) = done else {
        return false;
    };
    let free = MENDED_PAGES
        .iter()
        .find(|entry| entry.address.load(Ordering::Relaxed) == 0);
    if let (Some(mend), Some(entry)) = (mend, free) {
        entry.address.store(page, Ordering::Relaxed);
        entry.mend.store(mend as u32, Ordering::Relaxed);
        entry.aside.store(aside, Ordering::Relaxed);
        entry.thread.store(thread(), Ordering::Relaxed);
    }
    INSIDE.with(|inside| inside.mended.set(mended + 1));
    hosts.break_off(address);
    // SAFETY: the cell outlives the region that the thread is in.
    let cell = unsafe { &*cell };
    let _ = cell.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
    true
}

/// What was done, if there is something to restore, and where the page stands meanwhile.
type Done = Option<(Option<Mend>, u64)>;

/// Zeros at an address where there is nothing, or wherever the system likes.
fn map(address: u64, protection: c_int, flags: c_int) -> Option<u64> {
    // SAFETY: a private mapping; the callers say what it may replace.
    let mapped = unsafe {
        libc::mmap(
            address as *mut c_void,
            PAGE as usize,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    };
    (mapped != libc::MAP_FAILED).then_some(mapped as u64)
}

fn unmap(address: u64) {
    // SAFETY: the callers made the mapping, and nobody else knows of it.
    unsafe { libc::munmap(address as *mut c_void, PAGE as usize) };
}

fn fill(page: u64) -> Done {
    match map(page, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED_NOREPLACE) {
        Some(mapped) if mapped == page => Some((Some(Mend::Filled), 0)),
        Some(elsewhere) => {
            unmap(elsewhere);
            None
        }
        // SAFETY: the thread's own number. Somebody has mapped something there meanwhile: worth another try.
        None => (unsafe { *libc::__errno_location() } == libc::EEXIST).then_some((None, 0)),
    }
}

fn open(page: u64) -> Done {
    let mend = if is_readable(page) {
        Mend::OpenedReadable
    } else {
        Mend::OpenedUnreadable
    };
    // SAFETY: a page of the program's, in a range that it has given us to write to; `restore` takes it back.
    let opened = unsafe { libc::mprotect(page as *mut c_void, PAGE as usize, libc::PROT_READ | libc::PROT_WRITE) };
    (opened == 0).then_some((Some(mend), 0))
}

fn put_aside(page: u64) -> Done {
    let aside = map(0, libc::PROT_NONE, 0)?;
    if !move_page(page, aside) {
        unmap(aside);
        return None;
    }
    // The page's place is empty, and nobody else may take it.
    match map(page, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED) {
        Some(_) => Some((Some(Mend::Moved), aside)),
        None => {
            move_page(aside, page);
            None
        }
    }
}

/// Moves a page with what stands behind it and its protection, over what is at the other address.
fn move_page(from: u64, to: u64) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: `to` is a mapping of ours, and `from` a page that nobody can use as it is, or one that goes back.
    let moved = unsafe {
        libc::mremap(
            from as *mut c_void,
            PAGE as usize,
            PAGE as usize,
            flags,
            to as *mut c_void,
        )
    };
    moved != libc::MAP_FAILED
}

/// Whether a page can be read, without reading it: the system reads a set of signals from it before it finds out that the
/// wish (-1) means nothing.
fn is_readable(page: u64) -> bool {
    // SAFETY: the call fails in any case, and changes nothing.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, -1, page, ptr::null_mut::<c_void>(), 8);
        *libc::__errno_location() != libc::EFAULT
    }
}

/// Leaves the pages that were mended for this thread as the program has made them. Another thread that still uses one
/// comes to the handler again.
#[cold]
fn restore() {
    INSIDE.with(|inside| inside.mended.set(0));
    let _blocked = crate::trace::signals::Blocked::all();
    let _locked = Locked::new();
    let mine = MENDED_PAGES
        .iter()
        .filter(|entry| entry.address.load(Ordering::Relaxed) != 0 && entry.thread.load(Ordering::Relaxed) == thread());
    for entry in mine {
        let page = entry.address.swap(0, Ordering::Relaxed);
        let protect = |protection| {
            // SAFETY: the program's page, which gets the rights that it had.
            unsafe { libc::mprotect(page as *mut c_void, PAGE as usize, protection) };
        };
        match entry.mend.load(Ordering::Relaxed) {
            mend if mend == Mend::Filled as u32 => unmap(page),
            mend if mend == Mend::OpenedUnreadable as u32 => protect(libc::PROT_NONE),
            mend if mend == Mend::OpenedReadable as u32 => protect(libc::PROT_READ),
            _ => {
                move_page(entry.aside.load(Ordering::Relaxed), page);
            }
        }
    }
}

/// Does what would have happened without us.
///
/// # Safety
/// The arguments are those of a handler that is running.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = usize::from(signal != SIGNALS[0]);
    // SAFETY: `install` has filled it before this handler could run.
    let before = unsafe { (*BEFORE.0.get())[index].assume_init() };
    let once = before.sa_flags & libc::SA_RESETHAND != 0;
    let spent = once && SPENT[index].swap(true, Ordering::Relaxed);
    if spent || before.sa_sigaction == libc::SIG_DFL || before.sa_sigaction == libc::SIG_IGN {
        // The access is tried again, and ends the process as it always would have (a fault cannot be ignored).
        // SAFETY: all-zero is the default action.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, &default, ptr::null_mut());
            // A signal that somebody has sent does not come again by itself.
            if (*info).si_code <= 0 {
                libc::raise(signal);
            }
        }
        return;
    }
    // SAFETY: `context` is the interrupted one's; the masks are whole; the handler is the program's, called as it expects
    // to be. It may never return.
    unsafe {
        let interrupted = &(*context.cast::<libc::ucontext_t>()).uc_sigmask;
        let mut mask = before.sa_mask;
        for number in 1..=64 {
            if libc::sigismember(interrupted, number) == 1 {
                libc::sigaddset(&mut mask, number);
            }
        }
        if before.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut());
        if before.sa_flags & libc::SA_SIGINFO != 0 {
            let theirs: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(before.sa_sigaction);
            theirs(signal, info, context);
        } else {
            let theirs: extern "C" fn(c_int) = std::mem::transmute(before.sa_sigaction);
            theirs(signal);
        }
    }
}
