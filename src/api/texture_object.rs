//! Texture and surface object management.
//!
//! The objects are in `driver/textures/texture.rs`. Descriptors are kept as given, to be read back.

use super::call::{Answer, In, Out};
use super::types::*;
use crate::driver::Context;
use crate::driver::texture::{self, Object, Resource, Sampling, View};
use std::sync::Arc;

/// # Errors
/// 1 for types that are none, and flags.
fn resource(description: &CUDA_RESOURCE_DESC) -> Answer<Resource> {
    if description.flags != 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: every member of the union is numbers and pointers, for which all bits are good.
    Ok(unsafe {
        match description.resType {
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY => Resource::Array(description.res.array.hArray as usize),
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                Resource::Mipmapped(description.res.mipmap.hMipmappedArray as usize)
            }
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR => {
                let linear = description.res.linear;
                Resource::Linear {
                    address: linear.devPtr,
                    format: linear.format.0,
                    channels: linear.numChannels,
                    bytes: linear.sizeInBytes as u64,
                }
            }
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D => {
                let pitched = description.res.pitch2D;
                Resource::Pitched {
                    address: pitched.devPtr,
                    format: pitched.format.0,
                    channels: pitched.numChannels,
                    width: pitched.width as u64,
                    height: pitched.height as u64,
                    pitch: pitched.pitchInBytes as u64,
                }
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
    })
}

fn description(resource: &Resource) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE_DESC_st_res {
        reserved: CUDA_RESOURCE_DESC_st_res_reserved { reserved: [0; 32] },
    };
    let kind = match *resource {
        Resource::Array(handle) => {
            res.array = CUDA_RESOURCE_DESC_st_res_array {
                hArray: handle as CUarray,
            };
            CUresourcetype::CU_RESOURCE_TYPE_ARRAY
        }
        Resource::Mipmapped(handle) => {
            res.mipmap = CUDA_RESOURCE_DESC_st_res_mipmap {
                hMipmappedArray: handle as CUmipmappedArray,
            };
            CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        }
        Resource::Linear {
            address,
            format,
            channels,
            bytes,
        } => {
            res.linear = CUDA_RESOURCE_DESC_st_res_linear {
                devPtr: address,
                format: CUarray_format_enum(format),
                numChannels: channels,
                sizeInBytes: bytes as usize,
            };
            CUresourcetype::CU_RESOURCE_TYPE_LINEAR
        }
        Resource::Pitched {
            address,
            format,
            channels,
            width,
            height,
            pitch,
        } => {
            res.pitch2D = CUDA_RESOURCE_DESC_st_res_pitch2D {
                devPtr: address,
                format: CUarray_format_enum(format),
                numChannels: channels,
                width: width as usize,
                height: height as usize,
                pitchInBytes: pitch as usize,
            };
            CUresourcetype::CU_RESOURCE_TYPE_PITCH2D
        }
    };
    CUDA_RESOURCE_DESC {
        resType: kind,
        res,
        flags: 0,
    }
}

pub fn tex_object_create(
    _: &Arc<Context>,
    p_tex_object: Out<CUtexObject>,
    p_res_desc: In<CUDA_RESOURCE_DESC>,
    p_tex_desc: In<CUDA_TEXTURE_DESC>,
    p_res_view_desc: In<CUDA_RESOURCE_VIEW_DESC>,
) -> Answer {
    p_tex_object.required()?;
    let resource = resource(&p_res_desc.get()?)?;
    let texture = p_tex_desc.get()?;
    let sampling = Sampling {
        address: texture.addressMode.map(|mode| mode.0),
        filter: texture.filterMode.0,
        flags: texture.flags,
        anisotropy: texture.maxAnisotropy,
        level_filter: texture.mipmapFilterMode.0,
        level_bias: texture.mipmapLevelBias,
        level_clamp: [texture.minMipmapLevelClamp, texture.maxMipmapLevelClamp],
        border: texture.borderColor,
    };
    let view = match p_res_view_desc.is_null() {
        true => None,
        false => {
            let view = p_res_view_desc.get()?;
            Some(View {
                format: view.format.0,
                width: view.width as u64,
                height: view.height as u64,
                depth: view.depth as u64,
                first_level: view.firstMipmapLevel,
                last_level: view.lastMipmapLevel,
                first_layer: view.firstLayer,
                last_layer: view.lastLayer,
            })
        }
    };
    p_tex_object.set(texture::create(resource, sampling, view)?)
}

pub fn tex_object_destroy(_: &Arc<Context>, tex_object: CUtexObject) -> Answer {
    Ok(texture::destroy(tex_object, false)?)
}

/// A texture's making: resource, sampling, view.
fn made(handle: CUtexObject) -> Answer<(Resource, Sampling, Option<View>)> {
    match texture::object(handle)? {
        Object::Texture {
            resource,
            sampling,
            view,
            ..
        } => Ok((resource, sampling, view)),
        Object::Surface { .. } => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn tex_object_get_resource_desc(
    _: &Arc<Context>,
    p_res_desc: Out<CUDA_RESOURCE_DESC>,
    tex_object: CUtexObject,
) -> Answer {
    p_res_desc.set(description(&made(tex_object)?.0))
}

pub fn tex_object_get_texture_desc(
    _: &Arc<Context>,
    p_tex_desc: Out<CUDA_TEXTURE_DESC>,
    tex_object: CUtexObject,
) -> Answer {
    let (_, sampling, _) = made(tex_object)?;
    p_tex_desc.set(CUDA_TEXTURE_DESC {
        addressMode: sampling.address.map(CUaddress_mode_enum),
        filterMode: CUfilter_mode_enum(sampling.filter),
        flags: sampling.flags,
        maxAnisotropy: sampling.anisotropy,
        mipmapFilterMode: CUfilter_mode_enum(sampling.level_filter),
        mipmapLevelBias: sampling.level_bias,
        minMipmapLevelClamp: sampling.level_clamp[0],
        maxMipmapLevelClamp: sampling.level_clamp[1],
        borderColor: sampling.border,
        reserved: [0; 12],
    })
}

pub fn tex_object_get_resource_view_desc(
    _: &Arc<Context>,
    p_res_view_desc: Out<CUDA_RESOURCE_VIEW_DESC>,
    tex_object: CUtexObject,
) -> Answer {
    let view = made(tex_object)?.2.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    p_res_view_desc.set(CUDA_RESOURCE_VIEW_DESC {
        format: CUresourceViewFormat_enum(view.format),
        width: view.width as usize,
        height: view.height as usize,
        depth: view.depth as usize,
        firstMipmapLevel: view.first_level,
        lastMipmapLevel: view.last_level,
        firstLayer: view.first_layer,
        lastLayer: view.last_layer,
        reserved: [0; 16],
    })
}

pub fn surf_object_create(
    _: &Arc<Context>,
    p_surf_object: Out<CUsurfObject>,
    p_res_desc: In<CUDA_RESOURCE_DESC>,
) -> Answer {
    p_surf_object.required()?;
    p_surf_object.set(texture::create_surface(resource(&p_res_desc.get()?)?)?)
}

pub fn surf_object_destroy(_: &Arc<Context>, surf_object: CUsurfObject) -> Answer {
    Ok(texture::destroy(surf_object, true)?)
}

pub fn surf_object_get_resource_desc(
    _: &Arc<Context>,
    p_res_desc: Out<CUDA_RESOURCE_DESC>,
    surf_object: CUsurfObject,
) -> Answer {
    match texture::object(surf_object)? {
        Object::Surface { resource, .. } => p_res_desc.set(description(&resource)),
        Object::Texture { .. } => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}
