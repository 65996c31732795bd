//! A kernel as a tree that can be cut and still prints as legal PTX with the same meaning for what is left.
//!
//! Every register of the pools has a value before the body begins, jumps lead only to labels that their loop prints in any
//! form, and what nobody names is not printed. So any node may go.

use std::collections::BTreeSet;
use std::fmt::Write;

#[derive(Clone)]
pub enum Node {
    /// Instructions that belong together; the guard is for the last one.
    Unit { lines: Vec<String>, guard: Option<String> },
    If {
        id: usize,
        /// Instructions that make the condition, where it is not a register of the pool.
        before: Vec<String>,
        condition: String,
        mask: Option<Masks>,
        then: Vec<Node>,
        other: Vec<Node>,
    },
    Loop {
        id: usize,
        /// Puts the number of passes into `%n<id>`.
        before: Vec<String>,
        /// Sets registers that the body needs even if it is run once.
        always: Vec<String>,
        /// The test stands at the end: one pass at least.
        bottom: bool,
        /// Register of the lanes that are in the loop, and of those that came to it.
        mask: Option<(usize, String)>,
        /// Cut down to its body: no test, no way back.
        once: bool,
        body: Vec<Node>,
    },
    /// To `L<id>_next` or `L<id>_out` of a loop that it is in.
    Jump {
        before: Vec<String>,
        condition: String,
        target: String,
    },
    /// A loop that some lanes enter at its beginning, others in its middle.
    Middle {
        id: usize,
        condition: String,
        passes: usize,
        first: Vec<Node>,
        second: Vec<Node>,
    },
    /// A jump by number; a case may run on into the next.
    Switch {
        id: usize,
        index: String,
        cases: Vec<(Vec<Node>, bool)>,
    },
}

/// The registers with the lanes of both sides, and with those who came.
#[derive(Clone)]
pub struct Masks {
    pub then: usize,
    pub other: usize,
    pub all: String,
}

#[derive(Clone)]
pub struct Function {
    pub name: String,
    /// Everything in front of the body of which only what is named is printed: the registers that a line sets, and the line.
    pub head: Vec<(Vec<String>, String)>,
    pub body: Vec<Node>,
    pub tail: Vec<String>,
    /// Its parameters and results, in PTX.
    pub signature: String,
    /// More than any `id` and any number of a mask in the body.
    pub ids: usize,
}

#[derive(Clone)]
pub struct Kernel {
    pub seed: u64,
    pub block: [u32; 3],
    pub grid: [u32; 2],
    pub functions: Vec<Function>,
    pub main: Function,
    /// The stores of what is left in the registers at the end.
    pub dump: Vec<Node>,
}

pub fn unit(line: impl Into<String>) -> Node {
    Node::Unit {
        lines: vec![line.into()],
        guard: None,
    }
}

/// Memory that all kernels have; each line is printed if its name is used.
const VARIABLES: &[(&str, &str)] = &[
    ("ctab", ".const .align 16 .b32 ctab[64] = {CONSTANTS};"),
    ("sown", ".shared .align 16 .b8 sown[16384];"),
    ("sexc", ".shared .align 16 .b8 sexc[8192];"),
    ("sacc", ".shared .align 16 .b8 sacc[512];"),
];

const POOLS: &str = "\
    .reg .b16 %h<8>, %x<6>;
    .reg .b32 %r<16>, %t<12>;
    .reg .b64 %d<10>, %w<12>;
    .reg .f32 %f<12>, %g<4>;
    .reg .f64 %e<8>;
    .reg .pred %p<8>, %q<8>;
    .reg .b64 %Pin, %Pout, %Ptab, %Pown, %Pacc, %Psoa, %Psown, %Psexc, %Psacc, %Ploc, %Pctab;
    .reg .b32 %gt, %lt, %lane, %full, %nt, %ntg, %depth;
";

