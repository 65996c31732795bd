//! Boxes of tensors that lie in the memory of endpoints: the instruction names the offset at which the tensor starts, in
//! place of the tensor map's address.

use crate::isa::joint::fabric::Target;
use crate::isa::joint::tensor::Tensor;
use crate::memory::endpoint::{self, Endpoint};
use crate::memory::tensor_map::{Row, TensorBox};
use crate::program::AtomicOp;
use crate::simt::cause::Cause;
use crate::simt::machine::access;
use crate::simt::machine::asynchronous::Work;
use crate::simt::machine::context::{Cx, Env};
use crate::simt::machine::mbarrier::Report;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::state::State;
use crate::simt::machine::tensor::{self, Place};

use super::super::tensor::{BOX, place};
use super::{Begun, COUNTER, Issue, Outcome, UNIT, work};

/// A box that goes to all members of an endpoint, and is counted there.
struct Stores {
    stores: Vec<tensor::Store>,
    counters: Vec<u64>,
    /// Bytes that each member gets.
    bytes: u64,
}

impl Work for Stores {
    fn read(&mut self, env: &Env<'_>) -> Result<bool, Cause> {
        for store in &mut self.stores {
            store.read(env)?;
        }
        Ok(true)
    }

    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        for store in &mut self.stores {
            store.finish(env)?;
        }
        work::count(env, &self.counters, self.bytes)?;
        Ok(Report::default())
    }
}

