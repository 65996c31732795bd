//! The cases of `tests/ptx` on a driver.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;

use crate::case::{Case, Role};
use crate::driver::{Driver, Failure, Launch};
use crate::verdict::{self, bytes};

/// What a case left behind.
pub struct Outcome {
    /// How it differs from its header; empty if it does not.
    pub report: String,
    /// Each buffer that the header looks at: its name, and its bytes in hexadecimal.
    pub buffers: Vec<(String, String)>,
    /// Nothing can be launched in this context any more.
    pub broken: bool,
}

/// A stack that drivers allow each thread.
const STACK: u64 = 512 << 10;

/// Whether the case asks for what only a test inside the library can do: images and logical endpoints, which nothing here makes; a buffer that is
/// freed before the launch; a kernel that ends by its time limit; a stack that `cuCtxSetLimit` refuses.
pub fn is_left_out(case: &Case) -> bool {
    let made = |role| matches!(role, Role::Image(_) | Role::Endpoint(_));
    let images = case.parameters.iter().any(|one| made(one.role)) || !case.images.is_empty();
    let freed = case.parameters.iter().any(|one| one.freed);
    let limits = case
        .launches
        .iter()
        .any(|launch| launch.timeout.is_some() || launch.stack > STACK);
    images || freed || limits
}

/// Runs a case.
///
/// # Errors
/// What kept it from being run.
pub fn run(driver: &Driver, case: &Case, text: &str) -> Result<Outcome, String> {
    let mut buffers = Vec::new();
    for parameter in &case.parameters {
        buffers.push(match parameter.role {
            Role::Buffer => Some(driver.buffer(&bytes(parameter.ty, &parameter.before))?),
            Role::Value => None,
            Role::Image(_) | Role::Endpoint(_) => return Err("images and endpoints are not made here".to_owned()),
        });
    }
    let parameters: Vec<Vec<u8>> = case
        .parameters
        .iter()
        .zip(&buffers)
        .map(|(parameter, buffer)| match buffer {
            Some(buffer) => buffer.address.to_le_bytes().to_vec(),
            None => bytes(parameter.ty, &parameter.before),
        })
        .collect();
    let mut failure = None;
    let [printed, errors] = {
        // What kernels print comes when the module goes, if not before.
        let said = Said::listen()?;
        let module = driver.module(text)?;
        for launch in &case.launches {
            driver.stack(launch.stack)?;
            let launch = Launch {
                entry: &launch.entry,
                grid: launch.grid,
                block: launch.block,
                shared: launch.shared,
                cooperative: launch.cooperative,
                cluster: launch.cluster,
            };
            if let Err(Failure(code)) = module.run(&launch, &parameters)? {
                failure = Some(code);
                break;
            }
        }
        drop(module);
        said.end()?
    };
    let mut report = String::new();
    if failure != case.expect.error {
        let show = |code: Option<u32>| code.map_or("success".to_owned(), |code| format!("error {code}"));
        report += &format!("expected {}, got {}\n", show(case.expect.error), show(failure));
    }
    verdict::said("output", &case.expect.print, &printed, case, &mut report);
    if let Some(line) = case.expect.assert.as_ref().filter(|line| !errors.contains(line.trim())) {
        report += &format!("expected the assertion:\n{line}\ngot:\n{errors}\n");
    }
    let mut kept = Vec::new();
    if failure.is_none() {
        for (parameter, buffer) in case.parameters.iter().zip(&buffers) {
            if let Some(buffer) = buffer.as_ref().filter(|_| !parameter.after.is_empty()) {
                let found = buffer.read()?;
                verdict::compare(parameter, &found, case, &mut report);
                let hex = found.iter().map(|byte| format!("{byte:02x}")).collect();
                kept.push((parameter.name.clone(), hex));
            }
        }
    }
    Ok(Outcome {
        report,
        buffers: kept,
        broken: failure.is_some(),
    })
}

/// Standard output and standard error, into files for a while.
struct Said(Vec<Diverted>);

struct Diverted {
    fd: i32,
    file: File,
    kept: i32,
}

impl Said {
    fn listen() -> Result<Said, String> {
        let _ = std::io::stdout().flush();
        [1, 2]
            .into_iter()
            .map(Diverted::new)
            .collect::<Result<_, _>>()
            .map(Said)
    }

    /// What was written to each.
    fn end(self) -> Result<[String; 2], String> {
        let mut texts = [String::new(), String::new()];
        for (mut diverted, text) in self.0.into_iter().zip(&mut texts) {
            diverted.restore();
            let mut said = Vec::new();
            let read = diverted
                .file
                .rewind()
                .and_then(|()| diverted.file.read_to_end(&mut said));
            read.map_err(|error| error.to_string())?;
            *text = String::from_utf8_lossy(&said).into_owned();
        }
        Ok(texts)
    }
}

impl Diverted {
    fn new(fd: i32) -> Result<Diverted, String> {
        let path = std::env::temp_dir().join(format!("margay-hardware-{}-{fd}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let file = file.map_err(|error| error.to_string())?;
        let _ = std::fs::remove_file(&path);
        // SAFETY: plain descriptors of this process; nobody else changes them meanwhile, one case runs at a time.
        let kept = unsafe {
            let kept = libc::dup(fd);
            libc::dup2(file.as_raw_fd(), fd);
            kept
        };
        Ok(Diverted { fd, file, kept })
    }

    fn restore(&mut self) {
        let kept = std::mem::replace(&mut self.kept, -1);
        if kept >= 0 {
            // SAFETY: as in `new`; `kept` is the copy made there.
            unsafe {
                libc::dup2(kept, self.fd);
                libc::close(kept);
            }
        }
    }
}

impl Drop for Diverted {
    fn drop(&mut self) {
        self.restore();
    }
}