impl Kernel {
    pub fn print(&self) -> String {
        let mut main = String::new();
        self.main.print(&mut main, &self.dump);
        // Callees stand before callers; only those that are called.
        let mut functions = String::new();
        for function in self.functions.iter().rev() {
            // By name in a call, or with its address.
            let uses = [format!("{},", function.name), format!("{};", function.name)];
            if uses.iter().any(|name| main.contains(name) || functions.contains(name)) {
                let mut text = String::new();
                function.print(&mut text, &[]);
                functions = text + &functions;
            }
        }
        let mut text = ".version 8.1\n.target sm_90\n.address_size 64\n\n".to_string();
        for (name, line) in VARIABLES {
            let use_of = format!(" {name};");
            if main.contains(&use_of) || functions.contains(&use_of) {
                let constants: Vec<String> = (0..64u32)
                    .map(|i| (i.wrapping_mul(0x9e37_79b1) ^ (i << 3)).to_string())
                    .collect();
                let _ = writeln!(text, "{}", line.replace("CONSTANTS", &constants.join(", ")));
            }
        }
        text + &functions + &main
    }

    /// Every list of nodes, the largest first.
    pub fn lists(&mut self, visit: &mut dyn FnMut(&mut Vec<Node>)) {
        visit(&mut self.dump);
        lists(&mut self.main.body, visit);
        for function in &mut self.functions {
            lists(&mut function.body, visit);
        }
    }
}

fn lists(nodes: &mut Vec<Node>, visit: &mut dyn FnMut(&mut Vec<Node>)) {
    visit(nodes);
    for node in nodes {
        match node {
            Node::Unit { .. } | Node::Jump { .. } => {}
            Node::If { then, other, .. } => {
                lists(then, visit);
                lists(other, visit);
            }
            Node::Loop { body, .. } => lists(body, visit),
            Node::Middle { first, second, .. } => {
                lists(first, visit);
                lists(second, visit);
            }
            Node::Switch { cases, .. } => cases.iter_mut().for_each(|(body, _)| lists(body, visit)),
        }
    }
}

/// The registers and variables that a text names.
fn names(text: &str, into: &mut BTreeSet<String>) {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '%' || c.is_ascii_alphabetic() || c == '_') {
        rest = &rest[at..];
        let end = rest[1..]
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .map_or(rest.len(), |end| end + 1);
        into.insert(rest[..end].to_string());
        rest = &rest[end..];
    }
}

impl Function {
    fn print(&self, into: &mut String, dump: &[Node]) {
        let mut body = String::new();
        print(&self.body, &mut body);
        print(dump, &mut body);
        for line in &self.tail {
            let _ = writeln!(body, "    {line}");
        }
        let mut used = BTreeSet::new();
        names(&body, &mut used);
        let mut head = Vec::new();
        for (sets, line) in self.head.iter().rev() {
            if sets.iter().any(|name| used.contains(name)) {
                names(line, &mut used);
                head.push(line);
            }
        }
        let _ = writeln!(into, "{}\n{{\n{POOLS}", self.signature);
        let ids = self.ids.max(1);
        let _ = writeln!(
            into,
            "    .reg .b32 %n<{ids}>, %c<{ids}>, %m<{ids}>;\n    .reg .b64 %W<{ids}>;\n    .reg .pred %l<{ids}>;"
        );
        if used.contains("loc") {
            let _ = writeln!(into, "    .local .align 16 .b8 loc[64];");
        }
        for line in head.into_iter().rev() {
            let _ = writeln!(into, "    {line}");
        }
        // The head ends here.
        let _ = writeln!(into, "BODY:\n{body}}}\n");
    }
}

