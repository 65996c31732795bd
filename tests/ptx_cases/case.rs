//! The header comment of a case: launch, parameters, expectations.

use crate::value::{Element, Type};

pub struct Case {
    pub launches: Vec<Launch>,
    pub parameters: Vec<Parameter>,
    /// Images that references of the module are bound to; those of parameters stand there.
    pub images: Vec<Parameter>,
    pub expect: Expect,
    /// What it expects is one of several outcomes: that without a seed.
    pub races: bool,
}

#[derive(Clone)]
pub struct Launch {
    pub entry: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// `CU_LIMIT_STACK_SIZE`.
    pub stack: u64,
    /// Milliseconds that it may run, if it is meant to run longer.
    pub timeout: Option<u64>,
}

/// A parameter of the kernel: a buffer's address, or a value.
pub struct Parameter {
    pub name: String,
    pub ty: Type,
    pub role: Role,
    /// What the buffer holds before, or the value.
    pub before: Vec<u128>,
    /// What it must hold afterwards; empty = not looked at.
    pub after: Vec<Element>,
    /// Values may come in any order.
    pub sorted: bool,
    pub within: Within,
    /// A buffer that is gone when the kernel runs.
    pub freed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Buffer,
    Value,
    /// The handle of a texture, or of a surface.
    Image(Image),
    /// The number of a logical endpoint, whose memory holds the elements.
    Endpoint(Endpoint),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// A multicast endpoint of two devices, each with the same before and afterwards.
    pub team: bool,
    pub counted: bool,
}

/// Texels `channels` values each, row by row, slice by slice; of several levels one after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Image {
    pub surface: bool,
    pub channels: u32,
    pub size: [u32; 3],
    /// 0: not layered.
    pub layers: u32,
    pub levels: u32,
    pub cube: bool,
    pub linear: bool,
    pub blend_levels: bool,
    pub normalized: bool,
    /// Integers read as fractions.
    pub fractions: bool,
    pub address: Address,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Address {
    Clamp,
    Wrap,
    Mirror,
    Border,
}

/// The manual's bound on an approximate result.
#[derive(Clone, Copy)]
pub enum Within {
    Exact,
    Ulp(i128),
    Relative(f64),
    Absolute(f64),
}

/// What else must be seen.
#[derive(Default)]
pub struct Expect {
    /// The `CUresult` of a launch that fails.
    pub error: Option<u32>,
    pub print: Option<String>,
    /// Lines of output may come in any order.
    pub print_sorted: bool,
    /// The line of a failed assertion.
    pub assert: Option<String>,
}

/// # Errors
/// The first line that is not understood.
pub fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case {
        launches: Vec::new(),
        parameters: Vec::new(),
        images: Vec::new(),
        expect: Expect::default(),
        races: false,
    };
    for (number, line) in statements(text) {
        statement(&mut case, &line).map_err(|error| format!("line {number}: {error}"))?;
    }
    if case.launches.is_empty() {
        return Err("no `launch:` line".into());
    }
    Ok(case)
}

/// Lines of the leading comment; one that is indented by four or more continues the one above.
fn statements(text: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("//") else { break };
        match out.last_mut() {
            Some((_, last)) if rest.starts_with("    ") => {
                last.push(' ');
                last.push_str(rest.trim());
            }
            _ => out.push((number + 1, rest.trim().to_owned())),
        }
    }
    out
}

fn statement(case: &mut Case, line: &str) -> Result<(), String> {
    let (keyword, rest) = line.split_once([' ', ':']).unwrap_or((line, ""));
    let rest = rest.trim_start_matches(':').trim();
    match keyword {
        "" | "test" | "source" | "note" => {}
        "race" => case.races = true,
        "launch" => case.launches.push(launch(rest)?),
        "in" | "out" | "inout" | "scratch" | "freed" | "value" | "endpoint" => {
            case.parameters.push(parameter(keyword, rest)?)
        }
        "texture" | "surface" => {
            let (image, bound) = image(keyword == "surface", rest)?;
            if bound {
                case.images.push(image);
            } else {
                case.parameters.push(image);
            }
        }
        "expect" => {
            let code = rest.strip_prefix("error ").ok_or("expected `expect: error NUMBER`")?;
            case.expect.error = Some(code.parse().map_err(|_| "expected the number of a CUresult")?);
        }
        "print" | "assert" => {
            let (rest, sorted) = match rest.strip_prefix("sorted") {
                Some(rest) => (rest.trim_start_matches([':', ' ']), true),
                None => (rest, false),
            };
            case.expect.print_sorted |= sorted;
            let into = if keyword == "print" {
                &mut case.expect.print
            } else {
                &mut case.expect.assert
            };
            into.get_or_insert_default().push_str(&string(rest)?);
        }
        _ => return Err(format!("unknown keyword `{keyword}`")),
    }
    Ok(())
}

