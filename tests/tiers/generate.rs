//! A kernel from a seed: its flow, its functions, what it begins with and what it leaves.

use super::instructions::{DOUBLES, Draw, F16, FLOATS, HALVES, LONGS, PREDICATES, WORDS};
use super::random::Random;
use super::tree::{Function, Kernel, Masks, Node, unit};

/// What each register of the pools begins with: slots of eight bytes in the thread's input, by kind of number.
pub const SLOTS: [(char, usize); 7] = [
    ('r', WORDS),
    ('h', HALVES),
    ('d', DOUBLES),
    ('f', FLOATS),
    ('e', LONGS),
    ('x', F16),
    ('p', PREDICATES),
];
/// Slots that each thread has, in the input and the output.
pub const STRIDE: usize = 64;

/// What is known of the threads that come to a place.
#[derive(Clone)]
struct Scope {
    /// The register with the lanes of the warp that are here, if known.
    mask: Option<String>,
    /// The whole block is here.
    uniform: bool,
    /// Loops that a lane may leave or go on with, and those that all leave together.
    jumps: Vec<usize>,
    together: Vec<usize>,
    loops: usize,
    depth: usize,
    exits: bool,
}

const NOWHERE: Scope = Scope {
    mask: None,
    uniform: false,
    jumps: Vec::new(),
    together: Vec::new(),
    loops: 0,
    depth: 0,
    exits: false,
};

struct Writer {
    draw: Draw,
    ids: usize,
    masks: usize,
    /// The functions that may be called are those before this.
    callable: usize,
    function: bool,
    /// Sums in shared memory are in use: the kernel's end is reached by all.
    sums: bool,
    /// A name for the variables of a call.
    calls: usize,
}

pub fn kernel(seed: u64) -> Kernel {
    let mut draw = Draw {
        random: Random::new(seed),
        readable: Vec::new(),
    };
    let block = draw.random.pick(&[
        [32, 1, 1],
        [64, 1, 1],
        [128, 1, 1],
        [256, 1, 1],
        [1, 1, 1],
        [7, 1, 1],
        [33, 1, 1],
        [48, 1, 1],
        [100, 1, 1],
        [160, 1, 1],
        [16, 16, 1],
        [8, 4, 1],
        [33, 3, 1],
        [5, 5, 1],
        [4, 4, 4],
        [20, 2, 1],
        [128, 1, 1],
        [64, 2, 1],
    ]);
    let grid = draw.random.pick(&[[1, 1], [2, 1], [3, 1], [2, 2], [1, 2]]);
    let count = if draw.random.chance(35) {
        1 + draw.random.below(3)
    } else {
        0
    };
    let mut writer = Writer {
        draw,
        ids: 0,
        masks: 0,
        callable: 0,
        function: true,
        sums: false,
        calls: 0,
    };
    let mut functions = Vec::new();
    for number in 0..count {
        functions.push(writer.device_function(number));
        writer.callable += 1;
    }
    writer.function = false;
    writer.ids = 0;
    writer.masks = 0;
    writer.draw.readable = ["%gt", "%lt", "%lane"].map(String::from).to_vec();
    let exits = writer.draw.random.chance(20);
    writer.sums = !exits && writer.draw.random.chance(40);
    let budget = 10 + writer.draw.random.below(70);
    let everyone = Scope {
        mask: Some("%full".into()),
        uniform: true,
        ..NOWHERE
    };
    let mut body = writer.body(&everyone, if exits { budget / 2 } else { budget });
    if exits {
        body.extend(writer.body(&Scope { exits: true, ..NOWHERE }, budget / 2));
    }
    let main = Function {
        name: "k".into(),
        head: main_head(),
        body,
        tail: vec!["ret;".into()],
        signature: ".visible .entry k(.param .u64 p_in, .param .u64 p_out, .param .u64 p_table, .param .u64 p_own, \
                    .param .u64 p_rows, .param .u64 p_sums, .param .align 16 .b8 p_values[64])"
            .into(),
        ids: writer.ids.max(writer.masks),
    };
    Kernel {
        seed,
        block,
        grid,
        functions,
        main,
        dump: dump(writer.sums),
    }
}

