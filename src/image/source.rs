//! Where an image's bytes are read from: a slice whose end is known, or an address whose end only its own headers tell.
//!
//! Offsets and lengths come from headers and are not to be trusted: reading past an end is an error that names the
//! offset.
//!
//! An address is read with `process_vm_readv` on the own process: a corrupt header then ends in an error instead of a
//! crash, and pages that nobody asks for (machine code, the PTX of other architectures) are never touched.

use super::error::{ErrorKind, ImageError};
use std::borrow::Cow;
use std::sync::OnceLock;

/// Longest PTX text taken from an address without a size. The largest known modules are a tenth of it.
pub(super) const TEXT_LIMIT: usize = 1 << 30;

/// A place to read from. Offsets count from its start.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    /// Made only by [`Source::address`], whose contract covers every later read.
    Address(usize),
}

impl<'a> Source<'a> {
    /// # Safety
    /// `address` was handed to a load call as an image: what its headers declare is readable, and nobody writes to it
    /// while the `Source` is in use. Where the kernel can check readability for us, a lie ends in an error.
    pub unsafe fn address(address: usize) -> Source<'static> {
        Source::Address(address)
    }

    /// How many bytes there are, when that is known.
    pub fn len(&self) -> Option<u64> {
        match self {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::Address(_) => None,
        }
    }

    /// Exactly `len` bytes at `offset`; `what` names them in the error.
    pub fn read(&self, offset: u64, len: usize, what: &str) -> Result<Cow<'a, [u8]>, ImageError> {
        match self {
            Source::Bytes(bytes) => {
                let start = usize::try_from(offset).ok();
                let end = start.and_then(|start| start.checked_add(len));
                match start.zip(end).and_then(|(start, end)| bytes.get(start..end)) {
                    Some(slice) => Ok(Cow::Borrowed(slice)),
                    None => Err(ImageError::corrupt(
                        offset,
                        format!(
                            "truncated: {what} needs {len} bytes, and the image has {} in all",
                            bytes.len()
                        ),
                    )),
                }
            }
            Source::Address(base) => {
                let address = usize::try_from(offset).ok().and_then(|offset| base.checked_add(offset));
                let address = address.filter(|address| address.checked_add(len).is_some());
                let mut buffer = Vec::new();
                let got = match address {
                    Some(address) if buffer.try_reserve_exact(len).is_ok() => peek(address, len, &mut buffer),
                    _ => 0,
                };
                if got == len {
                    Ok(Cow::Owned(buffer))
                } else {
                    let message = format!("truncated: {what} needs {len} bytes, and memory is readable for {got}");
                    Err(ImageError::corrupt(offset, message))
                }
            }
        }
    }

    /// The bytes before the first NUL (or before the end, where the end is known).
    pub fn text(&self) -> Result<Cow<'a, [u8]>, ImageError> {
        const STEP: usize = 1 << 16;
        match self {
            Source::Bytes(bytes) => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                Ok(Cow::Borrowed(&bytes[..end]))
            }
            Source::Address(base) if !checked_reads() => {
                let start = *base as *const u8;
                // SAFETY: contract of `Source::address`; the scan stops at the NUL, or at the limit.
                let len = unsafe { libc::strnlen(start.cast(), TEXT_LIMIT) };
                // SAFETY: `strnlen` has just read these bytes.
                Ok(Cow::Owned(unsafe { std::slice::from_raw_parts(start, len) }.to_vec()))
            }
            Source::Address(base) => {
                let mut text = Vec::new();
                loop {
                    let seen = text.len();
                    let Some(address) = base.checked_add(seen) else {
                        return Err(ImageError::corrupt(
                            seen as u64,
                            "PTX text runs to the end of the address space",
                        ));
                    };
                    // Steps end on page boundaries, so that a short text at the end of a mapping is read whole.
                    let step = STEP - address % STEP;
                    let got = peek(address, step, &mut text);
                    if let Some(end) = text[seen..].iter().position(|&byte| byte == 0) {
                        text.truncate(seen + end);
                        return Ok(Cow::Owned(text));
                    }
                    if got < step {
                        let message = "PTX text without a terminating NUL: readable memory ends first";
                        return Err(ImageError::corrupt((seen + got) as u64, message));
                    }
                    if text.len() > TEXT_LIMIT {
                        let message = format!("PTX text without a terminating NUL in {TEXT_LIMIT} bytes");
                        return Err(ImageError::at(ErrorKind::TooLarge, text.len() as u64, message));
                    }
                }
            }
        }
    }
}

const PAGE: usize = 4096;

/// Whether the kernel lets the process read itself with `process_vm_readv`; some sandboxes forbid the call.
fn checked_reads() -> bool {
    static CHECKED: OnceLock<bool> = OnceLock::new();
    *CHECKED.get_or_init(|| {
        let probe = [42u8; 4];
        let mut out = Vec::new();
        checked_read(probe.as_ptr() as usize, probe.len(), &mut out) == probe.len() && out == probe
    })
}

/// Appends up to `len` bytes at `address` to `out`, stopping where memory is not readable. Returns how many.
fn peek(address: usize, len: usize, out: &mut Vec<u8>) -> usize {
    out.reserve(len);
    if !checked_reads() {
        // SAFETY: contract of `Source::address`; `text` does not come here without checked reads.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
        return len;
    }
    let mut done = 0;
    while done < len {
        let here = address + done;
        let mut got = checked_read(here, len - done, out);
        if got == 0 {
            // Not every kernel returns the readable head of a range: ask for the current page alone.
            got = checked_read(here, (len - done).min(PAGE - here % PAGE), out);
        }
        if got == 0 {
            break;
        }
        done += got;
    }
    done
}

/// One `process_vm_readv` into the spare capacity of `out`. Returns how many bytes came, 0 on any failure.
fn checked_read(address: usize, len: usize, out: &mut Vec<u8>) -> usize {
    out.reserve(len);
    let local = libc::iovec {
        iov_base: out.spare_capacity_mut().as_mut_ptr().cast(),
        iov_len: len,
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: len,
    };
    // SAFETY: `local` is `len` reserved bytes of `out`; the remote side is checked by the kernel.
    let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    let got = usize::try_from(got).unwrap_or(0);
    // SAFETY: the kernel wrote `got` bytes at the end of `out`, within the reserved capacity.
    unsafe { out.set_len(out.len() + got) };
    got
}
