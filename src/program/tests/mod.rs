//! Linking and lowering, on small texts with expectations by hand, and on what nvcc emits.

mod code;
mod effects;
mod frames;
mod initialisers;
mod limits;
mod lines;
mod linking;
mod shapes;
mod trees;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Allocate, AllocateError, End, Function, LinkError, Module};
use crate::ptx;

/// Memory that remembers what was written where.
#[derive(Default)]
struct Memory {
    next: u64,
    /// Block start → bytes.
    blocks: BTreeMap<u64, Vec<u8>>,
    constant: Vec<u64>,
    managed: Vec<u64>,
}

impl Allocate for Memory {
    fn allocate(&mut self, bytes: u64, align: u64, constant: bool, managed: bool) -> Result<u64, AllocateError> {
        if bytes > 1 << 32 {
            return Err(AllocateError);
        }
        let start = (self.next + 0x1_0000).next_multiple_of(align);
        self.next = start + bytes;
        self.blocks.insert(start, vec![0; bytes as usize]);
        if constant {
            self.constant.push(start);
        }
        if managed {
            self.managed.push(start);
        }
        Ok(start)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let (start, block) = self.blocks.range_mut(..=address).next_back().expect("inside a block");
        let at = (address - start) as usize;
        block[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Memory {
    fn read(&self, address: u64, bytes: u64) -> &[u8] {
        let (start, block) = self.blocks.range(..=address).next_back().expect("inside a block");
        let at = (address - start) as usize;
        &block[at..at + bytes as usize]
    }

    fn global(&self, module: &Module, name: &str) -> &[u8] {
        let global = module
            .globals
            .iter()
            .find(|g| *g.name == *name)
            .expect("a variable of this name");
        self.read(global.address, global.bytes)
    }
}

const HEAD: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

fn try_link(texts: &[&str]) -> Result<(Module, Memory), LinkError> {
    let mut memory = Memory::default();
    let units: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(i, text)| {
            let text = if text.contains(".version") {
                (*text).to_owned()
            } else {
                format!("{HEAD}{text}")
            };
            match ptx::parse(ptx::Source::new(format!("unit{i}.ptx"), text)) {
                Ok(tree) => Arc::new(tree),
                Err(found) => panic!("{}", found.render_plain()),
            }
        })
        .collect();
    Module::link(&units, &mut memory).map(|module| (module.as_written(), memory))
}

fn link(texts: &[&str]) -> (Module, Memory) {
    match try_link(texts) {
        Ok(linked) => linked,
        Err(LinkError::Invalid(found)) => panic!("{}", found.render_plain()),
        Err(error) => panic!("{error}"),
    }
}

fn index(module: &Module, name: &str) -> u32 {
    module
        .functions
        .iter()
        .position(|f| *f.name == *name)
        .expect("a function of this name") as u32
}

fn prepare(module: &Module, name: &str) -> Arc<Function> {
    match module.prepare(index(module, name)) {
        Ok(function) => {
            if let Err(wrong) = function.body.verify() {
                panic!("{wrong}\n{function}");
            }
            function
        }
        Err(found) => panic!("{}", found.render_plain()),
    }
}

/// The messages of what is wrong with a function.
fn complaints(module: &Module, name: &str) -> Vec<String> {
    match module.prepare(index(module, name)) {
        Ok(function) => panic!("lowers:\n{function}"),
        Err(found) => {
            let said = found.list.iter().map(|found| match found.label.is_empty() {
                true => found.message.clone(),
                false => format!("{}; {}", found.message, found.label),
            });
            said.collect()
        }
    }
}

/// A kernel `k` with this body and a parameter `p`.
fn kernel(body: &str) -> Arc<Function> {
    let text = format!(".visible .entry k(.param .u64 p, .param .u32 n) {{\n{body}\n}}\n");
    let (module, _) = link(&[&text]);
    prepare(&module, "k")
}

/// The code as it is printed, a line an operation, with those jumps that do not go to the next block. Registers are
/// numbered anew within their class, in the order in which the code names them.
fn listing(function: &Function) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, block) in function.body.blocks.iter().enumerate() {
        lines.extend(block.insts.iter().map(|inst| inst.to_string()));
        let next = number as u32 + 1;
        match &block.end {
            End::Jump { to, .. } if *to == next => {}
            End::Branch { guard, taken, fall, .. } if *fall == next => lines.push(format!("{guard} jump b{taken}")),
            End::Stop => {}
            end => lines.push(end.to_string()),
        }
    }
    let mut names: HashMap<String, String> = HashMap::new();
    let mut taken: HashMap<char, usize> = HashMap::new();
    for line in &mut lines {
        let mut parts = line.split('%');
        let mut renamed = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part
                .char_indices()
                .find(|&(at, c)| at > 0 && !c.is_ascii_digit())
                .map_or(part.len(), |(at, _)| at);
            let name = names.entry(part[..end].to_owned()).or_insert_with(|| {
                let class = part.chars().next().unwrap_or('?');
                let count = taken.entry(class).or_default();
                *count += 1;
                format!("{class}{}", *count - 1)
            });
            renamed += name;
            renamed += &part[end..];
        }
        *line = renamed;
    }
    lines
}