fn line(sets: &[&str], text: &str) -> (Vec<String>, String) {
    (sets.iter().map(|s| s.to_string()).collect(), text.to_string())
}

fn main_head() -> Vec<(Vec<String>, String)> {
    let mut head = vec![
        line(
            &["%nt"],
            "mov.u32 %t0, %ntid.x; mov.u32 %t1, %ntid.y; mul.lo.u32 %t0, %t0, %t1; mov.u32 %t1, %ntid.z; mul.lo.u32 %nt, %t0, %t1;",
        ),
        line(
            &["%lt"],
            "mov.u32 %t0, %tid.z; mov.u32 %t1, %ntid.y; mov.u32 %t2, %tid.y; mad.lo.u32 %t0, %t0, %t1, %t2; \
                        mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %lt, %t0, %t1, %t2;",
        ),
        line(
            &["%gt"],
            "mov.u32 %t0, %ctaid.y; mov.u32 %t1, %nctaid.x; mov.u32 %t2, %ctaid.x; mad.lo.u32 %t0, %t0, %t1, %t2; \
                        mad.lo.u32 %gt, %t0, %nt, %lt;",
        ),
        line(
            &["%ntg"],
            "mov.u32 %t0, %nctaid.x; mov.u32 %t1, %nctaid.y; mul.lo.u32 %t0, %t0, %t1; mul.lo.u32 %ntg, %t0, %nt;",
        ),
        line(&["%lane"], "and.b32 %lane, %lt, 31;"),
        line(
            &["%full"],
            "and.b32 %t0, %lt, -32; sub.u32 %t0, %nt, %t0; min.u32 %t0, %t0, 32; sub.u32 %t0, 32, %t0; \
                          shr.u32 %full, -1, %t0;",
        ),
        line(
            &["%Pin"],
            "ld.param.u64 %Pin, [p_in]; mad.wide.u32 %Pin, %gt, 512, %Pin;",
        ),
        line(
            &["%Pout"],
            "ld.param.u64 %Pout, [p_out]; mad.wide.u32 %Pout, %gt, 512, %Pout;",
        ),
        line(&["%Ptab"], "ld.param.u64 %Ptab, [p_table];"),
        line(
            &["%Pown"],
            "ld.param.u64 %Pown, [p_own]; mad.wide.u32 %Pown, %gt, 128, %Pown;",
        ),
        line(
            &["%Psoa"],
            "ld.param.u64 %Psoa, [p_rows]; mad.wide.u32 %Psoa, %gt, 8, %Psoa;",
        ),
        line(&["%Pacc"], "ld.param.u64 %Pacc, [p_sums];"),
        line(&["%Pctab"], "mov.u64 %Pctab, ctab;"),
        line(&["%Psexc"], "mov.u64 %Psexc, sexc;"),
        line(
            &["%Psown"],
            "mov.u64 %Psown, sown; mad.wide.u32 %Psown, %lt, 16, %Psown; st.shared.v4.b32 [%Psown], {%gt, %lt, 3, %gt};",
        ),
        line(
            &["%Psacc"],
            "mov.u64 %Psacc, sacc; st.shared.v4.b32 [%Psacc], {0, 0, 0, 0}; st.shared.v4.b32 [%Psacc+16], {0, 0, 0, 0}; \
                           st.shared.v4.b32 [%Psacc+32], {0, 0, 0, 0}; st.shared.v4.b32 [%Psacc+48], {0, 0, 0, 0}; bar.sync 0;",
        ),
        line(&["%Ploc"], LOCAL),
    ];
    let mut slot = 0;
    for (letter, count) in SLOTS {
        for i in 0..count {
            let (name, at) = (format!("%{letter}{i}"), 8 * slot);
            let text = match letter {
                'r' => format!("ld.global.b32 {name}, [%Pin+{at}];"),
                'h' | 'x' => format!("ld.global.b16 {name}, [%Pin+{at}];"),
                'd' => format!("ld.global.b64 {name}, [%Pin+{at}];"),
                'f' => format!("ld.global.f32 {name}, [%Pin+{at}];"),
                'e' => format!("ld.global.f64 {name}, [%Pin+{at}];"),
                _ => format!("ld.global.b32 %t0, [%Pin+{at}]; setp.ge.s32 {name}, %t0, 0;"),
            };
            head.push((vec![name], text));
            slot += 1;
        }
    }
    head
}