fn launch(text: &str) -> Result<Launch, String> {
    let mut launch = Launch {
        entry: String::new(),
        grid: [1; 3],
        block: [32, 1, 1],
        shared: 0,
        cooperative: false,
        cluster: None,
        stack: 1024,
        timeout: None,
    };
    for word in text.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("expected key=value, found `{word}`"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("`{value}` is no number"));
        match key {
            "entry" => launch.entry = value.to_owned(),
            "grid" => launch.grid = dimensions(value)?,
            "block" => launch.block = dimensions(value)?,
            "shared" => launch.shared = number()?,
            "stack" => launch.stack = number()?.into(),
            "timeout" => launch.timeout = Some(number()?.into()),
            "cluster" => launch.cluster = Some(dimensions(value)?),
            "cooperative" => launch.cooperative = value == "yes",
            _ => return Err(format!("unknown key `{key}` of launch")),
        }
    }
    if launch.entry.is_empty() {
        Err("launch without entry=".into())
    } else {
        Ok(launch)
    }
}

/// `8`, `8,4`, `8,4,2`.
fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    for (i, word) in text.split(',').enumerate() {
        *out.get_mut(i).ok_or("more than three dimensions")? = word.parse().map_err(|_| format!("`{word}`?"))?;
    }
    Ok(out)
}

