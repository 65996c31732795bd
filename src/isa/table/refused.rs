//! Names that tables of instructions list and no assembler takes: known, so that a message can say what they are.

/// A name, whole or up to one of its dots, and why it is refused.
pub struct Refused {
    pub name: &'static str,
    pub why: &'static str,
}

const INTERNAL: &str = "is a name within NVIDIA's compiler, which its assembler takes from no text";
const UNOFFICIAL: &str = "is in NVIDIA's table of instructions, but its assembler takes no form of it";
const NEVER: &str = "was named by PTX 1.0, never implemented, and dropped by PTX 1.1";

const fn refused(name: &'static str, why: &'static str) -> Refused {
    Refused { name, why }
}

#[rustfmt::skip]
pub static NAMES: &[Refused] = &[
    refused("_checkfp", INTERNAL), refused("_createpolicy", INTERNAL), refused("_jcall", INTERNAL),
    refused("_ldldu", INTERNAL), refused("_ldsm", INTERNAL), refused("_match", INTERNAL), refused("_mma", INTERNAL),
    refused("_movm", INTERNAL), refused("_sulea", INTERNAL), refused("_tcgen05", INTERNAL),
    refused("_warpgroup", INTERNAL),
    refused("andn", UNOFFICIAL), refused("elect.one", UNOFFICIAL), refused("elect.pred", UNOFFICIAL),
    refused("getnextworkid", UNOFFICIAL), refused("gettid", UNOFFICIAL), refused("preexit", UNOFFICIAL),
    refused("setmaxreg", "is in NVIDIA's table of instructions, but its assembler takes `setmaxnreg` only"),
    refused("setsmemsize", UNOFFICIAL), refused("tcgen05.alloc.ld", UNOFFICIAL), refused("warpsync", UNOFFICIAL),
    refused("yield", UNOFFICIAL),
    refused("cross", NEVER), refused("dot", NEVER), refused("extract", NEVER), refused("insert", NEVER),
    refused("mag", NEVER), refused("nop", NEVER), refused("vred", NEVER),
    refused("frc", "was deprecated by PTX 1.1 and is in no later version"),
    refused("sin.f64", NEVER), refused("cos.f64", NEVER), refused("lg2.f64", NEVER), refused("ex2.f64", NEVER),
];

/// Why an opcode is refused, if its name is one of these.
pub fn why(opcode: &str) -> Option<&'static Refused> {
    NAMES.iter().find(|refused| {
        opcode
            .strip_prefix(refused.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}
