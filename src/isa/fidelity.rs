//! How far an instruction's results are those of hardware. `docs/fidelity.md` says it for people, and where each claim comes
//! from.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fidelity {
    /// To the bit: the manual leaves nothing open.
    Exact,
    /// To the bit by what has been measured of hardware, by others or by us.
    AsMeasured,
    /// Within the manual's bounds; hardware's last bits are not known.
    WithinBounds,
    /// What a program must not count on: clocks, counters, opaque values.
    Own,
}

impl Fidelity {
    pub const ALL: [Fidelity; 4] = [
        Fidelity::Exact,
        Fidelity::AsMeasured,
        Fidelity::WithinBounds,
        Fidelity::Own,
    ];

    /// As reports and `docs/fidelity.md` call it.
    pub fn words(self) -> &'static str {
        match self {
            Fidelity::Exact => "exact",
            Fidelity::AsMeasured => "exact as measured",
            Fidelity::WithinBounds => "within the manual's bounds",
            Fidelity::Own => "this machine's own",
        }
    }
}
