//! Green contexts: resources of devices, how they are split, contexts made of parts.
//!
//! Green contexts themselves are `driver/context/green.rs`; the arithmetic of splitting is here.
//!
//! A resource record is the program's to copy; where it came from is written into the bytes that the header reserves for
//! the driver, and what does not bear that mark is not a resource.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::green::Description;
use crate::driver::{Context, Device, Event, Green};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Params = CU_DEV_SM_RESOURCE_GROUP_PARAMS;

/// What stands in the driver's bytes of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    device: c_int,
    /// The split that it came out of; 0 if it was asked for.
    split: u64,
    kind: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole = 0,
    Group = 1,
    Remainder = 2,
}

const MAGIC: [u8; 8] = *b"margaySM";
const TYPE: CUresult = CUresult::CUDA_ERROR_INVALID_RESOURCE_TYPE;
const CONFIGURATION: CUresult = CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;

fn new_split() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Mark {
    fn bytes(self) -> [u8; 92] {
        let mut bytes = [0; 92];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.device.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.split.to_le_bytes());
        bytes[20] = self.kind as u8;
        bytes
    }

    fn read(bytes: &[u8; 92]) -> Option<Mark> {
        let kind = match bytes[20] {
            0 => Part::Whole,
            1 => Part::Group,
            2 => Part::Remainder,
            _ => return None,
        };
        let mark = Mark {
            device: c_int::from_le_bytes(bytes[8..12].try_into().ok()?),
            split: u64::from_le_bytes(bytes[12..20].try_into().ok()?),
            kind,
        };
        (bytes[..8] == MAGIC).then_some(mark)
    }
}

/// A resource of multiprocessors as far as it is looked at here.
#[derive(Clone, Copy)]
struct Multiprocessors {
    mark: Mark,
    sm: CUdevSmResource,
}

impl Multiprocessors {
    fn read(record: &CUdevResource) -> Answer<Multiprocessors> {
        if record.r#type != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
            return Err(TYPE);
        }
        let mark = Mark::read(&record._internal_padding).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the member that goes with the type; numbers.
        let sm = unsafe { record.anonymous.sm };
        let (total, ..) = Device::get(mark.device)?.partition();
        require((1..=total).contains(&sm.smCount))?;
        Ok(Multiprocessors { mark, sm })
    }

    fn record(self) -> CUdevResource {
        let mut record = nothing();
        record.r#type = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
        record._internal_padding = self.mark.bytes();
        record.anonymous.sm = self.sm;
        record
    }

    /// Some of them, as an outcome of a split; none is a record of no type.
    fn part(self, count: u32, split: u64, kind: Part) -> CUdevResource {
        if count == 0 {
            return nothing();
        }
        let mark = Mark {
            split,
            kind,
            ..self.mark
        };
        let sm = CUdevSmResource {
            smCount: count,
            ..self.sm
        };
        Multiprocessors { mark, sm }.record()
    }
}

fn nothing() -> CUdevResource {
    CUdevResource {
        r#type: CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID,
        _internal_padding: [0; 92],
        anonymous: CUdevResource_st_anonymous { _oversize: [0; 40] },
        nextResource: std::ptr::null_mut(),
    }
}

/// The whole of a device, or what a green context was made of.
fn resource(device: &Device, part: Option<Description>, kind: CUdevResourceType) -> Answer<CUdevResource> {
    let (total, least, alignment) = device.partition();
    match kind {
        CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => {
            let sm = CUdevSmResource {
                smCount: part.map_or(total, |part| part.multiprocessors),
                minSmPartitionSize: part.map_or(least, |part| part.least),
                smCoscheduledAlignment: part.map_or(alignment, |part| part.alignment),
                flags: part.map_or(0, |part| part.flags),
                localityDomainId: 0,
            };
            let mark = Mark {
                device: device.ordinal(),
                split: 0,
                kind: Part::Whole,
            };
            Ok(Multiprocessors { mark, sm }.record())
        }
        CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG if part.is_none() => {
            let mut record = nothing();
            record.r#type = kind;
            record.anonymous.wqConfig = CUdevWorkqueueConfigResource {
                device: device.ordinal(),
                wqConcurrencyLimit: CONNECTIONS,
                sharingScope: CUdevWorkqueueConfigScope::CU_WORKQUEUE_SCOPE_DEVICE_CTX,
            };
            Ok(record)
        }
        _ => Err(TYPE),
    }
}

/// What `CUDA_DEVICE_MAX_CONNECTIONS` is by default (CUDA programming guide, "CUDA Environment Variables").
const CONNECTIONS: u32 = 8;

pub fn device_get_dev_resource(device: CUdevice, out: Out<CUdevResource>, kind: CUdevResourceType) -> Answer {
    out.required()?;
    out.set(resource(Device::get(device)?, None, kind)?)
}

