//! State spaces (PTX ISA, State Spaces).

/// State spaces (PTX ISA, State Spaces). `Generic` is the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Space {
    Generic, Reg, Sreg, Const, Global, Local, Param, ParamEntry, ParamFunc, Shared, SharedCta, SharedCluster, Tex, Surf,
}

impl Space {
    /// As written behind a dot; nothing for the generic space.
    pub fn word(self) -> &'static str {
        match self {
            Space::Generic => "",
            Space::Reg => "reg",
            Space::Sreg => "sreg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::ParamEntry => "param::entry",
            Space::ParamFunc => "param::func",
            Space::Shared => "shared",
            Space::SharedCta => "shared::cta",
            Space::SharedCluster => "shared::cluster",
            Space::Tex => "tex",
            Space::Surf => "surf",
        }
    }

    /// The space that is written `.word`.
    pub fn from_word(word: &str) -> Option<Space> {
        Some(match word {
            "reg" => Space::Reg,
            "sreg" => Space::Sreg,
            "const" => Space::Const,
            "global" => Space::Global,
            "local" => Space::Local,
            "param" => Space::Param,
            "param::entry" => Space::ParamEntry,
            "param::func" => Space::ParamFunc,
            "shared" => Space::Shared,
            "shared::cta" => Space::SharedCta,
            "shared::cluster" => Space::SharedCluster,
            "tex" => Space::Tex,
            "surf" => Space::Surf,
            _ => return None,
        })
    }
}
