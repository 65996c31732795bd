//! Launches as programs ask for them: into a stream, which runs or records them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::launch::{Arguments, Config, Prepared, check, collect, launch_blocking};
use crate::driver::graph::{DeviceNode, KernelNode, Work};
use crate::driver::profile::multiprocessors;
use crate::driver::stream::{Command, Point};
use crate::driver::{Error, Function, Result, Stream};
use crate::sanitizer::between::{self, Act};

/// `cuLaunchKernel`, `cuLaunchKernelEx`, `cuLaunchCooperativeKernel`.
///
/// # Errors
/// 1 for shapes beyond the device's limits and missing arguments, 701 and 720 for what does not fit, 912 for clusters,
/// 218 for a function that cannot be lowered.
///
/// # Safety
/// `Arguments::Pointers` has a valid pointer for each parameter of the function.
pub unsafe fn launch(
    function: &Arc<Function>,
    config: &Config,
    arguments: Arguments<'_>,
    stream: &Arc<Stream>,
) -> Result<()> {
    let function = function.on(stream)?;
    let shared = &stream.shared;
    shared.check()?;
    let capture = stream.admit()?;
    // SAFETY: our caller promises a pointer to each parameter; `function` has the same ones in every context.
    let params = unsafe { collect(&function, arguments)? };
    if let Some(capture) = capture {
        check(&function, config, function.lowered()?, multiprocessors())?;
        return capture.add(
            stream,
            Work::Kernel(KernelNode::captured(function, *config, params, stream)),
        );
    }
    let prepared = Prepared::new(&function, config, params, stream.multiprocessors())?;
    shared.printer.flush();
    let operation = between::begin(stream, Act::Touches);
    let work = move || between::during(operation.as_ref(), || prepared.run());
    let ticket = stream.enqueue(Command::Work(Box::new(move |_| work())));
    if launch_blocking() {
        stream.wait_for(ticket);
        between::done(stream);
        shared.printer.flush();
        shared.check()?;
    }
    Ok(())
}

/// What a launch is to be as a node of a graph.
#[derive(Default)]
pub struct NodeOptions {
    /// Values of 64 bytes by number.
    pub attributes: BTreeMap<u32, [u64; 8]>,
    /// Kernels may change it.
    pub updatable: bool,
}

/// As [`launch`]; a stream that records keeps the options with the node. Gives the node if kernels may change it.
///
/// # Errors
/// As [`launch`], and 1 for a node that kernels may change in a stream that does not record.
///
/// # Safety
/// As [`launch`].
pub unsafe fn launch_with_options(
    function: &Arc<Function>,
    config: &Config,
    arguments: Arguments<'_>,
    stream: &Arc<Stream>,
    options: NodeOptions,
) -> Result<Option<Arc<DeviceNode>>> {
    let recording = stream.capture_info()?.is_some();
    if !recording {
        if options.updatable {
            return Err(Error::InvalidValue);
        }
        // SAFETY: `launch` asks its caller for what we ask ours: a pointer to each parameter.
        return unsafe { launch(function, config, arguments, stream) }.map(|()| None);
    }
    let function = function.on(stream)?;
    stream.shared.check()?;
    let capture = stream.admit()?.ok_or(Error::InvalidValue)?;
    // SAFETY: `KernelNode::new` reads a pointer to each parameter, which our caller promises.
    let params = unsafe { collect(&function, arguments)? };
    check(&function, config, function.lowered()?, multiprocessors())?;
    let mut kernel = KernelNode::captured(function, *config, params, stream);
    kernel.attributes.extend(options.attributes);
    kernel.updatable = options.updatable.then(DeviceNode::create);
    let node = kernel.updatable.clone();
    capture.add(stream, Work::Kernel(kernel))?;
    Ok(node)
}

/// `cuLaunchCooperativeKernelMultiDevice`: one launch on each of several devices. `before`: none begins before all that is
/// in any of the streams is done; `after`: what comes next in any of them waits for all.
///
/// # Errors
/// As [`launch`], and 1 for two launches on one device and functions that are not the same one.
///
/// # Safety
/// As [`launch`].
pub unsafe fn launch_together(
    launches: &[(Arc<Function>, Arguments<'_>, Arc<Stream>)],
    config: &Config,
    before: bool,
    after: bool,
) -> Result<()> {
    let mut devices = Vec::new();
    for (function, _, stream) in launches {
        let same = launches
            .first()
            .is_some_and(|(first, _, _)| first.name() == function.name());
        if !same || devices.contains(&stream.shared.device) {
            return Err(Error::InvalidValue);
        }
        devices.push(stream.shared.device);
        let function = function.on(stream)?;
        stream.shared.check()?;
        stream.refuse_capture()?;
        // All or none.
        check(&function, config, function.lowered()?, stream.multiprocessors())?;
    }
    let wait_for_each_other = || {
        let ends: Vec<Point> = launches.iter().map(|(_, _, stream)| stream.end()).collect();
        let marks: Vec<_> = launches.iter().map(|(_, _, stream)| between::mark(stream)).collect();
        for (_, _, stream) in launches {
            ends.iter().for_each(|point| stream.wait_point(point.clone()));
            marks.iter().for_each(|mark| between::wait(stream, mark.as_ref()));
        }
    };
    if before {
        wait_for_each_other();
    }
    for (function, arguments, stream) in launches {
        // SAFETY: our caller promises a pointer to each parameter of every function in the list.
        unsafe { launch(function, config, *arguments, stream)? };
    }
    if after {
        wait_for_each_other();
    }
    Ok(())
}
