//! What a kernel asks the device runtime for is told: the kernels' heap and the parameters of launches at once, copies
//! and fills row by row when they are done, after the blocks.

use std::sync::Arc;

use cuda::program::Space;
use cuda::simt::observe::Direction;
use cuda::simt::{Family, GraphUpdate, Launch, Runtime, Shape};

use crate::counter::{Counter, HEAP, Run};

/// Has room in its line, one slab of memory for parameters, and kernels with one parameter of 8 bytes.
struct Bare {
    slab: u64,
}

const NOT_SUPPORTED: u32 = 801;
const SLAB: u64 = 64 << 10;

impl Runtime for Bare {
    fn child(&self, parent: &Launch, shape: &Shape, params: Box<[u8]>) -> Result<Launch, u32> {
        Ok(Launch {
            code: Arc::clone(&parent.code),
            kernel: shape.kernel,
            grid: shape.grid,
            block: shape.block,
            cluster: None,
            dynamic_shared: shape.dynamic_shared,
            params,
            cooperative: false,
            workspace: 0,
            tensor: parent.tensor,
            grid_id: parent.grid_id + 1,
            device: parent.device,
            multiprocessors: parent.multiprocessors,
            stack_limit: parent.stack_limit,
            timeout: parent.timeout,
            seed: None,
            is_checked: true.into(),
            services: Arc::clone(&parent.services),
            references: parent.references.clone(),
            family: Family::default(),
        })
    }
    fn parameters(&self, _: u32) -> Result<u32, u32> {
        Ok(8)
    }
    fn function_attribute(&self, _: u32, _: u32) -> Result<i32, u32> {
        Err(NOT_SUPPORTED)
    }
    fn occupancy(&self, _: u32, _: u32, _: u64) -> Result<u32, u32> {
        Err(NOT_SUPPORTED)
    }
    fn device_attribute(&self, _: i32, _: i32) -> Result<i32, u32> {
        Err(NOT_SUPPORTED)
    }
    fn device_count(&self) -> u32 {
        1
    }
    fn device(&self) -> u32 {
        0
    }
    fn limit(&self, _: u32) -> Result<u64, u32> {
        Ok(2048)
    }
    fn preferences(&self) -> (u32, u32) {
        (0, 0)
    }
    fn version(&self) -> u32 {
        0
    }
    fn words(&self, _: u32) -> (&'static str, &'static str) {
        ("", "")
    }
    fn reserve(&self, bytes: u64) -> u64 {
        assert!(bytes <= SLAB);
        self.slab
    }
    fn release(&self, _: u64) {}
    fn launch_graph(&self, _: u64, _: u64, _: u64) -> Result<(), u32> {
        Err(NOT_SUPPORTED)
    }
    fn update_node(&self, _: u64, _: GraphUpdate) -> Result<(), u32> {
        Err(NOT_SUPPORTED)
    }
}

