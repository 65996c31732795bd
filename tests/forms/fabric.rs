//! Forms of fabric operations, by logical endpoints for the memory of three devices: a unicast endpoint of the second one,
//! which the kernel's device reaches, and a multicast one of all. Each form has 1 KiB of it on each device, filled with edge
//! values and random ones. What comes back, what lies in each device's memory afterwards, and counters are compared with
//! the model. Those of tensors are in `tensor.rs`, which asks here for endpoints.

use std::ffi::{CString, c_int, c_uint, c_ulonglong};
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::execute::Random;
use crate::multimem::{DEVICES, cuMemCreate, fill, mapped};
use crate::reduction::{bytes_of, get, reduced, same, updated};

/// `CUlogicalEndpointProp`.
#[repr(C)]
pub struct Prop {
    kind: c_uint,
    /// The owner, or how many.
    devices: c_uint,
    bytes: c_ulonglong,
    handles: c_uint,
    flags: c_uint,
}

functions! {
    cuLogicalEndpointIdReserve(base: *mut c_uint, count: c_uint);
    cuLogicalEndpointCreate(id: c_uint, prop: *const Prop);
    cuLogicalEndpointAddDevice(id: c_uint, device: CUdevice);
    cuLogicalEndpointBindMem(
        id: c_uint,
        device: CUdevice,
        offset: u64,
        memory: u64,
        from: u64,
        bytes: u64,
        flags: c_ulonglong,
    );
    cuLogicalEndpointQuery(id: c_uint, count: c_uint, status: *mut c_int);
}

const UNICAST: c_uint = 1;
const MULTICAST: c_uint = 2;
const COUNTED: c_uint = 1;
/// The device whose memory the unicast endpoint is.
const OWNER: usize = 1;

/// Endpoints for the same memory, and where each device has it.
pub struct Endpoints {
    pub unicast: c_uint,
    pub multicast: c_uint,
    pub own: [CUdeviceptr; DEVICES],
}

impl Endpoints {
    /// Bytes of an endpoint.
    pub const BYTES: u64 = 2 << 20;
    /// Where counters are, behind all data.
    pub const COUNTER: u64 = 1 << 20;

    pub fn new() -> Endpoints {
        let mut base = 0;
        ok(cuLogicalEndpointIdReserve(&mut base, 2));
        let (unicast, multicast) = (base, base + 1);
        let prop = |kind, devices| Prop {
            kind,
            devices,
            bytes: Endpoints::BYTES,
            handles: 0,
            flags: COUNTED,
        };
        ok(cuLogicalEndpointCreate(unicast, &prop(UNICAST, OWNER as c_uint)));
        ok(cuLogicalEndpointCreate(multicast, &prop(MULTICAST, DEVICES as c_uint)));
        // Sums go by the devices' numbers, not by the order in which they come.
        for device in (0..DEVICES).rev() {
            ok(cuLogicalEndpointAddDevice(multicast, device as CUdevice));
        }
        let mut ready = 0;
        ok(cuLogicalEndpointQuery(base, 2, &mut ready));
        assert_ne!(ready, 0);
        let own = std::array::from_fn(|device| {
            let mut memory = 0;
            let bytes = Endpoints::BYTES as usize;
            ok(cuMemCreate(
                &mut memory,
                bytes,
                &[1, 0, 1, device as u32, 0, 0, 0, 0],
                0,
            ));
            let of = [(OWNER, unicast), (device, multicast)];
            for (_, id) in of.into_iter().filter(|(of, _)| *of == device) {
                ok(cuLogicalEndpointBindMem(
                    id,
                    device as CUdevice,
                    0,
                    memory,
                    0,
                    Endpoints::BYTES,
                    0,
                ));
            }
            mapped(memory, bytes)
        });
        Endpoints {
            unicast,
            multicast,
            own,
        }
    }

    pub fn id(&self, is_team: bool) -> c_uint {
        if is_team { self.multicast } else { self.unicast }
    }

