//! What a declaration may say by itself: rules that need neither the instruction table nor other declarations (PTX ISA,
//! State Spaces, Types, and Variables; Directives). Flows in: trees of declarations. Flows out: findings.
//!
//! PTX 1.x is allowed what its first specification describes. It must never know what names stand for.

use super::ast::{Function, Init, Linkage, Module, Space, Span, Type, Variable};
use super::diagnostic::Diagnostic;
use crate::spelling;

/// Where a variable is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Module,
    Body,
    EntryParameter,
    FunctionParameter,
}

/// Versions of the language, newest last.
const VERSIONS: &[(u16, u16)] = &[(1, 5), (2, 3), (3, 2), (4, 3), (5, 1), (6, 5), (7, 8), (8, 8), (9, 5)];

/// Numbers of targets, and whether `a` and `f` variants exist.
#[rustfmt::skip]
const TARGETS: &[(u32, &str)] = &[
    (10, ""), (11, ""), (12, ""), (13, ""), (20, ""), (21, ""), (30, ""), (32, ""), (35, ""), (37, ""), (50, ""),
    (52, ""), (53, ""), (60, ""), (61, ""), (62, ""), (70, ""), (72, ""), (75, ""), (80, ""), (86, ""), (87, ""),
    (88, ""), (89, ""), (90, "a"), (100, "af"), (101, "af"), (103, "af"), (107, "af"), (110, "af"), (120, "af"),
    (121, "af"),
];

/// What is wrong with `.version`, which stands at `span`.
pub fn version((major, minor): (u16, u16), span: Span) -> Result<(), Diagnostic> {
    let newest = VERSIONS.last().copied().unwrap_or_default();
    match VERSIONS.iter().find(|known| known.0 == major) {
        Some(&(_, last)) if minor <= last => Ok(()),
        _ if (major, minor) > newest => Err(Diagnostic {
            newer: true,
            ..Diagnostic::error(
                span,
                format!(
                    "PTX {major}.{minor} is newer than what is known here: {}.{}",
                    newest.0, newest.1
                ),
            )
        }),
        _ => Err(Diagnostic::error(span, format!("there is no PTX {major}.{minor}"))),
    }
}

/// The words of `.target`.
pub fn target(module: &Module) -> Option<Diagnostic> {
    let mut architecture = false;
    let mut texturing = None;
    for name in &module.target {
        let text = &*name.text;
        if let Some(sm) = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")) {
            let digits = sm.trim_end_matches(['a', 'f']);
            let suffix = &sm[digits.len()..];
            let number = digits.parse().unwrap_or(0);
            let known = TARGETS
                .iter()
                .any(|(known, suffixes)| *known == number && suffixes.contains(suffix));
            // A target of the future runs as well as any other.
            // PTX 1.x lists several (PTX ISA 1.1, Table 77).
            if architecture && module.version >= (2, 0) || !known && number <= 121 {
                let message = match architecture && known {
                    true => format!("`{text}` is a second architecture"),
                    false => format!("there is no target `{text}`"),
                };
                return Some(Diagnostic::error(name.span, message));
            }
            architecture = true;
            continue;
        }
        match text {
            "debug" | "map_f64_to_f32" => {}
            "texmode_unified" | "texmode_independent" => {
                if let Some(first) = texturing.replace(text) {
                    let message = format!("`{text}` after `{first}`");
                    return Some(Diagnostic::error(name.span, message).label("a module has one texturing mode"));
                }
            }
            _ => {
                let found = Diagnostic::error(name.span, format!("there is no target option `{text}`"));
                let options = ["debug", "map_f64_to_f32", "texmode_unified", "texmode_independent"];
                return Some(match spelling::suggestion(text, options.into_iter()) {
                    Some(suggestion) => found.label(suggestion),
                    None => found,
                });
            }
        }
    }
    None
}

/// The greatest alignment: NVIDIA's assembler reads 32 bits.
const MAX_ALIGN: u64 = 1 << 31;

/// Types that a variable may have; the others are instruction types (PTX ISA, Fundamental Types; Packed Data Types).
fn declarable(ty: Type) -> bool {
    use Type::*;
    match ty {
        B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | F16x2 | F32 | F64 | Pred
        | TexRef | SamplerRef | SurfRef => true,
        Bf16 | Bf16x2 | F32x2 | Tf32 | U8x4 | S8x4 | U16x2 | S16x2 | E4m3 | E5m2 | E3m2 | E2m3 | E2m1 | E4m3x2
        | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x2 | E4m3x4 | E5m2x4 | E3m2x4 | E2m3x4 | E2m1x4 | Ue8m0x2 | Ue5m3x2
        | S2f6x2 => false,
    }
}

/// Bits of a variable's element.
pub(super) fn bits(ty: Type) -> u32 {
    use Type::*;
    match ty {
        B8 | U8 | S8 | E4m3 | E5m2 | E3m2 | E2m3 | E2m1 | E2m1x2 => 8,
        B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x4 | Ue8m0x2 | Ue5m3x2 | S2f6x2 => 16,
        B32 | U32 | S32 | F32 | F16x2 | Bf16x2 | Tf32 | U8x4 | S8x4 | U16x2 | S16x2 | E4m3x4 | E5m2x4 | E3m2x4
        | E2m3x4 => 32,
        B64 | U64 | S64 | F64 | F32x2 | TexRef | SamplerRef | SurfRef => 64,
        B128 => 128,
        Pred => 1,
    }
}

