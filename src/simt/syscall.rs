//! The system calls of the PTX ABI (PTX Writer's Guide, System Calls): vprintf, malloc, free, __assertfail; and what the
//! device runtime offers to kernels in graphs (CUDA programming guide, "Conditional Graph Nodes").
//!
//! Arguments stand in the caller's frame in local memory, as for any call. Strings are read through the same checks as
//! a kernel's own accesses.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::defect;
use crate::memory::READ;
use crate::program::{Copy3, Syscall};

use super::interp::{Cx, RawFault, access, first_lane, lanes};
use super::{Cause, device_runtime};

/// Arguments that one printf may have (CUDA programming guide, Formatted Output, Limitations).
const MAX_ARGUMENTS: usize = 32;
/// Bytes of a device string that are read at most.
const MAX_STRING: u64 = 1 << 20;

/// Carries out a call for the lanes of `cx.mask`.
///
/// # Errors
/// A failed assertion, or a pointer that may not be read.
pub fn call(which: Syscall, args: &[Copy3], results: &[Copy3], cx: &mut Cx<'_, '_>) -> Result<(), RawFault> {
    let argument = |cx: &Cx<'_, '_>, lane: usize, i: usize| {
        args.get(i).map_or(0, |a| {
            let mut raw = [0u8; 8];
            let n = (a.bytes as usize).min(8);
            // SAFETY: the argument lies in the running frame, within the lane's local window.
            unsafe { std::ptr::copy_nonoverlapping(frame_byte(cx, lane, a.from), raw.as_mut_ptr(), n) };
            u64::from_le_bytes(raw)
        })
    };
    let result = |cx: &Cx<'_, '_>, lane: usize, value: u64| {
        if let Some(r) = results.first() {
            let n = (r.bytes as usize).min(8);
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), frame_byte(cx, lane, r.to), n) };
        }
    };
    let services = &cx.block.env.launch.services;
    defect::may_fail("system call", &cx.block.env.kernel.function.name);
    match which {
        Syscall::Vprintf => {
            let mut out = Vec::new();
            for lane in lanes(&cx.mask.lanes) {
                let (format, block) = (argument(cx, lane, 0), argument(cx, lane, 1));
                let value = print(cx, lane, format, block, &mut out)?;
                result(cx, lane, u64::from(value as u32));
            }
            services.print(&out);
        }
        Syscall::Malloc => {
            for lane in lanes(&cx.mask.lanes) {
                result(cx, lane, services.malloc(argument(cx, lane, 0)));
            }
        }
        Syscall::Free => {
            for lane in lanes(&cx.mask.lanes) {
                let address = argument(cx, lane, 0);
                if address != 0 && !services.free(address) {
                    let why = format!("free({address:#x}): not an allocation of the device heap, or freed before");
                    return Err(RawFault {
                        cause: Cause::IllegalInstruction { why },
                        lane,
                    });
                }
            }
        }
        Syscall::AssertFail => {
            for lane in lanes(&cx.mask.lanes) {
                let text = |i: usize| {
                    let raw = string(cx, lane, argument(cx, lane, i)).unwrap_or_else(|_| b"?".to_vec());
                    String::from_utf8_lossy(&raw).into_owned()
                };
                let (message, file, line, function) = (text(0), text(1), argument(cx, lane, 2) as u32, text(3));
                let [bx, by, bz] = cx.block.ctaid;
                let [nx, ny, _] = cx.block.env.launch.block;
                let t = cx.first_thread + lane as u32;
                let (x, y, z) = (t % nx, t / nx % ny, t / nx / ny);
                services.assert_failed(&format!(
                    "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed."
                ));
            }
            return Err(RawFault {
                cause: Cause::Assert,
                lane: first_lane(&cx.mask.lanes),
            });
        }
        Syscall::Runtime(which, generation) => device_runtime::call(which, generation, args, results, cx)?,
        Syscall::GraphSetConditional => {
            for lane in lanes(&cx.mask.lanes) {
                let handle = argument(cx, lane, 0);
                if !services.set_conditional(handle, argument(cx, lane, 1) as u32) {
                    let why = format!("cudaGraphSetConditional({handle:#x}): not a conditional handle of a graph");
                    return Err(RawFault {
                        cause: Cause::IllegalInstruction { why },
                        lane,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Byte `offset` of the running frame in a lane's local memory.
pub(super) fn frame_byte(cx: &Cx<'_, '_>, lane: usize, offset: u32) -> *mut u8 {
    let b = cx.block;
    let thread = u64::from(cx.first_thread) + lane as u64;
    (b.local + thread * u64::from(b.local_stride) + u64::from(cx.frame + offset)) as *mut u8
}

/// `N` bytes that the kernel may read.
pub(super) fn bytes<const N: usize>(cx: &Cx<'_, '_>, lane: usize, address: u64) -> Result<[u8; N], RawFault> {
    if !access::allowed(cx, address, N as u64, READ) {
        let cause = Cause::IllegalAddress {
            address,
            bytes: N as u32,
            write: false,
            space: crate::program::Space::Generic,
        };
        return Err(RawFault { cause, lane });
    }
    // SAFETY: checked just now.
    Ok(unsafe { (address as *const [u8; N]).read_unaligned() })
}

/// A NUL-terminated string that the kernel may read, without the NUL.
fn string(cx: &Cx<'_, '_>, lane: usize, address: u64) -> Result<Vec<u8>, RawFault> {
    let mut out = Vec::new();
    for i in 0..MAX_STRING {
        let [c] = bytes::<1>(cx, lane, address.wrapping_add(i))?;
        if c == 0 {
            break;
        }
        out.push(c);
    }
    Ok(out)
}

/// One conversion of a format: everything from `%` to its letter.
struct Conversion {
    /// `%`, flags, width, precision, with `*` as written, without length modifiers.
    spec: Vec<u8>,
    /// Number of `*` in it.
    stars: usize,
    /// Bytes of an integer argument by its length modifier: 8 for `l`, `ll`, `j`, `z`, `t`; 2 for `h`; 1 for `hh`.
    size: usize,
    letter: u8,
}

fn conversion(format: &[u8]) -> Option<(Conversion, usize)> {
    let mut spec = vec![b'%'];
    let (mut i, mut stars) = (1, 0);
    while let Some(&c) = format.get(i).filter(|c| b"-+ #0123456789.*".contains(c)) {
        stars += usize::from(c == b'*');
        spec.push(c);
        i += 1;
    }
    let mut size = 4;
    while let Some(&c) = format.get(i).filter(|c| b"hlLjztq".contains(c)) {
        size = match (c, size) {
            (b'h', 2) => 1,
            (b'h', _) => 2,
            _ => 8,
        };
        i += 1;
    }
    let letter = *format.get(i)?;
    b"diouxXfFeEgGaAcsp%n".contains(&letter).then_some((
        Conversion {
            spec,
            stars,
            size,
            letter,
        },
        i + 1,
    ))
}

/// Formats one call of one lane. The result is the number of arguments, -1 for a format that cannot be.
fn print(cx: &Cx<'_, '_>, lane: usize, format: u64, block: u64, out: &mut Vec<u8>) -> Result<i32, RawFault> {
    if format == 0 {
        return Ok(-1);
    }
    let format = string(cx, lane, format)?;
    let mut arguments = Arguments {
        cx,
        lane,
        block,
        offset: 0,
        count: 0,
    };
    let mut i = 0;
    while i < format.len() {
        if format[i] != b'%' {
            out.push(format[i]);
            i += 1;
            continue;
        }
        let Some((c, length)) = conversion(&format[i..]) else {
            // What is no conversion is printed as it stands.
            out.push(b'%');
            i += 1;
            continue;
        };
        i += length;
        if c.letter == b'%' {
            out.push(b'%');
            continue;
        }
        if c.letter == b'n' {
            arguments.next(8)?;
            continue;
        }
        let mut stars = [0; 2];
        for star in stars.iter_mut().take(c.stars) {
            *star = arguments.next(4)? as i32;
        }
        one(cx, lane, &c, &stars, &mut arguments, out)?;
    }
    Ok(if arguments.count > MAX_ARGUMENTS {
        -1
    } else {
        arguments.count as i32
    })
}

/// Takes arguments from a vprintf block: natural alignment, C promotions.
struct Arguments<'a, 'b, 'l> {
    cx: &'a Cx<'b, 'l>,
    lane: usize,
    block: u64,
    offset: u64,
    count: usize,
}

impl Arguments<'_, '_, '_> {
    fn next(&mut self, size: u64) -> Result<u64, RawFault> {
        let at = self.offset.next_multiple_of(size);
        self.offset = at + size;
        self.count += 1;
        let address = self.block.wrapping_add(at);
        Ok(if size == 4 {
            u64::from(u32::from_le_bytes(bytes(self.cx, self.lane, address)?))
        } else {
            u64::from_le_bytes(bytes(self.cx, self.lane, address)?)
        })
    }
}

/// One conversion by the C library, so that every flag means what it means on the host.
fn one(
    cx: &Cx<'_, '_>,
    lane: usize,
    c: &Conversion,
    stars: &[c_int; 2],
    arguments: &mut Arguments<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), RawFault> {
    let mut spec = c.spec.clone();
    let stars = &stars[..c.stars.min(2)];
    match c.letter {
        b'd' | b'i' | b'o' | b'u' | b'x' | b'X' => {
            let raw = arguments.next(if c.size == 8 { 8 } else { 4 })?;
            let signed = matches!(c.letter, b'd' | b'i');
            let value = match (c.size, signed) {
                (8, _) => raw as i64,
                (4, true) => i64::from(raw as i32),
                (4, false) => i64::from(raw as u32),
                (2, true) => i64::from(raw as i16),
                (2, false) => i64::from(raw as u16),
                (_, true) => i64::from(raw as i8),
                (_, false) => i64::from(raw as u8),
            };
            spec.extend_from_slice(b"ll");
            spec.push(c.letter);
            format_with(&spec, stars, Value::Integer(value), out);
        }
        b'c' => {
            let raw = arguments.next(4)? as u8;
            spec.push(b'c');
            format_with(&spec, stars, Value::Char(c_int::from(raw)), out);
        }
        b's' => {
            let address = arguments.next(8)?;
            let text = if address == 0 {
                b"(null)".to_vec()
            } else {
                string(cx, lane, address)?
            };
            spec.push(b's');
            let text = CString::new(text).unwrap_or_default();
            format_with(&spec, stars, Value::Pointer(text.as_ptr().cast()), out);
        }
        b'p' => {
            let address = arguments.next(8)?;
            spec.push(b'p');
            format_with(&spec, stars, Value::Pointer(address as *const c_void), out);
        }
        _ => {
            let value = f64::from_bits(arguments.next(8)?);
            spec.push(c.letter);
            format_with(&spec, stars, Value::Float(value), out);
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Value {
    Integer(i64),
    Char(c_int),
    Pointer(*const c_void),
    Float(f64),
}

fn format_with(spec: &[u8], stars: &[c_int], value: Value, out: &mut Vec<u8>) {
    let Ok(spec) = CString::new(spec) else { return };
    // SAFETY: the specification has been taken apart and put together here: it converts exactly the stars and the value
    // that are passed, in their C types; snprintf writes at most `size` bytes.
    let into = |to: *mut c_char, size: usize| unsafe {
        let f = spec.as_ptr();
        match (stars, value) {
            ([], Value::Integer(v)) => libc::snprintf(to, size, f, v),
            ([], Value::Char(v)) => libc::snprintf(to, size, f, v),
            ([], Value::Pointer(v)) => libc::snprintf(to, size, f, v),
            ([], Value::Float(v)) => libc::snprintf(to, size, f, v),
            ([a], Value::Integer(v)) => libc::snprintf(to, size, f, *a, v),
            ([a], Value::Char(v)) => libc::snprintf(to, size, f, *a, v),
            ([a], Value::Pointer(v)) => libc::snprintf(to, size, f, *a, v),
            ([a], Value::Float(v)) => libc::snprintf(to, size, f, *a, v),
            ([a, b, ..], Value::Integer(v)) => libc::snprintf(to, size, f, *a, *b, v),
            ([a, b, ..], Value::Char(v)) => libc::snprintf(to, size, f, *a, *b, v),
            ([a, b, ..], Value::Pointer(v)) => libc::snprintf(to, size, f, *a, *b, v),
            ([a, b, ..], Value::Float(v)) => libc::snprintf(to, size, f, *a, *b, v),
        }
    };
    let mut small = [0u8; 128];
    let n = into(small.as_mut_ptr().cast(), small.len());
    let Ok(n) = usize::try_from(n) else { return };
    if n < small.len() {
        out.extend_from_slice(&small[..n]);
        return;
    }
    let mut large = vec![0u8; n + 1];
    into(large.as_mut_ptr().cast(), large.len());
    out.extend_from_slice(&large[..n]);
}
