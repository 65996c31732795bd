//! What a block keeps while it runs, beside its windows: barriers, and what goes on without its threads.

use super::asynchronous::Asynchronous;
use super::barrier::Barriers;
use super::cluster::ClusterBarrier;
use super::joint::warpgroup;
use super::tensor_memory;

#[derive(Default)]
pub struct State {
    pub barriers: Barriers,
    pub cluster: ClusterBarrier,
    /// Products of `wgmma`.
    pub products: warpgroup::Products,
    /// Tensor memory, which the blocks of a cluster have in common.
    pub tensor: tensor_memory::Memories,
    /// What is under way; `asynchronous/` has what can be done with it.
    pub asynchronous: Asynchronous,
    /// Something has happened for which lanes may wait ([`super::joint::Step::Wait`]): a phase of a barrier in memory is
    /// over. Whoever runs the block lets them try again, and takes this back.
    pub changed: bool,
    /// Since the block started, compiled code has asked for an operation that may have something under way here.
    pub touched: bool,
    /// Looks at barriers in memory (`mbarrier.test_wait`) since something changed that have found nothing.
    pub fruitless: u32,
    /// How often nobody got on, one time after the other, and nobody did anything that others than the block could see:
    /// those who wait came back with nothing, and wait again.
    pub stuck: u32,
}

impl State {
    /// As a block starts, with these lanes by warp.
    pub fn reset(&mut self, live: impl Iterator<Item = u32>) {
        self.barriers.reset(live);
        self.cluster.reset();
        (self.changed, self.touched, self.fruitless, self.stuck) = (false, false, 0, 0);
        // What a block begins completes when it ends, unless that was a fault.
        if !self.asynchronous.is_fresh() {
            self.asynchronous = Asynchronous::default();
        }
        self.tensor.reset();
        self.products.reset();
    }
}