/// What is wrong with a variable's declaration.
pub fn variable(variable: &Variable, scope: Scope, legacy: bool, version: (u16, u16)) -> Option<Diagnostic> {
    let name = &variable.name.text;
    let wrong = |message: String| Some(Diagnostic::error(variable.name.span, message));
    let (space, ty) = (variable.space, variable.ty);
    let dot = space.word();
    let opaque = matches!(ty, Type::TexRef | Type::SamplerRef | Type::SurfRef);
    if !declarable(ty) {
        return wrong(format!("`.{}` is a type of instructions, not of variables", ty.word()));
    }
    match space {
        Space::Generic => return wrong(format!("`{name}` is declared in no state space")),
        Space::Param | Space::ParamEntry | Space::ParamFunc if scope == Scope::Module && !legacy => {
            return wrong("a `.param` variable at module level".to_owned());
        }
        Space::Global | Space::Const if scope == Scope::Body && !legacy => {}
        Space::Reg if scope == Scope::EntryParameter && !legacy => {
            return wrong(format!("the kernel parameter `{name}` is not in `.param`"));
        }
        _ => {}
    }
    for align in [variable.align, variable.ptr.and_then(|(_, align)| align)]
        .into_iter()
        .flatten()
    {
        if !align.is_power_of_two() {
            return wrong(format!("`{name}` is aligned to {align}, which is no power of two"));
        }
        if align > MAX_ALIGN {
            return wrong(format!("`{name}` is aligned to {align}; the most is {MAX_ALIGN}"));
        }
    }
    if let Some(width) = variable.vector {
        if ty == Type::Pred && !legacy || opaque {
            return wrong(format!("there are no vectors of `.{}`", ty.word()));
        }
        if width == 8 {
            return wrong("`.v8` is for loads and stores; a variable has `.v2` or `.v4`".to_owned());
        }
        if u32::from(width) * bits(ty) > 128 {
            return wrong(format!("`.v{width} .{}` has more than 128 bits", ty.word()));
        }
    }
    if ty == Type::Pred && !legacy {
        if space != Space::Reg {
            return wrong(format!("the predicate `{name}` is not in `.reg`"));
        }
        if !variable.dims.is_empty() {
            return wrong(format!("`{name}` is an array of predicates"));
        }
    }
    if opaque {
        let allowed = match scope {
            Scope::Module => space == Space::Global,
            Scope::EntryParameter => space == Space::Param,
            Scope::FunctionParameter => true,
            Scope::Body => false,
        };
        if !allowed {
            return wrong(format!(
                "`.{}` variables are `.global` ones of the module or kernel parameters",
                ty.word()
            ));
        }
    }
    if variable.linkage == Linkage::Common && space != Space::Global {
        return wrong(format!("the `.common` variable `{name}` is not in `.global`"));
    }
    for (attribute, arguments) in &variable.attributes {
        let message = match (&*attribute.text, arguments.len()) {
            ("managed", 0) if space == Space::Global => continue,
            ("managed", 0) => format!("`.managed` is for `.global` variables, not for `.{dot}` ones"),
            ("unified", 2) => continue,
            ("managed", _) => "`.managed` takes no arguments".to_owned(),
            ("unified", _) => "`.unified` takes two integers".to_owned(),
            (other, _) => format!("there is no attribute `.{other}`"),
        };
        return Some(Diagnostic::error(attribute.span, message));
    }
    if let Some(bank) = variable.bank.filter(|_| space == Space::Const) {
        if bank > 10 {
            return wrong(format!("constant bank {bank}: there are 0 to 10"));
        }
        if version >= (2, 2) {
            return wrong("constant banks went with PTX 2.2".to_owned());
        }
    }
    if variable.init.is_some() && !legacy {
        if !matches!(space, Space::Global | Space::Const) {
            return wrong(format!("`{name}` is initialised, which `.{dot}` variables cannot be"));
        }
        if variable.linkage == Linkage::Extern {
            return wrong(format!("`{name}` is `.extern` and initialised"));
        }
    }
    let open = variable.dims.first() == Some(&None);
    let closed_elsewhere = variable.linkage == Linkage::Extern || scope == Scope::FunctionParameter || legacy;
    if open && variable.init.is_none() && !closed_elsewhere {
        return wrong(format!("the array `{name}` has neither a size nor an initialiser"));
    }
    if variable.dims.contains(&Some(0)) && space != Space::Param && !closed_elsewhere {
        return wrong(format!("the array `{name}` has no elements"));
    }
    let parameter = matches!(scope, Scope::EntryParameter | Scope::FunctionParameter) && space == Space::Param;
    let scalar = variable.dims.is_empty();
    if parameter && (variable.vector.is_some() || variable.dims.len() > 1 || ty == Type::F16x2 && scalar) {
        return wrong(format!(
            "`{name}` cannot be a parameter: those are scalars and one-dimensional arrays"
        ));
    }
    if matches!(space, Space::Sreg | Space::Surf) && !legacy {
        return wrong(format!("`.{dot}` variables went with PTX 1.x"));
    }
    if scope == Scope::Body && variable.linkage != Linkage::Internal && !legacy {
        return wrong(format!("`{name}` is declared in a body and can have no linkage"));
    }
    fields(variable)
}