/// `NAME: TYPE[COUNT] {sorted} {within BOUND} {= VALUES}`; of `inout` and `endpoint`, `= BEFORE -> AFTER`.
fn parameter(keyword: &str, text: &str) -> Result<Parameter, String> {
    let (name, rest) = text.split_once(':').ok_or("expected NAME: TYPE")?;
    let (shape, values) = match rest.split_once('=') {
        Some((shape, values)) => (shape, Some(values)),
        None => (rest, None),
    };
    let mut words = shape.split_whitespace();
    let shape = words.next().ok_or("expected a type")?;
    let (ty, count) = match shape.split_once('[') {
        Some((ty, count)) => {
            let count = count
                .strip_suffix(']')
                .and_then(|c| c.parse().ok())
                .ok_or("expected TYPE[COUNT]")?;
            (ty, Some(count))
        }
        None => (shape, None),
    };
    let ty = Type::parse(ty).ok_or_else(|| format!("unknown type `{ty}`"))?;
    let (mut sorted, mut within) = (false, Within::Exact);
    let mut endpoint = Endpoint {
        team: false,
        counted: false,
    };
    while let Some(word) = words.next() {
        match word {
            "team" if keyword == "endpoint" => endpoint.team = true,
            "counted" if keyword == "endpoint" => endpoint.counted = true,
            "sorted" => sorted = true,
            "within" => within = bound(words.next().unwrap_or_default(), words.next().unwrap_or_default())?,
            _ => return Err(format!("`{word}`? expected `sorted` or `within`")),
        }
    }
    let list = |values: Option<&str>| match values {
        Some(values) => ty.list(values, count),
        None => Err(format!("`{keyword}` needs values")),
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    match keyword {
        "in" | "value" => before = bits(ty, &list(values)?)?,
        "out" => {
            after = list(values)?;
            // Neither zero nor anything plausible: an element that nobody wrote shows.
            let never = u128::from_le_bytes([0xcd; 16]) & if ty.bytes == 16 { !0 } else { (1 << (8 * ty.bytes)) - 1 };
            before = vec![never; after.len()];
        }
        "inout" | "endpoint" => {
            let (first, second) = values
                .and_then(|v| v.split_once("->"))
                .ok_or("expected BEFORE -> AFTER")?;
            before = bits(ty, &ty.list(first, count)?)?;
            after = ty.list(second, Some(before.len()))?;
        }
        _ => before.resize(count.ok_or("a buffer without values needs a length")?, 0),
    }
    let role = match keyword {
        "value" => Role::Value,
        "endpoint" => Role::Endpoint(endpoint),
        _ => Role::Buffer,
    };
    Ok(Parameter {
        name: name.trim().to_owned(),
        ty,
        role,
        before,
        after,
        sorted,
        within,
        freed: keyword == "freed",
    })
}

/// `NAME: TYPExCHANNELS WORDS = VALUES`, of surfaces `= BEFORE -> AFTER`; and whether a reference of the module is meant.
fn image(surface: bool, text: &str) -> Result<(Parameter, bool), String> {
    let (name, rest) = text.split_once(':').ok_or("expected NAME: TYPE")?;
    // Words have their `=` without blanks.
    let (shape, values) = rest.split_once(" = ").ok_or("expected ` = ` and texels")?;
    let mut words = shape.split_whitespace();
    let first = words.next().ok_or("expected a type")?;
    let (ty, channels) = first.split_once('x').unwrap_or((first, "1"));
    let ty = Type::parse(ty).ok_or_else(|| format!("unknown type `{ty}`"))?;
    let mut image = Image {
        surface,
        channels: channels.parse().map_err(|_| "channels?")?,
        size: [1; 3],
        layers: 0,
        levels: 1,
        cube: false,
        linear: false,
        blend_levels: false,
        normalized: false,
        fractions: false,
        address: Address::Clamp,
    };
    let mut bound = false;
    for word in words {
        match word.split_once('=') {
            Some(("size", size)) => image.size = dimensions(size)?,
            Some(("layers", count)) => image.layers = count.parse().map_err(|_| "layers?")?,
            Some(("levels", count)) => image.levels = count.parse().map_err(|_| "levels?")?,
            None if word == "bound" => bound = true,
            None if word == "cube" => image.cube = true,
            None if word == "linear" => image.linear = true,
            None if word == "blend-levels" => image.blend_levels = true,
            None if word == "normalized" => image.normalized = true,
            None if word == "fractions" => image.fractions = true,
            None if word == "clamp" => image.address = Address::Clamp,
            None if word == "wrap" => image.address = Address::Wrap,
            None if word == "mirror" => image.address = Address::Mirror,
            None if word == "border" => image.address = Address::Border,
            _ => return Err(format!("`{word}` says nothing of an image")),
        }
    }
    let (before, after) = match values.split_once("->") {
        Some((before, after)) => (before, Some(after)),
        None => (values, None),
    };
    let before = bits(ty, &ty.list(before, None)?)?;
    let after = match after {
        Some(after) => ty.list(after, Some(before.len()))?,
        None => Vec::new(),
    };
    let parameter = Parameter {
        name: name.trim().to_owned(),
        ty,
        role: Role::Image(image),
        before,
        after,
        sorted: false,
        within: Within::Exact,
        freed: false,
    };
    Ok((parameter, bound))
}

/// Elements of which each has bits of its own; `nan` is the NaN that CUDA's headers name.
fn bits(ty: Type, elements: &[Element]) -> Result<Vec<u128>, String> {
    let one = |element: &Element| match element {
        Element::Bits(bits) => Ok(*bits),
        Element::AnyNan => Ok(match ty.bytes {
            2 => 0x7fff,
            4 => 0x7fff_ffff,
            _ => 0x7ff8_0000_0000_0000,
        }),
        Element::Any => Err("`_` is no input".to_owned()),
    };
    elements.iter().map(one).collect()
}

/// `2 ulp`, `2^-22 rel`, `2^-20.5 abs`.
fn bound(amount: &str, unit: &str) -> Result<Within, String> {
    let number = match amount.strip_prefix("2^") {
        Some(exponent) => exponent.parse::<f64>().map(f64::exp2),
        None => amount.parse::<f64>(),
    };
    let number = number.map_err(|_| format!("`{amount}` is no bound"))?;
    match unit {
        "ulp" => Ok(Within::Ulp(number as i128)),
        "rel" => Ok(Within::Relative(number)),
        "abs" => Ok(Within::Absolute(number)),
        _ => Err(format!("unit `{unit}`? expected ulp, rel or abs")),
    }
}

/// A string in C's notation.
fn string(text: &str) -> Result<String, String> {
    let inner = text
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .ok_or("expected a string in quotes")?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(c @ ('\\' | '"')) => c,
                _ => return Err("unknown escape".into()),
            },
            c => c,
        });
    }
    Ok(out)
}
