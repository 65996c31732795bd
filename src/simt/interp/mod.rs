//! The interpreter: runs the fragments of one bundle, an operation over all their lanes at a time.
//!
//! **Fragments.** A bundle is a set of fragments (pc, mask, call stack). The runnable fragment with the deepest call
//! stack and, among those, the lowest pc runs until it meets another one, waits, or has had its share; fragments of one
//! frame that stand at the same pc are one. As programs are laid out in reverse post-order, that reconverges at the
//! immediate post-dominator. A fragment that spins loses its turn for a while, so that the lane it waits for comes
//! forward: the progress that independent thread scheduling promises (PTX ISA, since sm_70). Under a seed it is drawn which
//! fragment runs, and for how long.
//!
//! ```text
//! compile/    the representation → code with slots        code.rs       that code, bound to the machine's operations
//! bundle.rs   fragments: who goes next, who meets         run.rs        the loop over a fragment's instructions
//! rare.rs     what leaves the loop's quick path           collective.rs what a warp does together
//! calls.rs    calls, returns, the stack                   frame.rs      register windows, activations of functions
//! affine.rs   values that follow the lane's number     native.rs     fragments in compiled code
//! inspect.rs  operations on floats that somebody looks at
//! march.rs    whole warps in compiled code, from barrier to barrier    tell.rs   what observers hear of it
//! gather.rs   who meets at `.sync` operations             join.rs       that functions entered apart have
//! change.rs   from interpreted to compiled code, in the middle     contest.rs  which of the two is quicker
//! ```

pub mod affine;
mod bundle;
mod calls;
mod change;
pub mod code;
mod collective;
pub mod compile;
mod contest;
mod frame;
mod gather;
mod handed;
mod inspect;
mod join;
mod march;
mod native;
mod rare;
mod run;
mod stands;
mod tell;

pub use affine::Runs;
pub use bundle::{Bundle, Conditions, Did, Fragment, Located, PATIENCE, SLICE, Waits, located};
pub use change::Living;
pub use march::{Apart, Halt};
pub use native::Stand;
pub use run::Pause;
