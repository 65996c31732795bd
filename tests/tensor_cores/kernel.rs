//! Kernels around one instruction of `tcgen05`: tensor memory is filled from a buffer, the instruction is executed, and all
//! of tensor memory is written back. Those of `.cta_group::2` are clusters of two blocks, of which one begins what both do.

use std::ops::Range;

use crate::numbers::Random;

pub const COLUMNS: usize = 512;
pub const LANES: usize = 128;
/// Words of a block's tensor memory.
pub const WORDS: usize = LANES * COLUMNS;
/// The offset of dynamic shared memory: behind the variables of the kernel, aligned.
pub const TILE: usize = 1024;

/// The blocks of a kernel, which are a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// `.cta_group`
    pub number: usize,
    pub blocks: usize,
    /// The rank of the block that begins what one thread begins.
    pub issuer: usize,
}

impl Group {
    pub const ONE: Group = Group {
        number: 1,
        blocks: 1,
        issuer: 0,
    };

    /// The blocks that a form is for.
    pub fn of(form: &str, random: &mut Random) -> Group {
        match form.contains("cta_group::2") {
            true => Group {
                number: 2,
                blocks: 2,
                issuer: random.below(2),
            },
            false => Group::ONE,
        }
    }

    pub fn is_pair(self) -> bool {
        self.number == 2
    }

    /// The blocks that take part in what one thread begins.
    pub fn taking_part(self) -> Range<usize> {
        match self.is_pair() {
            true => 0..2,
            false => self.issuer..self.issuer + 1,
        }
    }

    /// Tensor memory with random words, block by block.
    pub fn image(self, random: &mut Random) -> Vec<u32> {
        (0..self.blocks * WORDS).map(|_| random.next() as u32).collect()
    }
}

/// The statements that manage tensor memory.
#[derive(Clone)]
pub struct Statements {
    pub group: Group,
    /// Writes the address of 512 columns to `base`; `%rd25` is its generic address, `%rd26` that in shared memory.
    pub alloc: String,
    /// Gives back what begins at `%r4`.
    pub dealloc: String,
    pub relinquish: String,
    /// Arrives at `barrier`; `%rd27` is its generic address, `%rd28` that in shared memory, `%r14` and `%h1` name all blocks.
    pub commit: String,
}

impl Statements {
    pub fn of(group: Group) -> Statements {
        let number = group.number;
        let of = |what: &str| format!("tcgen05.{what}.cta_group::{number}");
        let arrive = "mbarrier::arrive::one.shared::cluster";
        Statements {
            group,
            alloc: format!("{}.sync.aligned.shared::cta.b32 [base], 512;", of("alloc")),
            dealloc: format!("{}.sync.aligned.b32 %r4, 512;", of("dealloc")),
            relinquish: format!("{}.sync.aligned;", of("relinquish_alloc_permit")),
            commit: match group.blocks {
                1 => format!("{}.{arrive}.b64 [barrier];", of("commit")),
                _ => format!("{}.{arrive}.multicast::cluster.b64 [barrier], %h1;", of("commit")),
            },
        }
    }

    /// Waits for all threads of the blocks.
    fn meet(&self) -> &'static str {
        match self.group.blocks {
            1 => "bar.sync 0;",
            _ => "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        }
    }

    /// A kernel that fills tensor memory from `%rd1`, runs `body`, and, if `%rd2` is to have it, writes it back. `%t` is the
    /// address of the warp's lanes, `%r1` the thread, `%rank` the block.
    pub fn kernel(&self, parameters: usize, registers: &str, body: &str, back: bool) -> String {
        let fill = through(true);
        let dump = match back {
            true => format!("add.u64 %rd20, %rd2, %rd21;\n{}", through(false)),
            false => String::new(),
        };
        let names: Vec<String> = (1..=parameters).map(|i| format!(".param .u64 p{i}")).collect();
        let loads: String = (1..=parameters)
            .map(|i| format!("ld.param.u64 %rd{i}, [p{i}];\n"))
            .collect();
        let Statements {
            alloc,
            dealloc,
            relinquish,
            ..
        } = self;
        format!(
            ".version 9.5
.target sm_107a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.shared .align 8 .b8 base[8];
.shared .align 8 .b8 barrier[8];
.visible .entry k({names}){cluster}
{{
.reg .b32 %v<128>, %r<32>, %t, %rank; .reg .b64 %rd<32>; .reg .pred %p<8>; .reg .b16 %h<2>;
{registers}
{loads}
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; shl.b32 %r3, %r2, 21;
mov.u32 %rank, %cluster_ctarank; mov.u32 %r14, {all}; mov.u16 %h1, {all};
mov.u64 %rd26, base; cvta.shared.u64 %rd25, %rd26; mov.u64 %rd28, barrier; cvta.shared.u64 %rd27, %rd28;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra allocated;
{alloc}
allocated:
bar.sync 0;
ld.shared.b32 %t, [base];
add.u32 %t, %t, %r3;
mad.lo.u32 %r15, %rank, {LANES}, %r1;
mul.wide.u32 %rd21, %r15, 2048;
add.u64 %rd20, %rd1, %rd21;
{fill}
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
{meet}
{body}
{meet}
{dump}
{meet}
@%p1 bra done;
ld.shared.b32 %r4, [base];
{dealloc}
{relinquish}
done:
{meet}
ret;
}}
",
            names = names.join(", "),
            cluster = match self.group.blocks {
                1 => "",
                _ => " .explicitcluster .reqnctapercluster 2",
            },
            all = (1 << self.group.blocks) - 1,
            meet = self.meet(),
        )
    }

