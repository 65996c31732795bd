//! Texture and surface reference management (deprecated).
//!
//! What is set here is looked up when a kernel is launched (`driver/textures/reference.rs`).

use super::call::{Answer, In, Out, require};
use super::types::*;
use crate::driver::array::{Array, Mipmapped};
use crate::driver::reference::{SurfaceReference, TextureReference};
use crate::driver::texture::Resource;
use crate::driver::{Context, Module, format_bytes};
use std::sync::Arc;

fn find(reference: CUtexref) -> Answer<Arc<TextureReference>> {
    Ok(TextureReference::from_handle(reference as usize)?)
}

pub fn module_get_tex_ref(_: &Arc<Context>, p_tex_ref: Out<CUtexref>, hmod: CUmodule, name: In<c_char>) -> Answer {
    p_tex_ref.required()?;
    let module = Module::from_handle(hmod as usize)?;
    p_tex_ref.set(module.texture_reference(name.symbol()?)?.handle() as CUtexref)
}

pub fn module_get_surf_ref(_: &Arc<Context>, p_surf_ref: Out<CUsurfref>, hmod: CUmodule, name: In<c_char>) -> Answer {
    p_surf_ref.required()?;
    let module = Module::from_handle(hmod as usize)?;
    p_surf_ref.set(module.surface_reference(name.symbol()?)?.handle() as CUsurfref)
}

pub fn tex_ref_create(context: &Arc<Context>, p_tex_ref: Out<CUtexref>) -> Answer {
    p_tex_ref.required()?;
    p_tex_ref.set(TextureReference::create(context.device().ordinal() as u32).handle() as CUtexref)
}

pub fn tex_ref_destroy(_: &Arc<Context>, h_tex_ref: CUtexref) -> Answer {
    Ok(find(h_tex_ref)?.destroy()?)
}

/// `cuParamSetTexRef`: a module's references are its kernels' anyway; the unit must be `CU_PARAM_TR_DEFAULT`.
pub fn param_set_tex_ref(_: &Arc<Context>, hfunc: CUfunction, texunit: c_int, h_tex_ref: CUtexref) -> Answer {
    super::execution::find(hfunc)?;
    require(texunit == CU_PARAM_TR_DEFAULT)?;
    find(h_tex_ref).map(drop)
}

// ---- what is bound --------------------------------------------------------------------------------------------------

pub fn tex_ref_set_array(_: &Arc<Context>, h_tex_ref: CUtexref, h_array: CUarray, flags: c_uint) -> Answer {
    require(flags == CU_TRSA_OVERRIDE_FORMAT)?;
    let descriptor = Array::from_handle(h_array as usize)?.descriptor();
    find(h_tex_ref)?.change(|settings| {
        settings.resource = Some(Resource::Array(h_array as usize));
        settings.format = (descriptor.format, descriptor.channels);
    });
    Ok(())
}

pub fn tex_ref_set_mipmapped_array(
    _: &Arc<Context>,
    h_tex_ref: CUtexref,
    h_mipmapped_array: CUmipmappedArray,
    flags: c_uint,
) -> Answer {
    require(flags == CU_TRSA_OVERRIDE_FORMAT)?;
    let descriptor = Mipmapped::from_handle(h_mipmapped_array as usize)?.descriptor();
    find(h_tex_ref)?.change(|settings| {
        settings.resource = Some(Resource::Mipmapped(h_mipmapped_array as usize));
        settings.format = (descriptor.format, descriptor.channels);
    });
    Ok(())
}