fn print(nodes: &[Node], into: &mut String) {
    macro_rules! line {
        ($($text:tt)*) => {{ let _ = writeln!(into, $($text)*); }};
    }
    for node in nodes {
        match node {
            Node::Unit { lines, guard } => {
                for (i, text) in lines.iter().enumerate() {
                    match guard {
                        Some(guard) if i + 1 == lines.len() => line!("    @{guard} {text}"),
                        _ => line!("    {text}"),
                    }
                }
            }
            Node::If {
                id,
                before,
                condition,
                mask,
                then,
                other,
            } => {
                before.iter().for_each(|text| line!("    {text}"));
                if let Some(Masks { then, other, all }) = mask {
                    line!("    vote.sync.ballot.b32 %m{then}, {condition}, {all};");
                    line!("    not.b32 %m{other}, %m{then};");
                    line!("    and.b32 %m{other}, %m{other}, {all};");
                }
                line!("    @{} bra I{id}_else;", negated(condition));
                print(then, into);
                if !other.is_empty() {
                    let _ = writeln!(into, "    bra I{id}_end;\nI{id}_else:");
                    print(other, into);
                    let _ = writeln!(into, "I{id}_end:");
                } else {
                    let _ = writeln!(into, "I{id}_else:");
                }
            }
            Node::Loop {
                id,
                before,
                always,
                bottom,
                mask,
                once,
                body,
            } => {
                if !once {
                    before.iter().for_each(|text| line!("    {text}"));
                }
                always.iter().for_each(|text| line!("    {text}"));
                if let Some((mask, all)) = mask {
                    line!("    mov.b32 %m{mask}, {all};");
                }
                if !once {
                    line!("L{id}_top:");
                }
                if !once && !bottom {
                    line!("    setp.ge.u32 %l{id}, %c{id}, %n{id};");
                    if let Some((mask, _)) = mask {
                        line!("    vote.sync.ballot.b32 %m{mask}, !%l{id}, %m{mask};");
                    }
                    line!("    @%l{id} bra L{id}_out;");
                }
                print(body, into);
                let _ = writeln!(into, "L{id}_next:");
                if !once {
                    let _ = writeln!(into, "    add.u32 %c{id}, %c{id}, 1;");
                    if *bottom {
                        let _ = writeln!(into, "    setp.lt.u32 %l{id}, %c{id}, %n{id};");
                        if let Some((mask, _)) = mask {
                            let _ = writeln!(into, "    vote.sync.ballot.b32 %m{mask}, %l{id}, %m{mask};");
                        }
                        let _ = writeln!(into, "    @%l{id} bra L{id}_top;");
                    } else {
                        let _ = writeln!(into, "    bra L{id}_top;");
                    }
                }
                let _ = writeln!(into, "L{id}_out:");
                // Those who left early wait for the others, or they would come to the vote of the next time while the others
                // are still at that of this one, with other members.
                if let (Some((_, all)), false) = (mask, once) {
                    line!("    bar.warp.sync {all};");
                }
            }
            Node::Jump {
                before,
                condition,
                target,
            } => {
                before.iter().for_each(|text| line!("    {text}"));
                line!("    @{condition} bra {target};");
            }
            Node::Middle {
                id,
                condition,
                passes,
                first,
                second,
            } => {
                line!("    mov.b32 %c{id}, 0;");
                line!("    @{condition} bra M{id}_middle;");
                line!("M{id}_top:");
                print(first, into);
                let _ = writeln!(into, "M{id}_middle:");
                print(second, into);
                let _ = writeln!(into, "    add.u32 %c{id}, %c{id}, 1;");
                let _ = writeln!(into, "    setp.lt.u32 %l{id}, %c{id}, {passes};");
                let _ = writeln!(into, "    @%l{id} bra M{id}_top;");
            }
            Node::Switch { id, index, cases } => {
                let count = cases.len();
                line!("    rem.u32 %n{id}, {index}, {count};");
                let labels: Vec<String> = (0..count).map(|case| format!("S{id}_{case}")).collect();
                line!("S{id}: .branchtargets {};", labels.join(", "));
                line!("    brx.idx %n{id}, S{id};");
                for (case, (body, on)) in cases.iter().enumerate() {
                    let _ = writeln!(into, "S{id}_{case}:");
                    print(body, into);
                    if !on {
                        let _ = writeln!(into, "    bra S{id}_end;");
                    }
                }
                let _ = writeln!(into, "S{id}_end:");
            }
        }
    }
}

/// Whether the nodes name a register.
pub fn name(nodes: &[Node], register: &str) -> bool {
    let (mut text, mut used) = (String::new(), BTreeSet::new());
    print(nodes, &mut text);
    names(&text, &mut used);
    used.contains(register)
}

pub fn negated(condition: &str) -> String {
    match condition.strip_prefix('!') {
        Some(plain) => plain.to_string(),
        None => format!("!{condition}"),
    }
}

/// Instructions of the kernel's body and functions, without what loads its registers.
pub fn instructions(text: &str) -> usize {
    text.split("BODY:")
        .skip(1)
        .flat_map(|part| part.split("\n}").next().unwrap_or_default().lines())
        .filter(|line| line.trim_end().ends_with(';') && !line.contains(".branchtargets"))
        .count()
}