pub fn ctx_get_dev_resource(ctx: CUcontext, out: Out<CUdevResource>, kind: CUdevResourceType) -> Answer {
    out.required()?;
    let context = Context::from_handle(ctx as usize)?;
    let part = context.green().map(|green| green.description());
    out.set(resource(context.device(), part, kind)?)
}

pub fn green_ctx_get_dev_resource(ctx: CUgreenCtx, out: Out<CUdevResource>, kind: CUdevResourceType) -> Answer {
    out.required()?;
    let green = Green::from_handle(ctx as usize)?;
    let part = green.description();
    out.set(resource(Device::get(part.device)?, Some(part), kind)?)
}

/// Only multiprocessors belong to a stream.
pub fn stream_get_dev_resource(
    current: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    out: Out<CUdevResource>,
    kind: CUdevResourceType,
) -> Answer {
    out.required()?;
    let found = default.resolve(stream)?;
    if kind != CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM {
        return Err(TYPE);
    }
    let green = match found.is_default() {
        true => current.green(),
        false => found.green(),
    };
    let part = green.map(|green| green.description());
    out.set(resource(found.context()?.device(), part, kind)?)
}

/// Groups of the same size, at least `min_count` each, and what is left. Without `result`, only how many there could be.
pub fn dev_sm_resource_split_by_count(
    result: Out<CUdevResource>,
    groups: Out<c_uint>,
    input: In<CUdevResource>,
    remainder: Out<CUdevResource>,
    flags: c_uint,
    min_count: c_uint,
) -> Answer {
    use CUdevSmResourceSplitByCount_flags as Flag;
    let alone = Flag::CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0;
    let known = alone | Flag::CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0;
    require(flags & !known == 0)?;
    let wanted = groups.get_at(0)?;
    let mut whole = Multiprocessors::read(&input.get()?)?;
    // A group cannot be split again before it is a green context's (manual).
    if whole.mark.kind != Part::Whole {
        return Err(CONFIGURATION);
    }
    require(min_count <= whole.sm.smCount)?;
    if flags & alone != 0 {
        (whole.sm.minSmPartitionSize, whole.sm.smCoscheduledAlignment) = (2, 2);
    }
    let step = whole.sm.smCoscheduledAlignment.max(1);
    let size = min_count.max(whole.sm.minSmPartitionSize).next_multiple_of(step);
    let possible = whole.sm.smCount / size;
    if result.is_null() {
        return groups.set(possible);
    }
    let made = wanted.min(possible);
    if made == 0 {
        return Err(CONFIGURATION);
    }
    let split = new_split();
    for index in 0..made {
        result.set_at(index as usize, whole.part(size, split, Part::Group));
    }
    let left = whole.sm.smCount - made * size;
    remainder.set_if_any(whole.part(left, split, Part::Remainder));
    groups.set(made)
}

/// How many multiprocessors a group gets of those that are left, and what it is asked for in full.
fn group(params: &Params, whole: &Multiprocessors, left: u32) -> Answer<(u32, u32)> {
    use CUdevSmResourceGroup_flags as Flag;
    let known = Flag::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0;
    let domains = Flag::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID.0
        | Flag::CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS.0;
    require(params.reserved == [0; 11] && params.flags & !(known | domains) == 0)?;
    // A device here is of one piece.
    if params.flags & domains != 0 {
        return Err(CONFIGURATION);
    }
    let new = Device::get(whole.mark.device)?.capability().0 >= 9;
    let (usual, most) = if new { (8, 32) } else { (2, 2) };
    let together = match params.coscheduledSmCount {
        0 => usual,
        count => count,
    };
    require(together % 2 == 0 && together <= most)?;
    let fills = params.flags & known != 0;
    let count = match params.smCount {
        0 if fills => left / 2 * 2,
        0 => left / together * together,
        count => {
            require((2..=whole.sm.smCount).contains(&count) && count.is_multiple_of(2))?;
            require(fills || count.is_multiple_of(together))?;
            count
        }
    };
    Ok((count, together))
}