/// The texture begins at an aligned address; what is asked for begins the offset behind it.
pub fn tex_ref_set_address(
    _: &Arc<Context>,
    byte_offset: Out<usize>,
    h_tex_ref: CUtexref,
    dptr: CUdeviceptr,
    bytes: usize,
) -> Answer {
    let reference = find(h_tex_ref)?;
    let limit = |attribute: CUdevice_attribute| reference.device().attribute(attribute.0 as i32).max(1) as u64;
    let offset = dptr % limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    require(offset == 0 || !byte_offset.is_null())?;
    let settings = reference.settings();
    let texel = format_bytes(settings.format.0, settings.format.1)?;
    let total = (bytes as u64)
        .checked_add(offset)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    let most = limit(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    require(bytes > 0 && total / texel <= most)?;
    let known = crate::driver::pointer::range(dptr).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    require(dptr - known.0 + bytes as u64 <= known.1)?;
    reference.change(|settings| {
        settings.resource = Some(Resource::Linear {
            address: dptr - offset,
            format: settings.format.0,
            channels: settings.format.1,
            bytes: total,
        });
    });
    byte_offset.set_if_any(offset as usize);
    Ok(())
}

pub fn tex_ref_set_address_2d(
    _: &Arc<Context>,
    h_tex_ref: CUtexref,
    desc: In<CUDA_ARRAY_DESCRIPTOR>,
    dptr: CUdeviceptr,
    pitch: usize,
) -> Answer {
    let desc = desc.get()?;
    let reference = find(h_tex_ref)?;
    let resource = Resource::Pitched {
        address: dptr,
        format: desc.Format.0,
        channels: desc.NumChannels,
        width: desc.Width as u64,
        height: desc.Height as u64,
        pitch: pitch as u64,
    };
    crate::driver::texture::check_plain(reference.device(), &resource)?;
    reference.change(|settings| {
        settings.resource = Some(resource);
        settings.format = (desc.Format.0, desc.NumChannels);
    });
    Ok(())
}

pub fn tex_ref_get_address(_: &Arc<Context>, pdptr: Out<CUdeviceptr>, h_tex_ref: CUtexref) -> Answer {
    match find(h_tex_ref)?.settings().resource {
        Some(Resource::Linear { address, .. } | Resource::Pitched { address, .. }) => pdptr.set(address),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn tex_ref_get_array(_: &Arc<Context>, ph_array: Out<CUarray>, h_tex_ref: CUtexref) -> Answer {
    match find(h_tex_ref)?.settings().resource {
        Some(Resource::Array(array)) => ph_array.set(array as CUarray),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn tex_ref_get_mipmapped_array(
    _: &Arc<Context>,
    ph_mipmapped_array: Out<CUmipmappedArray>,
    h_tex_ref: CUtexref,
) -> Answer {
    match find(h_tex_ref)?.settings().resource {
        Some(Resource::Mipmapped(array)) => ph_mipmapped_array.set(array as CUmipmappedArray),
        _ => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
    }
}

// ---- how it is read -------------------------------------------------------------------------------------------------

pub fn tex_ref_set_format(
    _: &Arc<Context>,
    h_tex_ref: CUtexref,
    fmt: CUarray_format,
    num_packed_components: c_int,
) -> Answer {
    let channels = u32::try_from(num_packed_components).map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
    format_bytes(fmt.0, channels)?;
    find(h_tex_ref)?.change(|settings| settings.format = (fmt.0, channels));
    Ok(())
}

pub fn tex_ref_get_format(
    _: &Arc<Context>,
    p_format: Out<CUarray_format>,
    p_num_channels: Out<c_int>,
    h_tex_ref: CUtexref,
) -> Answer {
    let (format, channels) = find(h_tex_ref)?.settings().format;
    require(!p_format.is_null() || !p_num_channels.is_null())?;
    p_format.set_if_any(CUarray_format_enum(format));
    p_num_channels.set_if_any(channels as c_int);
    Ok(())
}

fn dimension(dim: c_int) -> Answer<usize> {
    usize::try_from(dim)
        .ok()
        .filter(|dim| *dim < 3)
        .ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)
}

pub fn tex_ref_set_address_mode(_: &Arc<Context>, h_tex_ref: CUtexref, dim: c_int, am: CUaddress_mode) -> Answer {
    let dim = dimension(dim)?;
    require(am.0 <= CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER.0)?;
    find(h_tex_ref)?.change(|settings| settings.sampling.address[dim] = am.0);
    Ok(())
}

pub fn tex_ref_get_address_mode(_: &Arc<Context>, pam: Out<CUaddress_mode>, h_tex_ref: CUtexref, dim: c_int) -> Answer {
    let mode = find(h_tex_ref)?.settings().sampling.address[dimension(dim)?];
    pam.set(CUaddress_mode_enum(mode))
}

pub fn tex_ref_set_filter_mode(_: &Arc<Context>, h_tex_ref: CUtexref, fm: CUfilter_mode) -> Answer {
    require(fm.0 <= CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0)?;
    find(h_tex_ref)?.change(|settings| settings.sampling.filter = fm.0);
    Ok(())
}

pub fn tex_ref_get_filter_mode(_: &Arc<Context>, pfm: Out<CUfilter_mode>, h_tex_ref: CUtexref) -> Answer {
    pfm.set(CUfilter_mode_enum(find(h_tex_ref)?.settings().sampling.filter))
}

pub fn tex_ref_set_mipmap_filter_mode(_: &Arc<Context>, h_tex_ref: CUtexref, fm: CUfilter_mode) -> Answer {
    require(fm.0 <= CUfilter_mode::CU_TR_FILTER_MODE_LINEAR.0)?;
    find(h_tex_ref)?.change(|settings| settings.sampling.level_filter = fm.0);
    Ok(())
}

pub fn tex_ref_get_mipmap_filter_mode(_: &Arc<Context>, pfm: Out<CUfilter_mode>, h_tex_ref: CUtexref) -> Answer {
    pfm.set(CUfilter_mode_enum(find(h_tex_ref)?.settings().sampling.level_filter))
}

pub fn tex_ref_set_mipmap_level_bias(_: &Arc<Context>, h_tex_ref: CUtexref, bias: f32) -> Answer {
    find(h_tex_ref)?.change(|settings| settings.sampling.level_bias = bias);
    Ok(())
}

pub fn tex_ref_get_mipmap_level_bias(_: &Arc<Context>, pbias: Out<f32>, h_tex_ref: CUtexref) -> Answer {
    pbias.set(find(h_tex_ref)?.settings().sampling.level_bias)
}

pub fn tex_ref_set_mipmap_level_clamp(_: &Arc<Context>, h_tex_ref: CUtexref, least: f32, most: f32) -> Answer {
    find(h_tex_ref)?.change(|settings| settings.sampling.level_clamp = [least, most]);
    Ok(())
}

pub fn tex_ref_get_mipmap_level_clamp(_: &Arc<Context>, pmin: Out<f32>, pmax: Out<f32>, h_tex_ref: CUtexref) -> Answer {
    let [least, most] = find(h_tex_ref)?.settings().sampling.level_clamp;
    require(!pmin.is_null() || !pmax.is_null())?;
    pmin.set_if_any(least);
    pmax.set_if_any(most);
    Ok(())
}

pub fn tex_ref_set_max_anisotropy(_: &Arc<Context>, h_tex_ref: CUtexref, max_aniso: c_uint) -> Answer {
    find(h_tex_ref)?.change(|settings| settings.sampling.anisotropy = max_aniso);
    Ok(())
}

pub fn tex_ref_get_max_anisotropy(_: &Arc<Context>, pmax_aniso: Out<c_int>, h_tex_ref: CUtexref) -> Answer {
    pmax_aniso.set(find(h_tex_ref)?.settings().sampling.anisotropy as c_int)
}

pub fn tex_ref_set_border_color(_: &Arc<Context>, h_tex_ref: CUtexref, p_border_color: Out<f32>) -> Answer {
    let mut border = [0.0; 4];
    for (index, component) in border.iter_mut().enumerate() {
        *component = p_border_color.get_at(index)?;
    }
    find(h_tex_ref)?.change(|settings| settings.sampling.border = border);
    Ok(())
}

pub fn tex_ref_get_border_color(_: &Arc<Context>, p_border_color: Out<f32>, h_tex_ref: CUtexref) -> Answer {
    p_border_color.required()?;
    for (index, component) in find(h_tex_ref)?.settings().sampling.border.into_iter().enumerate() {
        p_border_color.set_at(index, component);
    }
    Ok(())
}

pub fn tex_ref_set_flags(_: &Arc<Context>, h_tex_ref: CUtexref, flags: c_uint) -> Answer {
    let known = CU_TRSF_READ_AS_INTEGER
        | CU_TRSF_NORMALIZED_COORDINATES
        | CU_TRSF_SRGB
        | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    require(flags & !known == 0)?;
    find(h_tex_ref)?.change(|settings| settings.sampling.flags = flags);
    Ok(())
}

pub fn tex_ref_get_flags(_: &Arc<Context>, p_flags: Out<c_uint>, h_tex_ref: CUtexref) -> Answer {
    p_flags.set(find(h_tex_ref)?.settings().sampling.flags)
}

// ---- surfaces -------------------------------------------------------------------------------------------------------

pub fn surf_ref_set_array(_: &Arc<Context>, h_surf_ref: CUsurfref, h_array: CUarray, flags: c_uint) -> Answer {
    require(flags == 0)?;
    let array = Array::from_handle(h_array as usize)?;
    Ok(SurfaceReference::from_handle(h_surf_ref as usize)?.bind(&array)?)
}

pub fn surf_ref_get_array(_: &Arc<Context>, ph_array: Out<CUarray>, h_surf_ref: CUsurfref) -> Answer {
    ph_array.required()?;
    ph_array.set(SurfaceReference::from_handle(h_surf_ref as usize)?.array()? as CUarray)
}
