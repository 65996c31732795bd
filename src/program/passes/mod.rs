//! The passes over a function's representation, in the order in which [`run`] has them. Each keeps the rules that
//! [`Body::verify`] states; debug builds and tests ask it after every one.
//!
//! | pass | needs | leaves |
//! | --- | --- | --- |
//! | `flow` | blocks with ends | the order of layout; one latch a loop |
//! | `webs` | the order | values that die in their block under names of their own |
//! | `contract` | `webs` | `fma` where text and setting allow it |
//! | `copies`, `frames` | registers written once | fewer readers of copies; frame addresses as places |
//! | `forward` | places in the frame | what a block stores and loads again in registers; no stores that nobody reads |
//! | `provenance` | the same; where checked to the variable | a check before accesses by addresses of one object |
//! | `hoist` | the same | the prologue: what is the same for a whole launch |
//! | `dead` | | no operation without effect or reader |
//! | `conditions` | | comparisons next to the branch that asks for them |
//! | `coalesce` | liveness | copies between registers that can be one, gone |
//! | `arrange` | the order | blocks numbered by place; unreachable ones gone |
//! | `sums` | the same | sums instead of `or` where no bit is in both |
//! | `accumulators` | the order, the final registers | products of `wgmma` that may be late; waits name their sums |
//! | `shadows` | the final body | beside it what follows values that nobody has written, where that is asked for |
//! | `facts` | the final body | what is known of each value |
//! | `bounds` | the final body | loops that wait for nobody |

mod accumulators;
mod arrange;
mod bounds;
mod coalesce;
mod conditions;
mod contract;
mod copies;
mod dead;
mod definitions;
mod dominators;
mod facts;
mod flow;
mod forward;
mod frames;
mod hoist;
pub mod liveness;
pub mod provenance;
mod shadows;
mod sums;
mod webs;

use self::provenance::Objects;
use super::ir::{BlockId, Body};
pub use forward::Places;
pub use provenance::strip;
pub use shadows::Frame;

/// What passes are to do.
pub struct What<'a> {
    /// Registers keep values that are constant for a launch from its start.
    pub kernel: bool,
    /// An `or` of numbers without a common bit becomes a sum.
    pub sums: bool,
    /// Accesses are checked to the variable.
    pub objects: Option<&'a Objects>,
    /// What lies where in the frame, if values need not go by way of it.
    pub frame: Option<&'a Places>,
}

/// The order of layout; unreachable blocks have no place in it.
pub fn order(body: &mut Body) -> Vec<BlockId> {
    let order = flow::layout(body);
    after("flow", body);
    order
}

/// What looks at the text of one function alone, before others come into it. Gives the order of layout.
pub fn begin(body: &mut Body, contract: bool) -> Vec<BlockId> {
    let order = order(body);
    webs::run(body, &order);
    after("webs", body);
    if contract {
        contract::run(body, &order);
        after("contract", body);
    }
    order
}

/// Makes of a body what tiers compile.
pub fn run(body: &mut Body, order: Vec<BlockId>, what: &What<'_>) {
    let mut definitions = definitions::definitions(body, &order);
    copies::run(body, &order, &definitions);
    after("copies", body);
    if let Some(objects) = what.objects {
        provenance::run(body, &order, &definitions, objects);
        after("provenance", body);
        definitions = definitions::definitions(body, &order);
    }
    if frames::run(body, &order, &definitions) {
        copies::run(body, &order, &definitions);
    }
    after("frames", body);
    if let Some(places) = what.frame
        && forward::run(body, &order, places)
    {
        definitions = definitions::definitions(body, &order);
        copies::run(body, &order, &definitions);
        after("forward", body);
    }
    if what.kernel {
        hoist::run(body, &order, &definitions);
        after("hoist", body);
    }
    dead::run(body, &order);
    after("dead", body);
    conditions::run(body, &order);
    after("conditions", body);
    coalesce::run(body, &order);
    after("coalesce", body);
    arrange::run(body, &order);
    after("arrange", body);
    let order: Vec<_> = (0..body.blocks.len() as u32).collect();
    if what.sums {
        sums::run(body, &order);
        after("sums", body);
    }
    accumulators::run(body, &order);
    after("accumulators", body);
    facts::run(body);
    bounds::run(body);
}

/// Makes of a body what tiers compile where values that nobody has written are looked for.
pub fn add_shadows(body: &mut Body, frame: &Frame) {
    shadows::run(body, frame);
    after("shadows", body);
    // Shadows that nobody asks for go.
    let order: Vec<_> = (0..body.blocks.len() as u32).collect();
    dead::run(body, &order);
    after("dead", body);
    facts::run(body);
}

/// The rules still hold.
fn after(pass: &str, body: &Body) {
    if cfg!(debug_assertions)
        && let Err(broken) = body.verify()
    {
        panic!("after `{pass}`: {broken}\n{body}");
    }
}