    /// Whether a device's memory is that of the endpoint.
    pub fn has(is_team: bool, device: usize) -> bool {
        is_team || device == OWNER
    }
}

const THREADS: usize = 32;
/// Bytes of a form on each device, in shared memory, and of results.
const AREA: usize = 32 * THREADS;
const MASK: u32 = 0x7a31;
const BATCH: usize = 100;

struct Case<'a> {
    row: &'a Row,
    words: Vec<&'static str>,
    /// Where its data starts in the endpoint.
    offset: u64,
}

impl<'a> Case<'a> {
    fn of(row: &'a Row, random: &mut Random) -> Option<Case<'a>> {
        let opcode = row.example.trim().split([' ', ';']).next()?;
        Some(Case {
            row,
            words: opcode.split('.').collect(),
            offset: 16 * (random.next() % 1000),
        })
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// It reads from the endpoint, and nothing else.
    fn fetches(&self) -> bool {
        self.has("try_get") || self.has("try_pullred") || self.has("op_restrict::fetching")
    }

    fn op(&self) -> &'static str {
        let known = ["add", "min", "max", "and", "or", "xor", "exch", "cas"];
        let op = self.words.iter().copied().find(|word| known.contains(word));
        op.unwrap_or("store")
    }

    /// The type of an element, and of a number of it: `f16` of `f16x2`.
    fn types(&self) -> (&'static str, &'static str) {
        let known =
            |word: &&str| word.starts_with(['u', 's', 'b', 'f', 'e']) && word.ends_with(|c: char| c.is_ascii_digit());
        let ty = self.words[1..].iter().copied().rfind(known).unwrap_or("b32");
        (ty, ty.split('x').next().expect("a type"))
    }

    /// Bytes of an element.
    fn element(&self) -> usize {
        let (ty, number) = self.types();
        match ty {
            "b128" => 16,
            ty if ty.contains('x') => 2 * bytes_of(number),
            _ => bytes_of(number),
        }
    }

    fn kernel(&self, name: &str) -> String {
        let example = self.row.example;
        let put = "fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric.relaxed.sys.b128 \
                   [%r1, %rd2], [%rd3], %r4, [%rd5];";
        let get = "fabric.try_get.async.shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric.relaxed.sys.b128 \
                   [%rd3], [%r1, %rd2], %r4, [%rd5];";
        let units = if self.fetches() { AREA } else { AREA / 16 };
        let first = |expected: usize, body: &str| {
            format!(
                "@%others bra issued;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {expected};\n{body}\nissued:\n"
            )
        };
        let body = match () {
            () if self.has("submit") => first(units, &format!("{}\n{example}", if self.fetches() { get } else { put })),
            () if self.has("wait") => {
                let overwrite: String = (0..AREA)
                    .step_by(8)
                    .map(|at| format!("st.shared.b64 [%rd3+{at}], 0;\n"))
                    .collect();
                first(units, &format!("{put}\nfabric.submit;\n{example}\n{overwrite}"))
            }
            // Each lane has an element of its own.
            () if self.has("try_atom") => format!(
                "mov.b32 %r9, %tid.x; mad.wide.u32 %rd2, %r9, {}, %rd2; mad.wide.u32 %rd4, %r9, 32, %rd3;\n\
                 mad.wide.u32 %rd3, %r9, 16, %out;\n@%others bra announced;\n\
                 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {THREADS};\nannounced: bar.warp.sync -1;\n\
                 {example}\nfabric.submit;\nmov.b64 %rd3, %out;\n",
                self.element()
            ),
            // All lanes begin it together.
            () if self.has("try_pullred") => format!(
                "@%others bra announced;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {units};\n\
                 announced: bar.warp.sync -1;\n{example}\nfabric.submit.op_restrict::fetching;\n"
            ),
            () => first(units, &format!("{example}\nfabric.submit;")),
        };
        let result = if self.has("try_atom") { "%out" } else { "%rd3" };
        format!(
            ".visible .entry {name}(.param .u64 from, .param .u64 to, .param .u32 id, .param .u64 offset, .param .u64 counter)
{{ .reg .pred %p<4>, %others; .reg .b16 %rs<8>; .reg .b32 %r<12>; .reg .b64 %rd<12>, %from, %to, %out, %at;
.shared .align 32 .b8 window[{AREA}]; .shared .align 16 .b8 result[{AREA}]; .shared .align 8 .b64 bar;
ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %r1, [id]; ld.param.u64 %rd2, [offset];
ld.param.u64 %rd0, [counter]; mov.b64 %rd3, window; mov.b64 %out, result; mov.b64 %rd5, bar; mov.b64 %rd7, 0;
mov.b32 %r4, {AREA}; mov.b16 %rs6, {MASK}; mov.b32 %r8, %tid.x; setp.ne.u32 %others, %r8, 0;
mad.wide.u32 %from, %r8, 32, %from; mad.wide.u32 %to, %r8, 32, %to; mad.wide.u32 %at, %r8, 32, %rd3;
ld.global.v2.b64 {{%rd10, %rd11}}, [%from]; st.shared.v2.b64 [%at], {{%rd10, %rd11}};
ld.global.v2.b64 {{%rd10, %rd11}}, [%from+16]; st.shared.v2.b64 [%at+16], {{%rd10, %rd11}};
@%others bra made; mbarrier.init.layout::v1.shared::cta.b64 [bar], 1;\nmade: fence.proxy.async; bar.sync 0;
{body}
again: mbarrier.try_wait.parity.phase_type::primary.shared::cta.b64 %p1|%p2, [bar], 0; @!%p1 bra again;
@%p2 trap;
mad.wide.u32 %at, %r8, 32, {result};
ld.shared.v2.b64 {{%rd10, %rd11}}, [%at]; st.global.v2.b64 [%to], {{%rd10, %rd11}};
ld.shared.v2.b64 {{%rd10, %rd11}}, [%at+16]; st.global.v2.b64 [%to+16], {{%rd10, %rd11}};
ret; }}\n"
        )
    }
}

type Memories = [Vec<u8>; DEVICES];

struct Run<'a> {
    case: &'a Case<'a>,
    function: CUfunction,
    endpoints: &'a Endpoints,
    from: CUdeviceptr,
    to: CUdeviceptr,
}