const LOCAL: &str = "mov.u64 %Ploc, loc; st.local.v4.b32 [%Ploc], {1, 2, 3, 4}; st.local.v4.b32 [%Ploc+16], {5, -6, 7, -8}; \
                     st.local.v4.b32 [%Ploc+32], {0x3f800000, 0x40490fdb, 11, 12}; st.local.v4.b32 [%Ploc+48], {13, 14, 15, 16};";

fn dump(sums: bool) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut slot = 0;
    for (letter, count) in SLOTS {
        for i in 0..count {
            let (name, at) = (format!("%{letter}{i}"), 8 * slot);
            slot += 1;
            nodes.push(match letter {
                'r' => unit(format!("st.global.b32 [%Pout+{at}], {name};")),
                'h' | 'x' => unit(format!("st.global.b16 [%Pout+{at}], {name};")),
                'd' => unit(format!("st.global.b64 [%Pout+{at}], {name};")),
                'f' => unit(format!("st.global.f32 [%Pout+{at}], {name};")),
                'e' => unit(format!("st.global.f64 [%Pout+{at}], {name};")),
                _ => Node::Unit {
                    lines: vec![
                        format!("selp.b32 %t0, 1, 2, {name};"),
                        format!("st.global.b32 [%Pout+{at}], %t0;"),
                    ],
                    guard: None,
                },
            });
        }
    }
    if sums {
        nodes.push(Node::Unit {
            lines: vec![
                "bar.sync 0;".into(),
                "and.b32 %t0, %lt, 15;".into(),
                "mad.wide.u32 %w0, %t0, 4, %Psacc;".into(),
                "ld.shared.b32 %t1, [%w0];".into(),
                format!("st.global.b32 [%Pout+{}], %t1;", 8 * slot),
            ],
            guard: None,
        });
    }
    nodes
}

impl Writer {
    fn id(&mut self) -> usize {
        self.ids += 1;
        self.ids - 1
    }

    fn mask(&mut self) -> usize {
        self.masks += 1;
        self.masks - 1
    }

    fn body(&mut self, scope: &Scope, mut budget: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        while budget > 0 {
            let flow = scope.depth < 4 && budget > 4 && self.draw.random.chance(16);
            if flow {
                let inside = 3 + self.draw.random.below(budget.min(30));
                budget = budget.saturating_sub(inside);
                nodes.push(self.flow(scope, inside));
                continue;
            }
            budget -= 1;
            let jump = !scope.jumps.is_empty() && self.draw.random.chance(10);
            let together = scope.uniform && !scope.together.is_empty() && self.draw.random.chance(8);
            nodes.push(match self.draw.random.below(100) {
                _ if jump => {
                    let target = self.draw.random.pick(&scope.jumps);
                    let to = self.draw.random.pick(&["next", "out", "out"]);
                    Node::Jump {
                        before: Vec::new(),
                        condition: self.draw.condition(),
                        target: format!("L{target}_{to}"),
                    }
                }
                _ if together => {
                    let (target, counter) = (
                        self.draw.random.pick(&scope.together),
                        self.draw.random.pick(&scope.together),
                    );
                    let to = self.draw.random.pick(&["next", "out"]);
                    let at = self.draw.random.below(4);
                    Node::Jump {
                        before: vec![format!("setp.eq.u32 %q1, %c{counter}, {at};")],
                        condition: "%q1".into(),
                        target: format!("L{target}_{to}"),
                    }
                }
                0..=1 if scope.exits => self.exit(),
                40..=44 if scope.exits && scope.depth > 0 => self.exit(),
                2..=16 => self.draw.memory(self.function),
                17..=19 if self.sums && !self.function => self.draw.shared_sum(),
                20..=25 if scope.uniform => self.draw.block(),
                26..=33 if scope.mask.is_some() => {
                    let mask = scope.mask.clone().unwrap_or_default();
                    self.draw.lanes(&mask)
                }
                34..=38 if self.callable > 0 && scope.loops < 2 => {
                    let to = self.draw.random.below(self.callable);
                    let depth = self.draw.random.below(4).to_string();
                    self.call(to, &depth)
                }
                39 if self.function && scope.depth > 0 => self.early_return(),
                45..=46 => {
                    nodes.extend(self.thread_bits(scope));
                    continue;
                }
                _ => self.draw.compute(),
            });
        }
        nodes
    }

