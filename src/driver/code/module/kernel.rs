//! Kernels of libraries (`cuKernel*`): each is a function in every context that asks, with attributes for each device.

use std::sync::Arc;

use super::{CALLABLES, Callable, Function, Kernel, Library};
use crate::driver::{Context, Device, Error, Handle, Result};

impl Kernel {
    /// 400 for anything but a `CUkernel`.
    pub fn from_handle(handle: Handle) -> Result<Arc<Kernel>> {
        match &*CALLABLES.get(handle).ok_or(Error::InvalidHandle)? {
            Callable::Kernel(kernel) => Ok(Arc::clone(kernel)),
            Callable::Function(_) => Err(Error::InvalidHandle),
        }
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `cuKernelGetLibrary`.
    pub fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or(Error::InvalidHandle)
    }

    /// `cuKernelGetFunction`: in the current context.
    pub fn function(self: &Arc<Kernel>) -> Result<Arc<Function>> {
        self.function_in(&Context::usable()?)
    }

    pub(in crate::driver) fn function_in(self: &Arc<Kernel>, context: &Arc<Context>) -> Result<Arc<Function>> {
        let id = context.id();
        if let Some((_, function)) = self.functions.lock().iter().find(|(context, _)| *context == id) {
            return Ok(Arc::clone(function));
        }
        let module = self.library()?.module_in(context)?;
        let linked = module.linked()?;
        let index = *linked.kernels.get(&*self.name).ok_or(Error::NotFound)?;
        let function = module.function_at(linked, index, Some(self));
        for (device, which, value) in self.attributes.lock().iter() {
            if *device == context.device().ordinal() {
                function.follow(*which, *value)?;
            }
        }
        self.functions.lock().push((id, Arc::clone(&function)));
        Ok(function)
    }

    /// The function in the current context if that is the device's, otherwise in the primary one.
    fn function_on(self: &Arc<Kernel>, device: &'static Device) -> Result<Arc<Function>> {
        match Context::current() {
            Ok(context) if context.device().ordinal() == device.ordinal() => self.function_in(&context),
            _ => self.function_in(device.primary()),
        }
    }

    /// `cuKernelGetAttribute`.
    pub fn attribute(self: &Arc<Kernel>, device: &'static Device, which: u32) -> Result<i32> {
        let ordinal = device.ordinal();
        let known = |list: &[(i32, u32, i32)]| {
            let mut set = list.iter().rev();
            set.find(|(device, of, _)| *device == ordinal && *of == which)
                .map(|found| found.2)
        };
        let set = known(&self.attributes.lock());
        match set {
            Some(value) => Ok(value),
            None => self.function_on(device)?.attribute(which),
        }
    }

    /// `cuKernelSetAttribute`: for this device, in every context, where it has not been set on the function.
    pub fn set_attribute(self: &Arc<Kernel>, device: &'static Device, which: u32, value: i32) -> Result<()> {
        self.function_on(device)?.follow(which, value)?;
        let ordinal = device.ordinal();
        {
            let mut attributes = self.attributes.lock();
            attributes.retain(|(device, of, _)| *device != ordinal || *of != which);
            attributes.push((ordinal, which, value));
        }
        let functions: Vec<Arc<Function>> = self.functions.lock().iter().map(|(_, f)| Arc::clone(f)).collect();
        for function in functions {
            if function.shared.device as i32 == ordinal {
                function.follow(which, value)?;
            }
        }
        Ok(())
    }

    fn any_function(self: &Arc<Kernel>) -> Result<Arc<Function>> {
        match Context::current() {
            Ok(context) => self.function_in(&context),
            Err(_) => self.function_in(Device::get(0)?.primary()),
        }
    }

    /// `cuKernelGetParamInfo`: (offset, bytes); 1 past the last.
    pub fn parameter(self: &Arc<Kernel>, index: usize) -> Result<(u32, u32)> {
        self.any_function()?.parameter(index)
    }

    /// `cuKernelGetParamCount`.
    pub fn parameter_count(self: &Arc<Kernel>) -> Result<usize> {
        Ok(self.any_function()?.parameter_count())
    }
}