fn read(at: CUdeviceptr, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    ok(cuMemcpyDtoH(out.as_mut_ptr().cast(), at, bytes));
    out
}

impl Run<'_> {
    fn compare(&self, random: &mut Random) -> Result<(), String> {
        let case = self.case;
        let is_team = case.has("multimem");
        let (_, number) = case.types();
        let counter = Endpoints::COUNTER + 256 * (random.next() % 100);
        let mut counts = [0_u64; DEVICES];
        let before: Memories = std::array::from_fn(|device| {
            let mut bytes = vec![0; AREA];
            fill(random, number, &mut bytes);
            let own = self.endpoints.own[device];
            ok(cuMemcpyHtoD(own + case.offset, bytes.as_ptr().cast(), AREA));
            counts[device] = random.next();
            ok(cuMemcpyHtoD(own + counter, (&raw const counts[device]).cast(), 8));
            bytes
        });
        let mut operands = vec![0; AREA];
        fill(random, number, &mut operands);
        if case.op() == "cas" {
            self.agree(&before[OWNER], &mut operands);
        }
        ok(cuMemcpyHtoD(self.from, operands.as_ptr().cast(), AREA));
        let (mut from, mut to, mut id) = (self.from, self.to, self.endpoints.id(is_team));
        let (mut offset, mut at) = (case.offset, counter);
        let mut parameters = [
            (&raw mut from).cast(),
            (&raw mut to).cast(),
            (&raw mut id).cast(),
            (&raw mut offset).cast(),
            (&raw mut at).cast(),
        ];
        let launched = cuLaunchKernel(
            self.function,
            1,
            1,
            1,
            THREADS as u32,
            1,
            1,
            0,
            null_mut(),
            parameters.as_mut_ptr(),
            null_mut(),
        );
        let error = cuCtxSynchronize();
        if launched != 0 || error != 0 {
            return Err(format!("error {launched} {error}"));
        }
        let after: Memories = std::array::from_fn(|device| read(self.endpoints.own[device] + case.offset, AREA));
        let returned = read(self.to, AREA);
        for (device, count) in counts.iter().enumerate() {
            let came = case.has("counted::bytes") && Endpoints::has(is_team, device);
            let expected = count.wrapping_add(if came { AREA as u64 } else { 0 });
            let is = get(&read(self.endpoints.own[device] + counter, 8));
            if is != expected {
                return Err(format!("device {device} counts {is:#x}, not {expected:#x}"));
            }
        }
        self.check(&before, &operands, &after, &returned)
    }

    /// Every other element is what `cas` expects.
    fn agree(&self, memory: &[u8], operands: &mut [u8]) {
        let size = self.case.element();
        for lane in (0..THREADS).step_by(2) {
            let slot = (self.case.offset as usize + lane * size) % 16;
            operands[32 * lane + slot..][..size].copy_from_slice(&memory[lane * size..][..size]);
        }
    }

    fn check(&self, before: &Memories, operands: &[u8], after: &Memories, returned: &[u8]) -> Result<(), String> {
        let case = self.case;
        let is_team = case.has("multimem");
        let (_, number) = case.types();
        let size = case
            .element()
            .min(bytes_of(number).max(if number == "b128" { 16 } else { 0 }));
        let expected: Memories = std::array::from_fn(|device| match Endpoints::has(is_team, device) {
            true => self.written(&before[device], operands),
            false => before[device].clone(),
        });
        for device in 0..DEVICES {
            compare(number, size, &after[device], &expected[device])
                .map_err(|why| format!("device {device}: {why}"))?;
        }
        match () {
            () if case.has("try_pullred") => {
                let sums = match () {
                    () if case.has("acc::f32") => "f32",
                    () if case.has("acc::f16") => "f16",
                    () => number,
                };
                let whole: Vec<u8> = (0..AREA)
                    .step_by(size)
                    .flat_map(|at| {
                        let values: Vec<u64> = before.iter().map(|bytes| get(&bytes[at..at + size])).collect();
                        reduced(case.op(), number, sums, &values).to_le_bytes()[..size].to_vec()
                    })
                    .collect();
                compare(number, size, returned, &whole)
            }
            () if case.fetches() => compare(number, 1, returned, &before[OWNER]),
            () if case.has("try_atom") => {
                let element = case.element();
                for lane in 0..THREADS {
                    let slot = (case.offset as usize + lane * element) % 16;
                    let old = &before[OWNER][lane * element..][..element];
                    let is = &returned[16 * lane + slot..][..element];
                    if is != old {
                        return Err(format!("lane {lane} gets {is:x?}, not {old:x?}"));
                    }
                }
                Ok(())
            }
            () => Ok(()),
        }
    }

    /// What memory of the endpoint holds afterwards.
    fn written(&self, before: &[u8], operands: &[u8]) -> Vec<u8> {
        let case = self.case;
        let mut memory = before.to_vec();
        if case.fetches() {
            return memory;
        }
        let (op, (_, number)) = (case.op(), case.types());
        let flushes = op == "add" && number == "f32";
        if case.has("try_atom") {
            let element = case.element();
            let size = if op == "cas" || op == "exch" {
                element
            } else {
                bytes_of(number)
            };
            for lane in 0..THREADS {
                for part in (0..element).step_by(size) {
                    let at = lane * element + part;
                    let slot = 32 * lane + (case.offset as usize + lane * element) % 16 + part;
                    let operand = &operands[slot..slot + size];
                    let target = &mut memory[at..at + size];
                    match op {
                        "exch" => target.copy_from_slice(operand),
                        "cas" if target == operand => target.copy_from_slice(&operands[slot + 16..][..size]),
                        "cas" => {}
                        _ => {
                            let new = updated(op, number, get(target), get(operand), flushes);
                            target.copy_from_slice(&new.to_le_bytes()[..size]);
                        }
                    }
                }
            }
            return memory;
        }
        if op == "store" {
            for (at, byte) in memory.iter_mut().enumerate() {
                if !case.has("cp_mask") || MASK >> (at % 16) & 1 == 1 {
                    *byte = operands[at];
                }
            }
            return memory;
        }
        let size = bytes_of(number);
        for at in (0..AREA).step_by(size) {
            let (old, operand) = (get(&before[at..at + size]), get(&operands[at..at + size]));
            let new = updated(op, number, old, operand, flushes);
            memory[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
        }
        memory
    }
}

