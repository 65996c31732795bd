//! Pictures of graphs in the DOT language (graphviz.org, "DOT Language").

use std::fmt::Write;
use std::sync::Arc;

use super::snapshot::SnapshotNode;
use super::{EdgeData, Graph, NodeType, SemaphoreNode, Snapshot, Work};

/// What to say of nodes besides their type (`CUgraphDebugDot_flags`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub handles: bool,
    pub kernels: bool,
    pub attributes: bool,
    pub copies: bool,
    pub sets: bool,
    pub hosts: bool,
    pub events: bool,
    pub memory: bool,
    pub batches: bool,
    pub signals: bool,
    pub awaits: bool,
    pub copy_batches: bool,
    pub conditionals: bool,
    /// Ports and types of edges.
    pub edges: bool,
}

fn picture(snapshot: &Snapshot, graph: u32, wanted: Wanted) -> String {
    let mut text = String::from("digraph dot {\n");
    let name = format!("graph_{graph}");
    // Writing to a String cannot fail.
    let _ = cluster(&mut text, snapshot, &name, &name, wanted, 1);
    text.push_str("}\n");
    text
}

fn cluster(
    text: &mut String,
    snapshot: &Snapshot,
    name: &str,
    label: &str,
    wanted: Wanted,
    depth: usize,
) -> std::fmt::Result {
    let indent = "    ".repeat(depth);
    writeln!(text, "{indent}subgraph cluster_{name} {{")?;
    writeln!(
        text,
        "{indent}    label=\"{}\"; graph[style=\"dashed\"];",
        escaped(label)
    )?;
    for node in &snapshot.nodes {
        let id = format!("{name}_node_{}", node.id);
        let label = describe(node, wanted);
        writeln!(
            text,
            "{indent}    {id}[shape=\"{}\" label=\"{}\"];",
            shape(&node.work),
            escaped(&label)
        )?;
        for (index, nested) in node.nested.iter().enumerate() {
            let inner = format!("{id}_graph_{index}");
            let label = format!("{} {index} of node {}", node_type(&node.work), node.id);
            cluster(text, nested, &inner, &label, wanted, depth + 1)?;
            if let Some(first) = nested.nodes.first() {
                let target = format!("{inner}_node_{}", first.id);
                writeln!(text, "{indent}    {id} -> {target}[style=\"dotted\"];")?;
            }
        }
    }
    for node in &snapshot.nodes {
        for (from, data) in &node.before {
            let from = snapshot.nodes[*from].id;
            write!(text, "{indent}    {name}_node_{from} -> {name}_node_{}", node.id)?;
            writeln!(text, "{};", edge(*data, wanted))?;
        }
    }
    writeln!(text, "{indent}}}")
}

fn edge(data: EdgeData, wanted: Wanted) -> String {
    let [from, to, kind, ..] = data;
    match wanted.edges || data != [0; 8] {
        true => format!("[label=\"ports {from}, {to}, type {kind}\"]"),
        false => String::new(),
    }
}

fn node_type(work: &Work) -> &'static str {
    match work.node_type() {
        NodeType::Kernel => "KERNEL",
        NodeType::Copy => "MEMCPY",
        NodeType::Set => "MEMSET",
        NodeType::Host => "HOST",
        NodeType::Child => "GRAPH",
        NodeType::Empty => "EMPTY",
        NodeType::WaitEvent => "EVENT_WAIT",
        NodeType::RecordEvent => "EVENT_RECORD",
        NodeType::Allocate => "MEM_ALLOC",
        NodeType::Free => "MEM_FREE",
        NodeType::Batch => "BATCH_MEM_OP",
        NodeType::Conditional => "CONDITIONAL",
        NodeType::Signal => "EXT_SEMAS_SIGNAL",
        NodeType::Await => "EXT_SEMAS_WAIT",
        NodeType::CopyBatch => "MEMCPY_BATCH",
    }
}

fn shape(work: &Work) -> &'static str {
    match work.node_type() {
        NodeType::Kernel => "octagon",
        NodeType::Conditional => "diamond",
        NodeType::Empty => "ellipse",
        _ => "box",
    }
}

fn describe(node: &SnapshotNode, wanted: Wanted) -> String {
    let mut text = format!("{} {}", node.id, node_type(&node.work));
    if let Work::Kernel(kernel) = &*node.work {
        text = format!("{text}\n{}", kernel.function.name());
    }
    let details = match &*node.work {
        Work::Kernel(kernel) if wanted.kernels || wanted.attributes => {
            let config = kernel.config;
            let mut text = format!("<<<{:?}, {:?}, {}>>>", config.grid, config.block, config.dynamic_shared);
            if wanted.attributes {
                // Writing to a String cannot fail.
                let _ = write!(
                    text,
                    "\ncluster {:?}, cooperative {}",
                    config.cluster, config.cooperative
                );
                for (id, value) in &kernel.attributes {
                    let _ = write!(text, "\nattribute {id}: {:#x}", value[0]);
                }
            }
            text
        }
        Work::Copy(copy) if wanted.copies => {
            format!("from {:?}\nto {:?}\n{:?}", copy.src, copy.dst, copy.shape)
        }
        Work::Set(set) if wanted.sets => format!(
            "{:#x}, pitch {}, value {:#x} of {} bytes, {} x {}",
            set.dst, set.pitch, set.value, set.element, set.width, set.height
        ),
        Work::Host(host) if wanted.hosts => format!("{:#x}({:#x})", host.function as usize, host.data),
        Work::WaitEvent(event) | Work::RecordEvent(event) if wanted.events => format!("event {:#x}", event.handle()),
        Work::Allocate(memory) | Work::Free(memory) if wanted.memory => {
            format!("{:#x}, {} bytes", memory.address(), memory.bytes())
        }
        Work::Batch(batch) if wanted.batches => {
            let operations = batch.operations.iter().map(|operation| format!("{operation:x?}"));
            operations.collect::<Vec<_>>().join("\n")
        }
        Work::Signal(node) if wanted.signals => semaphores(node),
        Work::Await(node) if wanted.awaits => semaphores(node),
        Work::CopyBatch(node) if wanted.copy_batches => {
            let copies = node
                .copies
                .iter()
                .map(|copy| format!("from {:?}\nto {:?}\n{:?}", copy.src, copy.dst, copy.shape));
            copies.collect::<Vec<_>>().join("\n")
        }
        Work::Conditional(node) if wanted.conditionals => {
            let kind = ["if", "while", "switch"][node.kind.min(2) as usize];
            format!("{kind} {:#x}, {} bodies", node.conditional.handle(), node.bodies.len())
        }
        _ => String::new(),
    };
    if !details.is_empty() {
        text = format!("{text}\n{details}");
    }
    if wanted.handles {
        text = format!("{text}\nnode {:#x}", node.handle);
    }
    text
}

fn semaphores(node: &SemaphoreNode) -> String {
    let steps = node.steps.iter();
    let steps = steps.map(|step| format!("semaphore {:#x}, value {}", step.semaphore.handle(), step.value));
    steps.collect::<Vec<_>>().join("\n")
}

/// The inside of a quoted string.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Graph {
    /// `cuGraphDebugDotPrint`.
    pub fn picture(self: &Arc<Graph>, wanted: Wanted) -> String {
        picture(&self.snapshot(), self.id, wanted)
    }
}