    /// One thread does something in tensor memory, and all wait for it.
    pub fn by_one(&self, what: &str) -> String {
        let (meet, commit) = (self.meet(), &self.commit);
        let issuer = self.group.issuer;
        // Only blocks at whose barrier somebody arrives look at it; the others meet them behind it.
        let passes = match commit.contains("multicast") {
            true => "setp.ne.u32 %p6, %r1, %r1;".into(),
            false => format!("setp.ne.u32 %p6, %rank, {issuer};"),
        };
        format!(
            "setp.ne.u32 %p2, %r1, 0;
@%p2 bra ready;
mbarrier.init.shared.b64 [barrier], 1;
fence.mbarrier_init.release.cluster;
ready:
{meet}
tcgen05.fence::after_thread_sync;
setp.ne.or.u32 %p2, %rank, {issuer}, %p2;
@%p2 bra wait_for_it;
{what}
{commit}
wait_for_it:
{passes}
@%p6 bra over;
poll:
mbarrier.try_wait.parity.shared.b64 %p3, [barrier], 0;
@!%p3 bra poll;
over:
{meet}
tcgen05.fence::after_thread_sync;
"
        )
    }
}

/// Copies shared memory, which has `size` bytes with what is before [`TILE`], from `%rd{from}`, to each block its own: these
/// ranges of it.
pub fn to_shared(from: usize, size: usize, ranges: &[Range<usize>]) -> String {
    let own = format!(
        "mov.u32 %r6, tile; mul.wide.u32 %rd23, %rank, {}; add.u64 %rd23, %rd23, %rd{from};\n",
        size - TILE
    );
    let loops = ranges.iter().enumerate().map(|(i, range)| {
        let (first, end) = (range.start - TILE, range.end - TILE);
        format!(
            "mad.lo.u32 %r5, %r1, 16, {first};
loop{i}:
cvt.u64.u32 %rd22, %r5; add.u64 %rd22, %rd22, %rd23; add.u32 %r7, %r6, %r5;
ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd22]; st.shared.v4.b32 [%r7], {{%r10, %r11, %r12, %r13}};
add.u32 %r5, %r5, 2048; setp.lt.u32 %p4, %r5, {end}; @%p4 bra loop{i};
"
        )
    });
    own + &loops.collect::<String>() + "fence.proxy.async;\nbar.sync 0;\n"
}

/// A thread's words of tensor memory from or to `%rd20`.
fn through(load: bool) -> String {
    let list: Vec<String> = (0..128).map(|i| format!("%v{i}")).collect();
    let all = list.join(", ");
    (0..4)
        .map(|part| {
            let words: String = (0..32)
                .map(|i| {
                    let (four, at) = (list[4 * i..4 * i + 4].join(", "), 512 * part + 16 * i);
                    match load {
                        true => format!("ld.global.v4.b32 {{{four}}}, [%rd20+{at}];\n"),
                        false => format!("st.global.v4.b32 [%rd20+{at}], {{{four}}};\n"),
                    }
                })
                .collect();
            let column = 128 * part;
            match load {
                true => format!(
                    "{words}add.u32 %r9, %t, {column};\ntcgen05.st.sync.aligned.32x32b.x128.b32 [%r9], {{{all}}};\n"
                ),
                false => format!(
                    "add.u32 %r9, %t, {column};\ntcgen05.ld.sync.aligned.32x32b.x128.b32 {{{all}}}, [%r9];\n\
                     tcgen05.wait::ld.sync.aligned;\n{words}"
                ),
            }
        })
        .collect()
}