fn compare(number: &str, size: usize, is: &[u8], expected: &[u8]) -> Result<(), String> {
    let equal = |a: &[u8], b: &[u8]| a == b || size <= 8 && same(number, get(a), get(b));
    match (0..AREA)
        .step_by(size)
        .find(|&at| !equal(&is[at..at + size], &expected[at..at + size]))
    {
        None => Ok(()),
        Some(at) => Err(format!(
            "{:x?} at {at}, not {:x?}",
            &is[at..at + size],
            &expected[at..at + size]
        )),
    }
}

/// Reductions of tensors, which the assembler takes and the list lacks: like the stores that it has.
pub fn tensor_reductions(stores: &[&Row]) -> Vec<Row> {
    let ops = ["add", "min", "max", "and", "or", "xor"];
    let stores = stores.iter().filter(|row| row.form.contains("try_put"));
    let leak = |text: String| &*Box::leak(text.into_boxed_str());
    let reduction = |(row, op): (&&Row, &str)| {
        let changed = |text: &str| {
            leak(
                text.replace("try_put", "try_red")
                    .replace(".sys.b128", &format!(".sys.{op}")),
            )
        };
        Row {
            form: changed(row.form),
            example: changed(row.example),
            ..**row
        }
    };
    stores.zip(ops.into_iter().cycle()).map(reduction).collect()
}