    fn flow(&mut self, scope: &Scope, budget: usize) -> Node {
        let inner = Scope {
            depth: scope.depth + 1,
            exits: scope.exits,
            ..scope.clone()
        };
        let lost = Scope {
            mask: None,
            uniform: false,
            together: Vec::new(),
            ..inner.clone()
        };
        match self.draw.random.below(10) {
            0..=3 => self.branch(scope, &inner, &lost, budget),
            4..=7 if scope.loops < 3 && self.draw.random.chance(25) => self.row(),
            4..=7 if scope.loops < 3 => self.repeat(scope, &inner, &lost, budget),
            8 if scope.loops < 2 => {
                let id = self.id();
                let inside = Scope {
                    loops: lost.loops + 1,
                    ..lost
                };
                self.draw.readable.push(format!("%c{id}"));
                let first = self.body(&inside, budget / 2);
                let second = self.body(&inside, budget / 2 + 1);
                self.draw.readable.pop();
                let condition = self.draw.condition();
                Node::Middle {
                    id,
                    condition,
                    passes: 1 + self.draw.random.below(4),
                    first,
                    second,
                }
            }
            _ => {
                let id = self.id();
                let index = self.draw.source();
                let count = 2 + self.draw.random.below(3);
                let cases = (0..count)
                    .map(|case| {
                        let on = case + 1 == count || self.draw.random.chance(20);
                        (self.body(&lost, budget.div_ceil(count)), on)
                    })
                    .collect();
                Node::Switch { id, index, cases }
            }
        }
    }

    fn branch(&mut self, scope: &Scope, inner: &Scope, lost: &Scope, budget: usize) -> Node {
        let id = self.id();
        let both = self.draw.random.chance(50);
        let (mut condition, mut before, mut mask) = (self.draw.condition(), Vec::new(), None);
        let (then, other) = if scope.uniform && self.draw.random.chance(35) {
            // All threads of a block decide alike.
            condition = self.draw.random.pick(&["%q0", "!%q0"]).to_string();
            before = vec![
                "mov.u32 %t0, %ctaid.x;".into(),
                "and.b32 %t0, %t0, 1;".into(),
                "setp.ne.u32 %q0, %t0, 0;".into(),
            ];
            (inner.clone(), inner.clone())
        } else if let Some(all) = scope.mask.clone().filter(|_| self.draw.random.chance(60)) {
            let (then, other) = (self.mask(), self.mask());
            mask = Some(Masks { then, other, all });
            let known = |mask: usize| Scope {
                mask: Some(format!("%m{mask}")),
                ..lost.clone()
            };
            (known(then), known(other))
        } else {
            (lost.clone(), lost.clone())
        };
        let first = self.body(&then, if both { budget.div_ceil(2) } else { budget });
        let second = if both {
            self.body(&other, budget / 2 + 1)
        } else {
            Vec::new()
        };
        Node::If {
            id,
            before,
            condition,
            mask,
            then: first,
            other: second,
        }
    }