#[test]
fn copies_fills_and_memory_of_the_device_runtime_are_told() {
    let mut run = Run::new();
    run.runtime = Some(Arc::new(Bare { slab: 0 }));
    let declared = |name: &str, parameters: &[&str]| {
        let each = parameters
            .iter()
            .enumerate()
            .map(|(i, ty)| format!(".param .{ty} p{i}"));
        format!(
            ".extern .func (.param .b32 r) __cudaCDP2{name}({});\n",
            each.collect::<Vec<_>>().join(", ")
        )
    };
    let call = |name: &str, arguments: &[(&str, &str)]| {
        let mut text = String::from("{\n.param .b32 r;\n");
        for (i, (ty, value)) in arguments.iter().enumerate() {
            text += &format!(".param .{ty} p{i};\nst.param.{ty} [p{i}], {value};\n");
        }
        let names: Vec<_> = (0..arguments.len()).map(|i| format!("p{i}")).collect();
        text + &format!(
            "call.uni (r), __cudaCDP2{name}, ({});\nld.param.b32 %r, [r];\nst.global.u32 [%out], %r;\n}}\n",
            names.join(", ")
        )
    };
    let text = [
        ".version 8.0\n.target sm_90\n.address_size 64\n",
        &declared("MemcpyAsync", &["b64", "b64", "b64", "b32", "b64"]),
        &declared("Memset2DAsync", &["b64", "b64", "b32", "b64", "b64", "b64"]),
        &declared("Malloc", &["b64", "b64"]),
        &declared("Free", &["b64"]),
        ".visible .entry all(.param .u64 to, .param .u64 from, .param .u64 out)\n{\n",
        ".reg .b64 %to, %from, %out, %got;\n.reg .b32 %r;\n",
        "ld.param.u64 %to, [to];\nld.param.u64 %from, [from];\nld.param.u64 %out, [out];\n",
        &call("Malloc", &[("b64", "%to"), ("b64", "48")]),
        "ld.global.u64 %got, [%to];\n",
        &call("Free", &[("b64", "%got")]),
        &call(
            "MemcpyAsync",
            &[
                ("b64", "%to"),
                ("b64", "%from"),
                ("b64", "24"),
                ("b32", "3"),
                ("b64", "0"),
            ],
        ),
        // Two rows of 4 bytes, 16 apart.
        &call(
            "Memset2DAsync",
            &[
                ("b64", "%to"),
                ("b64", "16"),
                ("b32", "9"),
                ("b64", "4"),
                ("b64", "2"),
                ("b64", "0"),
            ],
        ),
        "ret;\n}\n",
    ]
    .concat();
    let (to, from) = (run.memory.buffer(&[0; 64]), run.memory.buffer(&[7; 64]));
    let out = run.memory.buffer(&[0; 8]);
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of(""));
    let params = [to, from, out].map(u64::to_le_bytes).concat();
    run.launch(&module, "all", (1, params), &counter).expect("it runs");
    let expected = [
        "launch".to_owned(),
        "block".into(),
        "host call of 1".into(),
        format!("allocate 48 at {HEAP:#x}"),
        "host call of 1".into(),
        format!("free {HEAP:#x}"),
        "host call of 1".into(),
        "host call of 1".into(),
        "block end".into(),
        "end".into(),
        format!("Read 24 at {from:#x}"),
        format!("Write 24 at {to:#x}"),
        format!("Write 4 at {to:#x}"),
        format!("Write 4 at {:#x}", to + 16),
    ];
    assert_eq!(counter.events(), expected);
}

#[test]
fn parameters_of_launches_and_their_grids_are_told() {
    let mut run = Run::new();
    let slab = run.memory.buffer(&[0; SLAB as usize]);
    run.runtime = Some(Arc::new(Bare { slab }));
    let text = "
.version 8.0\n.target sm_90\n.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],
    .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.visible .entry child(.param .u64 to)
{
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u64 [%to], %to;
    ret;
}
.visible .entry parent(.param .u64 to)
{
    .reg .b64 %to, %f, %buffer;\n    .reg .b32 %e;
    ld.param.u64 %to, [to];
    {
    .param .b64 r;\n    .param .b64 f;\n    .param .align 4 .b8 g[12];\n    .param .align 4 .b8 b[12];\n    .param .b32 s;
    mov.u64 %f, child;\n    st.param.b64 [f], %f;
    st.param.b32 [g], 1;\n    st.param.b32 [g+4], 1;\n    st.param.b32 [g+8], 1;
    st.param.b32 [b], 1;\n    st.param.b32 [b+4], 1;\n    st.param.b32 [b+8], 1;
    st.param.b32 [s], 0;
    call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
    ld.param.b64 %buffer, [r];
    st.b64 [%buffer], %to;
    }
    {
    .param .b64 p;\n    .param .b64 q;\n    .param .b32 e;
    st.param.b64 [p], %buffer;\n    st.param.b64 [q], 0;
    call.uni (e), __cudaCDP2LaunchDeviceV2, (p, q);
    ld.param.b32 %e, [e];
    }
    ret;
}
";
    let to = run.memory.buffer(&[0; 8]);
    let module = run.load(text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of("call.uni (e), __cudaCDP2LaunchDeviceV2, (p, q);"));
    run.launch(&module, "parent", (1, to.to_le_bytes().to_vec()), &counter)
        .expect("it runs");
    // Besides what the call copies from frame to frame.
    let seen = counter.seen();
    let taken: Vec<_> = seen.iter().filter(|seen| seen.what.space == Space::Generic).collect();
    assert_eq!(taken.len(), 1, "{seen:?}");
    let what = &taken[0].what;
    assert_eq!((taken[0].lanes, what.bytes, what.direction), (1, 8, Direction::Read));
    let expected = [
        "launch",
        "block",
        "host call of 1",
        "allocate 64",
        "host call of 1",
        "block end",
        "end",
        "launch",
        "block",
        "block end",
        "end",
    ];
    // Where the buffer lies is the runtime's affair.
    let events = counter.events();
    let events: Vec<&str> = events.iter().filter_map(|event| event.split(" at ").next()).collect();
    assert_eq!(events, expected);
}