/// Groups one after the other, as asked for; a count of 0 asks how many there are. All of them, or an error.
pub fn dev_sm_resource_split(
    result: Out<CUdevResource>,
    groups: c_uint,
    input: In<CUdevResource>,
    remainder: Out<CUdevResource>,
    flags: c_uint,
    group_params: Out<Params>,
) -> Answer {
    require(flags == 0 && groups > 0 && !group_params.is_null())?;
    let whole = Multiprocessors::read(&input.get()?)?;
    if whole.mark.kind == Part::Group {
        return Err(CONFIGURATION);
    }
    let mut left = whole.sm.smCount;
    let mut counts = Vec::new();
    for index in 0..groups as usize {
        let params = group_params.get_at(index)?;
        let (count, together) = group(&params, &whole, left)?;
        if count > left || !result.is_null() && (count == 0 || count < together) {
            return Err(CONFIGURATION);
        }
        left -= count;
        counts.push((params, count, together));
    }
    let split = new_split();
    for (index, (mut params, count, together)) in counts.into_iter().enumerate() {
        if !result.is_null() {
            let mut of_group = whole;
            of_group.sm.smCoscheduledAlignment = together;
            result.set_at(index, of_group.part(count, split, Part::Group));
        }
        params.smCount = count;
        group_params.set_at(index, params);
    }
    remainder.set_if_any(whole.part(left, split, Part::Remainder));
    Ok(())
}

/// Multiprocessors of one device and one split; configurations of work queues go along.
pub fn dev_resource_generate_desc(
    desc: Out<CUdevResourceDesc>,
    resources: Out<CUdevResource>,
    count: c_uint,
) -> Answer {
    require(!desc.is_null() && !resources.is_null() && count > 0)?;
    let mut all: Option<Multiprocessors> = None;
    for index in 0..count as usize {
        let record = resources.get_at(index)?;
        match record.r#type {
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => {
                let next = Multiprocessors::read(&record)?;
                all = Some(match all {
                    None => next,
                    Some(mut sum) => {
                        let alike = next.mark.split == sum.mark.split
                            && next.mark.split != 0
                            && next.mark.device == sum.mark.device
                            && next.sm.smCoscheduledAlignment == sum.sm.smCoscheduledAlignment;
                        if !alike {
                            return Err(CONFIGURATION);
                        }
                        sum.sm.smCount += next.sm.smCount;
                        sum
                    }
                });
            }
            CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG => {}
            _ => return Err(TYPE),
        }
    }
    let all = all.ok_or(CONFIGURATION)?;
    let (total, ..) = Device::get(all.mark.device)?.partition();
    if all.sm.smCount > total {
        return Err(CONFIGURATION);
    }
    let description = Description {
        device: all.mark.device,
        multiprocessors: all.sm.smCount,
        alignment: all.sm.smCoscheduledAlignment,
        least: all.sm.minSmPartitionSize,
        flags: all.sm.flags,
    };
    desc.set(description.keep() as CUdevResourceDesc)
}

/// Both flags are the same here: the default stream is the primary context's.
pub fn green_ctx_create(ctx: Out<CUgreenCtx>, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint) -> Answer {
    ctx.required()?;
    require(flags <= CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0)?;
    let device = Device::get(dev)?;
    let description = Description::from_handle(desc as usize)?;
    ctx.set(Green::create(description, device)?.handle() as CUgreenCtx)
}

pub fn green_ctx_destroy(ctx: CUgreenCtx) -> Answer {
    Ok(Green::from_handle(ctx as usize)?.destroy()?)
}

pub fn ctx_from_green_ctx(context: Out<CUcontext>, ctx: CUgreenCtx) -> Answer {
    context.required()?;
    context.set(Green::from_handle(ctx as usize)?.context()?.handle() as CUcontext)
}

pub fn green_ctx_get_id(ctx: CUgreenCtx, id: Out<c_ulonglong>) -> Answer {
    id.required()?;
    id.set(Green::from_handle(ctx as usize)?.id())
}

/// The stream must be a non-blocking one.
pub fn green_ctx_stream_create(stream: Out<CUstream>, ctx: CUgreenCtx, flags: c_uint, priority: c_int) -> Answer {
    require(!stream.is_null() && flags == CUstream_flags::CU_STREAM_NON_BLOCKING.0)?;
    let green = Green::from_handle(ctx as usize)?;
    stream.set(green.create_stream(priority)?.handle() as CUstream)
}

pub fn green_ctx_record_event(ctx: CUgreenCtx, event: CUevent) -> Answer {
    let green = Green::from_handle(ctx as usize)?;
    Ok(green.record(&Event::from_handle(event as usize)?)?)
}

pub fn green_ctx_wait_event(ctx: CUgreenCtx, event: CUevent) -> Answer {
    let green = Green::from_handle(ctx as usize)?;
    Ok(green.wait(&Event::from_handle(event as usize)?)?)
}

/// NULL for a stream that belongs to no green context.
pub fn stream_get_green_ctx(current: &Arc<Context>, stream: CUstream, green_out: Out<CUgreenCtx>) -> Answer {
    green_out.required()?;
    let found = DefaultStream::Legacy.resolve(stream)?;
    let green = match found.is_default() {
        true => current.green(),
        false => found.green(),
    };
    green_out.set(green.map_or(0, |green| green.handle()) as CUgreenCtx)
}