    fn repeat(&mut self, scope: &Scope, inner: &Scope, lost: &Scope, budget: usize) -> Node {
        let id = self.id();
        let bottom = self.draw.random.chance(50);
        let most = [7, 5, 3][scope.loops];
        let constant = format!("mov.b32 %n{id}, {};", 1 + self.draw.random.below(most));
        let mut mask = None;
        let (mut inside, before) = if scope.uniform && self.draw.random.chance(50) {
            let mut inside = inner.clone();
            inside.jumps.clear();
            inside.together.push(id);
            let before = match self.draw.random.chance(70) {
                true => vec![constant],
                false => vec![
                    format!("mov.u32 %n{id}, %ctaid.x;"),
                    format!("min.u32 %n{id}, %n{id}, {most};"),
                ],
            };
            (inside, before)
        } else {
            let source = self.draw.source();
            let before = match self.draw.random.below(4) {
                0 => vec![constant],
                1 => vec![
                    format!("popc.b32 %n{id}, {source};"),
                    format!("min.u32 %n{id}, %n{id}, {most};"),
                ],
                _ => vec![format!("and.b32 %n{id}, {source}, {most};")],
            };
            match scope.mask.clone().filter(|_| self.draw.random.chance(50)) {
                Some(all) => {
                    let own = self.mask();
                    mask = Some((own, all));
                    (
                        Scope {
                            mask: Some(format!("%m{own}")),
                            ..lost.clone()
                        },
                        before,
                    )
                }
                None => {
                    let mut inside = lost.clone();
                    inside.jumps.push(id);
                    (inside, before)
                }
            }
        };
        inside.loops += 1;
        self.draw.readable.push(format!("%c{id}"));
        let mut body = self.body(&inside, budget);
        self.draw.readable.pop();
        let mut always = vec![format!("mov.b32 %c{id}, 0;")];
        if self.draw.random.chance(35) {
            // A pointer that goes through the table, from where neighbours begin beside each other or far apart.
            let (start, step) = (self.draw.source(), self.draw.random.pick(&[4, 4, 8, 16, 64, 256]));
            let start = self.draw.random.pick(&["%t0", "%lane", start.as_str()]).to_string();
            let start = if self.function && start == "%lane" {
                "%t0".to_string()
            } else {
                start
            };
            always.push(format!(
                "mov.u32 %t0, {};",
                self.draw.random.pick(&["%tid.x", "%ctaid.x", "3"])
            ));
            always.push(format!("and.b32 %t0, {start}, 127;"));
            always.push(format!("mad.wide.u32 %W{id}, %t0, 16, %Ptab;"));
            let at = self.draw.random.below(body.len() + 1);
            let to = (self.draw.float(), self.draw.word());
            let load = match self.draw.random.below(3) {
                0 => format!("ld.global.f32 {}, [%W{id}];", to.0),
                1 => format!("ld.global.nc.b32 {}, [%W{id}+4];", to.1),
                _ => format!("ld.global.v2.f32 {{%f0, %f1}}, [%W{id}+8];"),
            };
            let align = if step < 8 { 8 } else { step };
            let step = if load.contains(".v2") { align } else { step };
            let lines = vec![load, format!("add.u64 %W{id}, %W{id}, {step};")];
            body.insert(at, Node::Unit { lines, guard: None });
        }
        Node::Loop {
            id,
            before,
            always,
            bottom,
            mask,
            once: false,
            body,
        }
    }

