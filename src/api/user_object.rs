//! User objects: what ends with the last graph that needs it.
//!
//! References are counted in `driver/graph/user_object.rs`.

use super::call::{Answer, Out, require};
use super::execution::host_fn;
use super::graph;
use super::types::*;
use crate::driver::graph::UserObject;
use std::sync::Arc;

fn find(object: CUuserObject) -> Answer<Arc<UserObject>> {
    Ok(UserObject::from_handle(object as usize)?)
}

fn check_count(count: c_uint) -> Answer {
    require((1..=c_int::MAX as c_uint).contains(&count))
}

/// The one flag must be given: nothing waits for destructors.
pub fn user_object_create(
    object_out: Out<CUuserObject>,
    ptr: *mut c_void,
    destroy: CUhostFn,
    initial_refcount: c_uint,
    flags: c_uint,
) -> Answer {
    require(!object_out.is_null() && flags == CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0)?;
    check_count(initial_refcount)?;
    let object = UserObject::create(host_fn(destroy)?, ptr as usize, initial_refcount)?;
    object_out.set(object.handle() as CUuserObject)
}

pub fn user_object_retain(object: CUuserObject, count: c_uint) -> Answer {
    check_count(count)?;
    Ok(find(object)?.retain_by_program(count)?)
}

pub fn user_object_release(object: CUuserObject, count: c_uint) -> Answer {
    check_count(count)?;
    Ok(find(object)?.release_by_program(count)?)
}

pub fn graph_retain_user_object(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) -> Answer {
    check_count(count)?;
    let moves = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
    require(flags & !moves == 0)?;
    Ok(graph::find(graph)?.retain_user_object(&find(object)?, count, flags == moves)?)
}

pub fn graph_release_user_object(graph: CUgraph, object: CUuserObject, count: c_uint) -> Answer {
    check_count(count)?;
    Ok(graph::find(graph)?.release_user_object(&find(object)?, count)?)
}
