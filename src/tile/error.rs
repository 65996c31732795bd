//! Why bytecode is not run.

/// Why there is no module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not as the reference says.
    Malformed { offset: usize, why: String },
    /// It may be; this is not carried out here.
    Unsupported { what: String },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Malformed { offset, why } => write!(f, "Tile IR, byte {offset}: {why}"),
            Error::Unsupported { what } => write!(f, "Tile IR: {what} is not supported"),
        }
    }
}