    /// Bits of a thread's number, of a multiple of it, and of what it was added to on a way that few blocks go.
    fn thread_bits(&mut self, scope: &Scope) -> Vec<Node> {
        let random = &mut self.draw.random;
        let mut lines = vec![format!(
            "mov.u32 %t8, {};",
            random.pick(&["%tid.x", "%tid.x", "%laneid"])
        )];
        if random.chance(60) {
            lines.push(format!("shl.b32 %t8, %t8, {};", random.below(5)));
        }
        if random.chance(30) {
            let more = random.pick(&[1, 16, 32, 64, 128, 0xffff_ffe0_u32]);
            lines.push(format!("add.u32 %t8, %t8, {more};"));
        }
        let mut nodes = vec![Node::Unit { lines, guard: None }];
        if random.chance(40) {
            let more: u32 = random.pick(&[1, 3, 8, 32]);
            let (not, block) = (random.pick(&["", "!"]), random.below(2));
            nodes.push(Node::If {
                id: self.id(),
                before: vec![
                    "mov.u32 %t9, %ctaid.x;".into(),
                    format!("setp.eq.u32 %q1, %t9, {block};"),
                ],
                condition: format!("{not}%q1"),
                mask: None,
                then: vec![unit(format!("add.u32 %t8, %t8, {more};"))],
                other: Vec::new(),
            });
            if scope.uniform {
                nodes.push(unit("bar.sync 0;"));
            }
        }
        let random = &mut self.draw.random;
        const MASKS: [u32; 16] = [
            7,
            15,
            31,
            63,
            127,
            12,
            48,
            96,
            0x70,
            0x3fff_ffc0,
            0xffff_fff8,
            0xffff_fff0,
            0xffff_ffe0,
            0xffff_ffc0,
            0xffff_ff80,
            0xffff_ff00,
        ];
        let mask = random.pick(&MASKS);
        let mut lines = match random.below(4) {
            0 => vec![format!("shr.u32 %t9, %t8, {};", random.below(10))],
            1 => vec![format!("shr.s32 %t9, %t8, {};", random.below(10))],
            2 => vec![format!("and.b32 %t9, %t8, {mask};")],
            _ => vec![
                format!("and.b32 %t9, %t8, {mask};"),
                format!("and.b32 %t10, %t8, {};", !mask & random.pick(&MASKS)),
                "or.b32 %t9, %t9, %t10;".into(),
            ],
        };
        let word = self.draw.word();
        lines.push(match self.draw.random.chance(50) {
            true => format!("mov.b32 {word}, %t9;"),
            false => format!("mad.lo.u32 {word}, %t9, 3, {};", self.draw.source()),
        });
        nodes.push(Node::Unit { lines, guard: None });
        nodes
    }

    /// A loop that stores nothing, in which each lane goes through a row of its own, and perhaps leaves it early.
    fn row(&mut self) -> Node {
        let id = self.id();
        let (source, start, most) = (
            self.draw.source(),
            self.draw.source(),
            self.draw.random.pick(&[3, 7, 15, 31]),
        );
        let before = vec![format!("and.b32 %n{id}, {source}, {most};")];
        let always = vec![
            format!("mov.b32 %c{id}, 0;"),
            format!("and.b32 %t0, {start}, 127;"),
            format!("mad.wide.u32 %W{id}, %t0, 16, %Ptab;"),
        ];
        self.draw.readable.push(format!("%c{id}"));
        let mut body = self.lookups(id);
        if self.draw.random.chance(40) {
            let (a, b) = (self.draw.source(), self.draw.source());
            let condition = self.draw.random.pick(&["%q1", "!%q1"]).to_string();
            let setp = format!("setp.{}.u32 %q1, {a}, {b};", self.draw.random.pick(&["lt", "ge", "ne"]));
            body.push(match self.draw.random.chance(40) {
                true => Node::Jump {
                    before: vec![setp],
                    condition,
                    target: format!("L{id}_{}", self.draw.random.pick(&["next", "out"])),
                },
                false => Node::If {
                    id: self.id(),
                    before: vec![setp],
                    condition,
                    mask: None,
                    then: self.lookups(id),
                    other: Vec::new(),
                },
            });
            body.extend(self.lookups(id));
        }
        self.draw.readable.pop();
        let step = self.draw.random.pick(&[8, 8, 16, 24]);
        body.push(unit(format!("add.u64 %W{id}, %W{id}, {step};")));
        Node::Loop {
            id,
            before,
            always,
            bottom: self.draw.random.chance(70),
            mask: None,
            once: false,
            body,
        }
    }

