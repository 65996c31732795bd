//! Reads the table of entry points (`src/api/entry_points/*.txt`).
//!
//! `build.rs` generates code from what is read here; tests hold it against NVIDIA's header where that is installed.

use std::fmt;

/// One line: one exported symbol (and its per-thread twin).
#[derive(Debug, Clone)]
pub struct EntryPoint {
    /// The file it stands in, which is the chapter of the manual.
    pub chapter: String,
    /// The CUDA version that introduced this symbol: what `cuGetProcAddress` compares with.
    pub since: u32,
    /// The exported symbol, with its `_v2` … suffix.
    pub symbol: String,
    /// The variant in which stream 0 means the per-thread default stream.
    pub twin: Option<Twin>,
    /// What must hold before the body runs; `None` when there is no body.
    pub state: Option<State>,
    /// Names and Rust types.
    pub arguments: Vec<(String, String)>,
    /// Path of the body below `crate::api`; `None`: not implemented, so neither exported nor found.
    pub implementation: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Twin {
    /// `ptds` (functions without a stream argument) or `ptsz` (with one).
    pub suffix: String,
    pub since: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Answers before `cuInit`, in a forked child, after an error.
    Any,
    /// Needs `cuInit`.
    Initialised,
    /// Needs a current context without a sticky error, which becomes the first argument of the body.
    Context,
}

#[derive(Debug)]
pub struct Problem {
    pub chapter: String,
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "src/api/entry_points/{}.txt:{}: {}",
            self.chapter, self.line, self.what
        )
    }
}

impl EntryPoint {
    /// The name by which programs ask: the symbol without its version suffix.
    pub fn name(&self) -> &str {
        match self.symbol.rsplit_once("_v") {
            Some((name, version)) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => &self.symbol,
        }
    }

    /// Answers `CUDA_ERROR_NOT_SUPPORTED`, whatever it is given.
    pub fn is_refused(&self) -> bool {
        let body = self.implementation.as_deref();
        body.is_some_and(|body| body.starts_with("unsupported::"))
    }

    /// The symbol of the per-thread variant.
    pub fn twin_symbol(&self) -> Option<String> {
        self.twin
            .as_ref()
            .map(|twin| format!("{}_{}", self.symbol, twin.suffix))
    }
}

/// Reads one chapter.
pub fn parse(chapter: &str, text: &str) -> Result<Vec<EntryPoint>, Problem> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            parse_line(chapter, line).map_err(|what| Problem {
                chapter: chapter.into(),
                line: index + 1,
                what,
            })
        })
        .collect()
}

fn parse_line(chapter: &str, line: &str) -> Result<EntryPoint, String> {
    let open = line.find('(').ok_or("no argument list")?;
    let close = line.rfind(')').ok_or("the argument list has no end")?;
    let [since, symbol, twin, state] = line[..open]
        .split_whitespace()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "expected: version, symbol, twin, state, (arguments), implementation".to_string())?;
    let version = |text: &str| text.parse().map_err(|_| format!("`{text}` is no version number"));
    let twin = match twin.split_once('@') {
        Some((suffix @ ("ptds" | "ptsz"), since)) => Some(Twin {
            suffix: suffix.into(),
            since: version(since)?,
        }),
        None if twin == "-" => None,
        _ => return Err(format!("`{twin}`: expected -, ptds@VERSION or ptsz@VERSION")),
    };
    let state = match state {
        "any" => Some(State::Any),
        "init" => Some(State::Initialised),
        "ctx" => Some(State::Context),
        "-" => None,
        _ => return Err(format!("`{state}`: expected any, init, ctx or -")),
    };
    let arguments = line[open + 1..close]
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
        .map(|argument| match argument.split_once(':') {
            Some((name, of)) => Ok((name.trim().to_string(), of.trim().to_string())),
            None => Err(format!("`{argument}`: expected name: type")),
        })
        .collect::<Result<_, _>>()?;
    let implementation = match line[close + 1..].trim() {
        "-" => None,
        path if path.contains("::") => Some(path.to_string()),
        other => return Err(format!("`{other}`: expected module::function or -")),
    };
    if state.is_some() != implementation.is_some() {
        return Err("a state and an implementation belong together".into());
    }
    Ok(EntryPoint {
        chapter: chapter.into(),
        since: version(since)?,
        symbol: symbol.into(),
        twin,
        state,
        arguments,
        implementation,
    })
}