/// The fields that a texture, sampler or surface variable sets (PTX ISA, Texture, Sampler and Surface Types).
fn fields(variable: &Variable) -> Option<Diagnostic> {
    let Some(Init::Fields(list)) = &variable.init else {
        return None;
    };
    let sampling = [
        "force_unnormalized_coords",
        "addr_mode_0",
        "addr_mode_1",
        "addr_mode_2",
        "filter_mode",
    ];
    let image = [
        "width",
        "height",
        "depth",
        "channel_data_type",
        "channel_order",
        "array_size",
    ];
    let texture = ["normalized_coords", "num_mipmap_levels", "num_samples"];
    let known = |name: &str| match variable.ty {
        Type::TexRef => sampling.contains(&name) || image.contains(&name) || texture.contains(&name),
        Type::SamplerRef => sampling.contains(&name),
        Type::SurfRef => image.contains(&name) || name == "memory_layout",
        _ => false,
    };
    let (name, _) = list.iter().find(|(name, _)| !known(&name.text))?;
    let message = format!("`.{}` variables have no field `{}`", variable.ty.word(), name.text);
    Some(Diagnostic::error(name.span, message))
}

/// What is wrong with a function's header, parameters included.
pub fn function(function: &Function, legacy: bool, version: (u16, u16)) -> Option<Diagnostic> {
    let name = &function.name.text;
    let wrong = |message: String| Some(Diagnostic::error(function.name.span, message));
    if &**name == "_" && !legacy {
        return wrong("`_` is no name of a function".to_owned());
    }
    let scope = match function.entry {
        true => Scope::EntryParameter,
        false => Scope::FunctionParameter,
    };
    if function.entry && !function.returns.is_empty() {
        return wrong(format!("the kernel `{name}` returns a value"));
    }
    let params = function.returns.iter().chain(&function.params);
    if let Some(found) = params.clone().find_map(|one| variable(one, scope, legacy, version)) {
        return Some(found);
    }
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = params
        .clone()
        .find(|one| &*one.name.text != "_" && !seen.insert(&one.name.text))
    {
        let message = format!("`{name}` has two parameters `{}`", twice.name.text);
        return Some(Diagnostic::error(twice.name.span, message));
    }
    let last = function.params.len().saturating_sub(1);
    let mut open = function.params.iter().take(last);
    if let Some(open) = open.find(|one| one.dims.first() == Some(&None)) {
        return Some(Diagnostic::error(
            open.name.span,
            "only the last parameter may be an array without size",
        ));
    }
    if let Some(open) = function.returns.iter().find(|one| one.dims.first() == Some(&None)) {
        return Some(Diagnostic::error(
            open.name.span,
            "a result cannot be an array without size",
        ));
    }
    if let Some(sink) = params.clone().find(|one| &*one.name.text == "_") {
        return Some(Diagnostic::error(
            sink.name.span,
            "only prototypes have parameters without a name",
        ));
    }
    if function.linkage == Linkage::Extern && function.body.is_some() {
        return wrong(format!("`{name}` is `.extern` and has a body"));
    }
    if function.linkage == Linkage::Common {
        return wrong("`.common` is for variables".to_owned());
    }
    for (attribute, arguments) in &function.attributes {
        if !matches!(
            (&*attribute.text, arguments.len()),
            ("unified", 2) | ("unified_func_stub", 0)
        ) {
            let message = format!("there is no attribute `.{}` of functions", attribute.text);
            return Some(Diagnostic::error(attribute.span, message));
        }
    }
    let directive = |name: &str| {
        function
            .directives
            .iter()
            .find(|directive| &*directive.name.text == name)
    };
    if let (Some(_), Some(required)) = (directive("maxntid"), directive("reqntid")) {
        return Some(Diagnostic::error(
            required.name.span,
            "`.maxntid` and `.reqntid` exclude each other",
        ));
    }
    for kernels in [
        "maxntid",
        "reqntid",
        "minnctapersm",
        "maxnctapersm",
        "maxnreg",
        "local_maxnreg",
        "reqnctapercluster",
        "maxclusterrank",
        "explicitcluster",
        "blocksareclusters",
    ] {
        if let Some(directive) = directive(kernels).filter(|_| !function.entry) {
            return Some(Diagnostic::error(
                directive.name.span,
                format!("`.{kernels}` is for kernels"),
            ));
        }
    }
    if let Some(directive) = directive("noreturn").filter(|_| function.entry) {
        return Some(Diagnostic::error(
            directive.name.span,
            "`.noreturn` is for functions, not for kernels",
        ));
    }
    None
}