    /// Loads from the table, and operations on what was found.
    fn lookups(&mut self, row: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..1 + self.draw.random.below(3) {
            let (to, float, index) = (self.draw.word(), self.draw.float(), self.draw.source());
            nodes.extend(match self.draw.random.below(7) {
                0 => vec![unit(format!("ld.global.b32 {to}, [%W{row}];"))],
                1 => vec![unit(format!("ld.global.nc.f32 {float}, [%W{row}+4];"))],
                2 => vec![unit(format!("ld.global.v2.b32 {{{to}, %t2}}, [%W{row}+8];"))],
                3 => vec![
                    unit(format!("and.b32 %t1, {index}, 255;")),
                    unit("mul.wide.u32 %w0, %t1, 4;"),
                    unit("add.u64 %w1, %Ptab, %w0;"),
                    unit(format!("ld.global.b32 {to}, [%w1+16];")),
                ],
                _ => Vec::new(),
            });
            // What is known in no other lane, or not by all operations, is for vectors.
            let compute = self.draw.compute();
            if let Node::Unit { lines, guard: None } = &compute
                && !lines.iter().any(|line| line.contains("%p"))
            {
                nodes.push(compute);
            }
        }
        nodes
    }

    /// Some lanes leave the kernel, after leaving something behind.
    fn exit(&mut self) -> Node {
        let (p, value) = (self.draw.condition(), self.draw.word());
        let how = self.draw.random.pick(&["exit", "ret"]);
        let lines = vec![
            format!("@{p} st.global.b32 [%Pout+{}], {value};", 8 * (STRIDE - 1)),
            format!("@{p} {how};"),
        ];
        Node::Unit { lines, guard: None }
    }

    fn results(&mut self) -> [String; 3] {
        [
            format!("st.param.b32 [result], {};", self.draw.word()),
            format!("st.param.f32 [result+4], {};", self.draw.float()),
            format!("st.param.b64 [result+8], {};", self.draw.double()),
        ]
    }

    fn early_return(&mut self) -> Node {
        let p = self.draw.condition();
        let mut lines: Vec<String> = self.results().iter().map(|line| format!("@{p} {line}")).collect();
        lines.push(format!("@{p} ret;"));
        Node::Unit { lines, guard: None }
    }

    fn call(&mut self, to: usize, depth: &str) -> Node {
        let draw = &mut self.draw;
        self.calls += 1;
        let arguments = [
            ("b32", depth.to_string()),
            ("b64", "%Ptab".into()),
            ("b64", "%Pown".into()),
            ("b64", "%Pacc".into()),
            ("b32", draw.source()),
            ("b64", draw.double()),
            ("f32", draw.float()),
            ("f64", draw.long()),
        ];
        let mut lines = vec!["{".to_string()];
        for (i, (kind, value)) in arguments.iter().enumerate() {
            lines.push(format!(".param .{kind} a{i};"));
            lines.push(format!("st.param.{kind} [a{i}], {value};"));
        }
        lines.push(".param .align 8 .b8 back[16];".into());
        let passed = "(a0, a1, a2, a3, a4, a5, a6, a7)";
        if to < self.callable && draw.random.chance(40) {
            // Through an address: lanes may have different ones.
            let (number, other) = (self.calls, draw.random.below(self.callable));
            let kinds: Vec<String> = arguments.iter().map(|(kind, _)| format!(".param .{kind} _")).collect();
            lines.push(format!("mov.u64 %w0, fun{to};"));
            lines.push(format!("mov.u64 %w1, fun{other};"));
            lines.push(format!("selp.b64 %w0, %w0, %w1, {};", draw.condition()));
            lines.push(format!(
                "like{number}: .callprototype (.param .align 8 .b8 _[16]) _ ({});",
                kinds.join(", ")
            ));
            lines.push(format!("call (back), %w0, {passed}, like{number};"));
        } else {
            lines.push(format!("call (back), fun{to}, {passed};"));
        }
        lines.push(format!("ld.param.b32 {}, [back];", draw.word()));
        lines.push(format!("ld.param.f32 {}, [back+4];", draw.float()));
        lines.push(format!("ld.param.b64 {}, [back+8];", draw.double()));
        lines.push("}".into());
        Node::Unit { lines, guard: None }
    }