/// How many forms were executed, and what went wrong; `rows` are not those of tensors.
pub fn run(rows: &[&Row], endpoints: &Endpoints) -> (usize, Vec<String>) {
    let mut random = Random::of("fabric");
    let cases: Vec<Case<'_>> = rows.iter().filter_map(|row| Case::of(row, &mut random)).collect();
    let mut failures = Vec::new();
    let (mut from, mut to) = (0, 0);
    ok(cuMemAlloc(&mut from, AREA));
    ok(cuMemAlloc(&mut to, AREA));
    for cases in cases.chunks(BATCH) {
        let mut text = String::from(".version 9.5\n.target sm_100a\n.address_size 64\n");
        for (index, case) in cases.iter().enumerate() {
            text += &case.kernel(&format!("k{index}"));
        }
        let text = CString::new(text).expect("text");
        let mut module = null_mut();
        ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        for (index, case) in cases.iter().enumerate() {
            let name = CString::new(format!("k{index}")).expect("text");
            let mut function = null_mut();
            ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
            let run = Run {
                case,
                function,
                endpoints,
                from,
                to,
            };
            if let Err(found) = run.compare(&mut random) {
                let ends = found.starts_with("error");
                failures.push(format!("{}: {found}", case.row.example));
                // A fault leaves nothing that could be used.
                if ends {
                    return (cases.len(), failures);
                }
            }
        }
        ok(cuModuleUnload(module));
    }
    ok(cuMemFree(from));
    ok(cuMemFree(to));
    (cases.len(), failures)
}