impl Issue<'_> {
    /// The box that the instruction names, of the memory of each member.
    unsafe fn boxes<const WATCHED: bool>(
        &self,
        tensor: Tensor,
        endpoint: &Endpoint,
        direction: Direction,
        cx: &mut Cx<'_>,
    ) -> Outcome<Vec<TensorBox>> {
        let map = &self.warp.operands.addresses[2];
        let Some(offset) = tensor.places(false).address else {
            return self.misuse("the offset of the tensor is missing");
        };
        // SAFETY: the operands are slots, here and below.
        let offset = unsafe { self.source(offset, cx) };
        if offset >= endpoint.bytes {
            return self.misuse(&format!(
                "a tensor at offset {offset:#x} of logical endpoint {}, which has {} bytes",
                endpoint.id, endpoint.bytes
            ));
        }
        let writes = direction != Direction::Read;
        // SAFETY: the operands are slots.
        let first = unsafe {
            self.warp
                .tensor_box::<WATCHED>((tensor, false), map, (writes, endpoint.members[0].start), self.i, cx)?
        };
        let mut boxes = Vec::new();
        for member in &endpoint.members {
            let boxed = first.moved(member.start + offset);
            self.check_rows(&place(boxed, cx.block.shared, cx), endpoint, *member, direction, cx)?;
            boxes.push(boxed);
        }
        Ok(boxes)
    }

    /// All rows lie in the endpoint, where memory is bound.
    fn check_rows(
        &self,
        place: &Place,
        endpoint: &Endpoint,
        member: endpoint::Member,
        direction: Direction,
        cx: &Cx<'_>,
    ) -> Outcome {
        place.tensor.rows(|row| {
            let span = place.span(&row);
            if span == 0 {
                return Ok(());
            }
            let offset = row.address.wrapping_sub(member.start);
            if offset.checked_add(span).is_none_or(|end| end > endpoint.bytes) {
                return self.misuse(&format!(
                    "a row of {span} bytes of the tensor at offset {offset:#x} of logical endpoint {}, which has {} bytes",
                    endpoint.id, endpoint.bytes
                ));
            }
            if !access::anybody(cx.block.view, row.address, span, direction.bits()) {
                return self.misuse(&format!(
                    "no memory of device {} is bound to the {span} bytes of a row at offset {offset:#x} of logical endpoint {}",
                    member.device, endpoint.id
                ));
            }
            Ok(())
        })
    }

    fn tell_rows<const WATCHED: bool>(&self, place: &Place, direction: Direction, cx: &Cx<'_>) {
        if !WATCHED {
            return;
        }
        let row = |row: Row| {
            self.tell_fabric::<WATCHED>(&[row.address], place.span(&row), direction, cx);
            Ok::<(), std::convert::Infallible>(())
        };
        let _ = place.tensor.rows(row);
    }

    /// `fabric.try_get.async.tensor`
    pub(super) unsafe fn get_tensor<const WATCHED: bool>(
        &self,
        tensor: Tensor,
        cx: &mut Cx<'_>,
        state: &mut State,
    ) -> Outcome {
        let next = tensor.places(false).coordinates.end;
        // SAFETY: the operands are slots, here and below.
        let id = unsafe { self.source(next, cx) } as u32;
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id, false, cx)?;
        // SAFETY: the operands are slots.
        let (boxed, to, barrier) = unsafe {
            let boxed = self.boxes::<WATCHED>(tensor, endpoint, Direction::Read, cx)?[0];
            let to = self.shared(0, (boxed.extent(), BOX), Direction::Write, cx)?;
            (boxed, to, self.barrier(1, cx, state)?)
        };
        let (from, told) = (place(boxed, to, cx), place(boxed, to, cx));
        let begun = Begun {
            work: Box::new(tensor::Load {
                place: from,
                report: None,
            }),
            barrier,
            count: boxed.transferred().into(),
            fetches: true,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            this.tell_rows::<WATCHED>(&told, Direction::Read, cx);
            this.warp.tell_shared::<WATCHED>(&told, Direction::Write, this.i, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }

    /// `fabric.try_put.async.tensor`, `fabric.try_red.async.tensor`
    pub(super) unsafe fn put_tensor<const WATCHED: bool>(
        &self,
        target: Target,
        (tensor, reduction): (Tensor, Option<AtomicOp>),
        cx: &mut Cx<'_>,
        state: &mut State,
    ) -> Outcome {
        let next = tensor.places(false).coordinates.end;
        // SAFETY: the operands are slots, here and below.
        let source = |index: usize| unsafe { self.source(index, cx) };
        let id = source(next) as u32;
        let (counter, next) = match target.counted {
            true => (Some(source(next + 1)), next + 2),
            false => (None, next + 1),
        };
        let size = self.size(source(next))?;
        let direction = match reduction {
            Some(_) => Direction::Atomic,
            None => Direction::Write,
        };
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id, target.team, cx)?;
        // SAFETY: the operands are slots.
        let (boxes, from, barrier) = unsafe {
            let boxes = self.boxes::<WATCHED>(tensor, endpoint, direction, cx)?;
            let from = self.shared(0, (boxes[0].extent(), BOX), Direction::Read, cx)?;
            (boxes, from, self.barrier(1, cx, state)?)
        };
        let whole = u64::from(boxes[0].transferred());
        if size != whole {
            return self.misuse(&format!("{size} bytes are named, and the box has {whole}"));
        }
        let counters = self.counters(endpoint, counter, (0, 0), cx)?;
        let element = boxes[0].map().element;
        let reduce = match reduction.map(|op| tensor::reduction(op, element)) {
            None => None,
            Some(Some(reduce)) => Some(reduce),
            Some(None) => {
                return self.misuse(&format!("there is no such reduction of elements of type {element:?}"));
            }
        };
        let stores = boxes
            .iter()
            .map(|boxed| tensor::Store::new(place(*boxed, from, cx), reduce));
        let first = place(boxes[0], from, cx);
        let begun = Begun {
            work: Box::new(Stores {
                stores: stores.collect(),
                counters: counters.clone(),
                bytes: first.written(),
            }),
            barrier,
            count: size / UNIT,
            fetches: false,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            this.warp.tell_shared::<WATCHED>(&first, Direction::Read, this.i, cx);
            for boxed in &boxes {
                this.tell_rows::<WATCHED>(&place(*boxed, from, cx), direction, cx);
            }
            this.tell_fabric::<WATCHED>(&counters, COUNTER.0, Direction::Atomic, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }
}