    fn device_function(&mut self, number: usize) -> Function {
        self.ids = 0;
        self.masks = 0;
        self.draw.readable = vec!["%depth".into()];
        let budget = 4 + self.draw.random.below(16);
        let scope = Scope {
            loops: 1,
            depth: 1,
            ..NOWHERE
        };
        let mut body = self.body(&scope, budget);
        if self.draw.random.chance(40) {
            // Calls itself, a known number of times.
            let id = self.id();
            let call = self.call(number, "%t6");
            body.push(Node::If {
                id,
                before: vec!["setp.gt.s32 %q0, %depth, 0;".into(), "sub.s32 %t6, %depth, 1;".into()],
                condition: "%q0".into(),
                mask: None,
                then: vec![call],
                other: Vec::new(),
            });
            body.extend(self.body(&Scope { loops: 2, ..scope }, 3));
        }
        let mut tail = self.results().to_vec();
        tail.push("ret;".into());
        let mut head = vec![
            line(&["%depth"], "ld.param.b32 %depth, [a_depth];"),
            line(&["%Ptab"], "ld.param.b64 %Ptab, [a_table];"),
            line(&["%Pown"], "ld.param.b64 %Pown, [a_own];"),
            line(&["%Pacc"], "ld.param.b64 %Pacc, [a_sums];"),
            line(&["%Pctab"], "mov.u64 %Pctab, ctab;"),
            line(&["%Ploc"], LOCAL),
        ];
        for (letter, count) in SLOTS {
            for i in 0..count {
                let name = format!("%{letter}{i}");
                let salt = 0x9e37_79b1u32.wrapping_mul(i as u32 + 1) >> (3 * i % 20);
                let text = match letter {
                    'r' => format!(
                        "ld.param.b32 {name}, [a_word]; add.u32 {name}, {name}, {};",
                        if i < 3 { i as u32 } else { salt }
                    ),
                    'h' => format!("ld.param.b32 %t0, [a_word]; shr.u32 %t0, %t0, {i}; cvt.u16.u32 {name}, %t0;"),
                    'd' => format!(
                        "ld.param.b64 {name}, [a_double]; add.u64 {name}, {name}, {};",
                        if i < 2 { i as u32 } else { salt }
                    ),
                    'f' => format!(
                        "ld.param.f32 {name}, [a_float]; add.f32 {name}, {name}, 0f{:08X};",
                        (i as f32).to_bits()
                    ),
                    'e' => format!(
                        "ld.param.f64 {name}, [a_long]; add.f64 {name}, {name}, 0d{:016X};",
                        (i as f64).to_bits()
                    ),
                    'x' => format!("ld.param.f32 %g0, [a_float]; cvt.rn.f16.f32 {name}, %g0;"),
                    _ => format!(
                        "ld.param.b32 %t0, [a_word]; shr.u32 %t0, %t0, {i}; and.b32 %t0, %t0, 1; setp.ne.u32 {name}, %t0, 0;"
                    ),
                };
                head.push((vec![name], text));
            }
        }
        let name = format!("fun{number}");
        let signature = format!(
            ".func (.param .align 8 .b8 result[16]) {name} (.param .b32 a_depth, .param .b64 a_table, .param .b64 a_own, \
             .param .b64 a_sums, .param .b32 a_word, .param .b64 a_double, .param .f32 a_float, .param .f64 a_long)"
        );
        Function {
            name,
            head,
            body,
            tail,
            signature,
            ids: self.ids.max(self.masks),
        }
    }
}
