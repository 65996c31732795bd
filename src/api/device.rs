//! Device management, with the two deprecated calls.
//!
//! The numbers are those of the profile (`driver/device/profile.rs`).

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::Device;

pub fn device_get(device: Out<CUdevice>, ordinal: c_int) -> Answer {
    device.required()?;
    device.set(Device::get(ordinal)?.ordinal())
}

pub fn device_get_count(count: Out<c_int>) -> Answer {
    count.set(Device::count() as c_int)
}

pub fn device_get_name(name: Out<c_char>, len: c_int, dev: CUdevice) -> Answer {
    require(!name.is_null() && len > 0)?;
    name.set_text(Device::get(dev)?.name(), len as usize)
}

pub fn device_total_mem(bytes: Out<usize>, dev: CUdevice) -> Answer {
    bytes.required()?;
    bytes.set(Device::get(dev)?.total_memory() as usize)
}

/// The first version has 32 bits for the answer: what is more is as much as they can say.
pub fn device_total_mem_v1(bytes: Out<c_uint>, dev: CUdevice) -> Answer {
    bytes.required()?;
    bytes.set(Device::get(dev)?.total_memory().min(c_uint::MAX.into()) as c_uint)
}

/// Every number succeeds: cudart refuses to start when one it knows fails, and newer ones ask for more.
pub fn device_get_attribute(pi: Out<c_int>, attrib: CUdevice_attribute, dev: CUdevice) -> Answer {
    pi.required()?;
    pi.set(Device::get(dev)?.attribute(attrib.0 as i32))
}

/// Both versions: they differ only for devices that are divided (MIG).
pub fn device_get_uuid(uuid: Out<CUuuid>, dev: CUdevice) -> Answer {
    uuid.required()?;
    uuid.set(CUuuid {
        bytes: Device::get(dev)?.uuid().map(|byte| byte as c_char),
    })
}

/// Locally unique identifiers belong to Windows.
pub fn device_get_luid(_luid: Out<c_char>, _device_node_mask: Out<c_uint>, dev: CUdevice) -> Answer {
    Device::get(dev)?;
    Err(CUresult::CUDA_ERROR_NOT_SUPPORTED)
}

pub fn device_get_pci_bus_id(text: Out<c_char>, len: c_int, dev: CUdevice) -> Answer {
    require(!text.is_null() && len > 0)?;
    text.set_text(&Device::get(dev)?.pci_bus_id(), len as usize)
}

pub fn device_get_by_pci_bus_id(dev: Out<CUdevice>, text: In<c_char>) -> Answer {
    dev.required()?;
    dev.set(Device::by_pci_bus_id(text.text()?)?.ordinal())
}

pub fn device_compute_capability(major: Out<c_int>, minor: Out<c_int>, dev: CUdevice) -> Answer {
    require(!major.is_null() && !minor.is_null())?;
    let capability = Device::get(dev)?.capability();
    major.set(capability.0 as c_int)?;
    minor.set(capability.1 as c_int)
}

pub fn device_get_properties(prop: Out<CUdevprop>, dev: CUdevice) -> Answer {
    use CUdevice_attribute as A;
    prop.required()?;
    let device = Device::get(dev)?;
    let get = |attribute: A| device.attribute(attribute.0 as i32);
    prop.set(CUdevprop {
        maxThreadsPerBlock: get(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        maxThreadsDim: [
            get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        ],
        maxGridSize: [
            get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        ],
        sharedMemPerBlock: get(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        totalConstantMemory: get(A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        SIMDWidth: get(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        memPitch: get(A::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        regsPerBlock: get(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        clockRate: get(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        textureAlign: get(A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    })
}

pub fn device_get_texture_1d_linear_max_width(
    max_width_in_elements: Out<usize>,
    format: CUarray_format,
    num_channels: c_uint,
    dev: CUdevice,
) -> Answer {
    require(!max_width_in_elements.is_null() && matches!(num_channels, 1 | 2 | 4))?;
    require(format.name().is_some())?;
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
    max_width_in_elements.set(Device::get(dev)?.attribute(attribute.0 as i32).max(0) as usize)
}

/// Contexts cannot be bound to some of the multiprocessors.
pub fn device_get_exec_affinity_support(pi: Out<c_int>, kind: CUexecAffinityType, dev: CUdevice) -> Answer {
    require(!pi.is_null() && kind.0 < CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_MAX.0)?;
    Device::get(dev)?;
    pi.set(0)
}
