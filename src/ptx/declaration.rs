//! The shape of declarations: variables with their initialisers, function headers, prototypes, directives with their
//! arguments (PTX ISA, Directives; State Spaces, Types, and Variables). What a directive makes of a kernel, and which space
//! takes an initialiser, is looked at later (`rules.rs`, `program/check/`).

use std::sync::Arc;

use chumsky::prelude::*;

use super::ast::{
    CallPrototype, Directive, Expr, Function, Init, Linkage, Name, Place, Space, Span, Statement, Type, Variable,
};
use super::grammar::{
    At, Failure, Part, constant_expression, initial_value, integer, keyword, mark, name, place, token, unexpected, word,
};
use super::legacy;
use super::lexer::{Kind, Token};
use super::names::Context;
use super::record::Record;
use crate::spelling::nearest;

/// A dotted word of a declaration, with what belongs to it.
enum Trait {
    Linkage(Linkage),
    Space(Space, Option<u32>),
    Align(u64),
    Vector(u8),
    Type(Type),
    /// A structure of PTX 1.x.
    Record(Arc<Record>),
    Pointer,
    Attributes(Vec<(Name, Vec<u64>)>),
    /// No such word; said when the whole declaration is known.
    Unknown,
}

/// `.attribute(.managed, .unified(1, 2))`
fn attributes<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<(Name, Vec<u64>)>, E> {
    let arguments = integer()
        .separated_by(mark(Kind::Comma))
        .collect()
        .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen));
    let one = undotted()
        .then(arguments.or_not())
        .map(|(name, arguments): (Name, Option<Vec<u64>>)| (name, arguments.unwrap_or_default()));
    word(".attribute").ignore_then(
        one.separated_by(mark(Kind::Comma))
            .at_least(1)
            .collect()
            .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen)),
    )
}

/// A dotted word as a name without its dot.
fn undotted<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Name, E> {
    token(Kind::Word).map_with(|token, e| {
        let Span { start, end } = token.span;
        e.state().name(Span { start: start + 1, end })
    })
}

fn linkage<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Linkage, E> {
    token(Kind::Word).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
        Ok(match e.state().at(token.span) {
            ".extern" => Linkage::Extern,
            ".visible" => Linkage::Visible,
            ".weak" => Linkage::Weak,
            ".common" => Linkage::Common,
            other => return Err(E::because(e.span(), format!("`{other}` is not a linking directive"))),
        })
    })
}

/// The words before a variable's name, in any order that makes sense.
fn traits<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Declared, E> {
    let align = word(".align").ignore_then(integer()).map(Trait::Align);
    let bank = integer().delimited_by(mark(Kind::OpenBracket), mark(Kind::CloseBracket));
    let banked = token(Kind::Word)
        .then(bank)
        .map_with(|(token, bank), e: &mut At<'t, '_, 's, E>| {
            let space = Space::from_word(&e.state().at(token.span)[1..]);
            match (space, u32::try_from(bank)) {
                (Some(space @ (Space::Const | Space::Tex | Space::Surf)), Ok(bank)) => Trait::Space(space, Some(bank)),
                _ => Trait::Unknown,
            }
        });
    let plain = token(Kind::Word).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
        let text = &e.state().at(token.span)[1..];
        if let Some(ty) = Type::from_word(text) {
            return Ok(Trait::Type(ty));
        }
        if let Some(space) = Space::from_word(text) {
            return Ok(Trait::Space(space, None));
        }
        Ok(match text {
            "v2" => Trait::Vector(2),
            "v3" if e.state().legacy => Trait::Vector(3),
            "v4" => Trait::Vector(4),
            "v8" => Trait::Vector(8),
            "ptr" => Trait::Pointer,
            "extern" => Trait::Linkage(Linkage::Extern),
            "visible" => Trait::Linkage(Linkage::Visible),
            "weak" => Trait::Linkage(Linkage::Weak),
            "common" => Trait::Linkage(Linkage::Common),
            _ => Trait::Unknown,
        })
    });
    let record = token(Kind::Name).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
        let context = e.state();
        match context
            .records
            .types
            .get(context.at(token.span))
            .filter(|_| context.legacy)
        {
            Some(record) => Ok(Trait::Record(record.clone())),
            None => Err(E::because(e.span(), "this is not a type")),
        }
    });
    choice((align, attributes().map(Trait::Attributes), banked, plain, record))
        .map_with(|one, e: &mut At<'t, '_, 's, E>| (one, place(e)))
        .repeated()
        .at_least(1)
        .collect::<Vec<_>>()
        .validate(|list, e: &mut At<'t, '_, 's, E>, emitter| {
            let span = place(e);
            let (declared, complaint) = declared(list, span, e.state());
            if let Some((at, message)) = complaint {
                emitter.emit(E::complain(e.span(), Some(at), message));
            }
            declared
        })
        .boxed()
}

/// The words of a declaration, without a name yet.
#[derive(Clone)]
struct Declared {
    variable: Variable,
    record: Option<Arc<Record>>,
}

/// The declaration that these words make, and what is wrong with them.
fn declared(list: Vec<(Trait, Span)>, span: Span, context: &Context<'_>) -> (Declared, Option<(Span, String)>) {
    let mut variable = Variable {
        linkage: Linkage::Internal,
        space: Space::Generic,
        bank: None,
        align: None,
        vector: None,
        ty: Type::B8,
        name: Name {
            text: "".into(),
            span: Span::default(),
        },
        count: None,
        dims: Vec::new(),
        init: None,
        attributes: Vec::new(),
        ptr: None,
        span,
    };
    let mut ty = None;
    let mut record = None;
    for (one, span) in list {
        let twice = match one {
            Trait::Record(new) => ty.replace(Type::B8).is_some() || record.replace(new).is_some(),
            Trait::Linkage(linkage) => std::mem::replace(&mut variable.linkage, linkage) != Linkage::Internal,
            Trait::Type(new) => ty.replace(new).is_some(),
            Trait::Vector(width) => variable.vector.replace(width).is_some(),
            Trait::Pointer => variable.ptr.replace((Space::Generic, None)).is_some(),
            Trait::Attributes(list) => {
                variable.attributes.extend(list);
                false
            }
            Trait::Align(align) => match &mut variable.ptr {
                Some((_, aligned)) => aligned.replace(align).is_some(),
                None => variable.align.replace(align).is_some(),
            },
            Trait::Space(space, bank) => match &mut variable.ptr {
                Some((pointed, _)) => std::mem::replace(pointed, space) != Space::Generic,
                None => {
                    variable.bank = bank;
                    std::mem::replace(&mut variable.space, space) != Space::Generic
                }
            },
            Trait::Unknown => {
                let word = context.at(span);
                let mut message = format!("`{word}` is neither a type nor anything else that a declaration says");
                let types = Type::ALL.iter().map(|ty| ty.word());
                let others = [
                    "global", "const", "shared", "local", "param", "reg", "align", "v2", "v4", "ptr",
                ];
                if let Some(near) = nearest(word.trim_start_matches('.'), types.chain(others)) {
                    message += &format!("; did you mean `.{near}`?");
                }
                return (Declared { variable, record }, Some((span, message)));
            }
        };
        if twice {
            let message = format!("`{}` says again what this declaration has said", context.at(span));
            return (Declared { variable, record }, Some((span, message)));
        }
    }
    match ty {
        Some(ty) => variable.ty = ty,
        // The first specification's textures and surfaces have no type of their own.
        None if context.legacy && matches!(variable.space, Space::Tex | Space::Surf) => variable.ty = Type::B32,
        None => {
            let message = "this declaration has no type".to_owned();
            return (Declared { variable, record }, Some((span, message)));
        }
    }
    (Declared { variable, record }, None)
}

struct Declarator {
    name: Name,
    count: Option<u32>,
    dims: Vec<Option<u64>>,
    init: Option<Init>,
}

/// `_`: a parameter of a prototype, and in PTX 1.x a name like others.
fn anonymous<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Name, E> {
    token(Kind::Underscore).map_with(|token, e: &mut At<'t, '_, 's, E>| e.state().name(token.span))
}

/// The size of an array: an integer; in PTX 1.x a constant expression (PTX ISA 1.1, 5.3.3).
fn dimension<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, u64, E> {
    // Later versions are not told of expressions, not even in messages.
    let old = any()
        .rewind()
        .try_map_with(|token: Token, e: &mut At<'t, '_, 's, E>| match e.state().legacy {
            true => Ok(()),
            false => Err(unexpected(e.span(), token)),
        });
    let expression = old.ignore_then(constant_expression()).try_map(|size, span| match size {
        Expr::Int { bits, .. } => Ok(bits),
        _ => Err(E::because(span, "the size of an array is an integer")),
    });
    let end = mark(Kind::CloseBracket).rewind();
    choice((integer().then_ignore(end), expression))
}

/// `name`, `%r<100>`, `name[4][]`
fn declarator<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Declarator, E> {
    let count = integer()
        .delimited_by(mark(Kind::Less), mark(Kind::Greater))
        .try_map(|count, span| {
            u32::try_from(count).map_err(|_| E::because(span, "so many registers cannot be numbered"))
        });
    let dim = dimension()
        .or_not()
        .delimited_by(mark(Kind::OpenBracket), mark(Kind::CloseBracket));
    let dims = dim
        .repeated()
        .collect::<Vec<_>>()
        .validate(|dims, e: &mut At<'t, '_, 's, E>, emitter| {
            if dims.iter().skip(1).any(Option::is_none) && !e.state().legacy {
                emitter.emit(E::because(e.span(), "only the first dimension may be left open"));
            }
            dims
        });
    choice((name(), anonymous()))
        .then(count.or_not())
        .then(dims)
        .map(|((name, count), dims)| Declarator {
            name,
            count,
            dims,
            init: None,
        })
        .boxed()
}

/// `= value`, `= { … }`
fn initialiser<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Init, E> {
    let value = initial_value();
    let init = recursive(|init| {
        let field_value = choice((
            value.clone(),
            name().map(|name| Expr::Symbol {
                span: name.span,
                name,
                offset: 0,
                generic: false,
                mask: None,
            }),
        ));
        let field = name().then_ignore(mark(Kind::Equals)).then(field_value);
        let fields = field
            .separated_by(mark(Kind::Comma))
            .at_least(1)
            .collect()
            .map(Init::Fields);
        let list = init.separated_by(mark(Kind::Comma)).collect().map(Init::List);
        let braces = choice((fields, list)).delimited_by(mark(Kind::OpenBrace), mark(Kind::CloseBrace));
        choice((value.clone().map(Init::Value), braces))
    });
    mark(Kind::Equals).ignore_then(init).boxed()
}

/// The variable, and what is wrong with its initialiser.
fn named(
    declared: Declared,
    declarator: Declarator,
    span: Span,
    context: &mut Context<'_>,
) -> (Variable, Option<(Span, String)>) {
    let Declared { mut variable, record } = declared;
    variable.name = declarator.name;
    variable.count = declarator.count;
    variable.dims = declarator.dims;
    variable.init = declarator.init;
    variable.span = span;
    let complaint = match context.legacy {
        true => legacy::settle(&mut variable, record, &mut context.records).err(),
        false => None,
    };
    (variable, complaint)
}

/// `.global .align 4 .b8 a[4] = {1, 2}, b;`: one variable for each name. `.global .u32 ;`, which NVIDIA's assembler takes,
/// is one without a name.
pub fn variables<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<Variable>, E> {
    let one = declarator()
        .then(initialiser().or_not())
        .map(|(declarator, init)| Declarator { init, ..declarator });
    traits()
        .then(one.separated_by(mark(Kind::Comma)).collect::<Vec<_>>())
        .then_ignore(mark(Kind::Semicolon))
        .validate(|(declared, list), e: &mut At<'t, '_, 's, E>, emitter| {
            let span = place(e);
            if list.is_empty() {
                let variable = declared.variable;
                return vec![Variable { span, ..variable }];
            }
            list.into_iter()
                .map(|one| {
                    let (variable, complaint) = named(declared.clone(), one, span, e.state());
                    if let Some((at, message)) = complaint {
                        emitter.emit(E::complain(e.span(), Some(at), message));
                    }
                    variable
                })
                .collect()
        })
}

/// `(.param .b32 a, .reg .u64 b)`
fn parameters<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<Variable>, E> {
    traits()
        .then(declarator())
        .map_with(|(declared, one), e: &mut At<'t, '_, 's, E>| {
            let span = place(e);
            named(declared, one, span, e.state()).0
        })
        .separated_by(mark(Kind::Comma))
        .collect()
        .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen))
        .boxed()
}

/// Directives between a function's header and its body, and how many arguments they take (PTX ISA, Performance-Tuning
/// Directives; Cluster Dimension Directives; Miscellaneous).
const HEADER: &[(&str, usize, usize)] = &[
    ("maxntid", 1, 3),
    ("reqntid", 1, 3),
    ("maxnreg", 1, 1),
    ("local_maxnreg", 1, 1),
    ("minnctapersm", 1, 1),
    ("maxnctapersm", 1, 1),
    ("noreturn", 0, 0),
    ("explicitcluster", 0, 0),
    ("reqnctapercluster", 1, 3),
    ("maxclusterrank", 1, 1),
    ("blocksareclusters", 0, 0),
    ("abi_preserve", 1, 1),
    ("abi_preserve_control", 1, 1),
];

/// `.maxntid 256, 1, 1`, `.pragma "nounroll";`
fn header_directive<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Directive, E> {
    let pragma = word(".pragma")
        .map_with(|token, e: &mut At<'t, '_, 's, E>| {
            let Span { start, end } = token.span;
            e.state().name(Span { start: start + 1, end })
        })
        .then(strings())
        .then_ignore(mark(Kind::Semicolon).or_not())
        .map(|(name, text)| Directive {
            name,
            args: Vec::new(),
            text,
        });
    let numbers = undotted()
        .then(integer().separated_by(mark(Kind::Comma)).collect::<Vec<_>>())
        .validate(|(name, args), e: &mut At<'t, '_, 's, E>, emitter| {
            let known = HEADER.iter().find(|known| known.0 == &*name.text);
            match known {
                Some((_, least, most)) if (least..=most).contains(&&args.len()) => {}
                Some((word, least, most)) => {
                    let count = match (least, most) {
                        (0, 0) => "no argument".to_owned(),
                        (1, 1) => "one integer".to_owned(),
                        _ => format!("{least} to {most} integers"),
                    };
                    emitter.emit(E::because(e.span(), format!("`.{word}` takes {count}")));
                }
                None => {
                    let mut message = format!("`.{}` is not a directive of a function", name.text);
                    if let Some(near) = nearest(&name.text, HEADER.iter().map(|known| known.0)) {
                        message += &format!("; did you mean `.{near}`?");
                    }
                    emitter.emit(E::complain(e.span(), Some(name.span), message));
                }
            }
            Directive {
                name,
                args,
                text: Vec::new(),
            }
        });
    choice((pragma, numbers))
}

/// `"a", "b"`, without the quotes.
pub fn strings<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<String>, E> {
    string().separated_by(mark(Kind::Comma)).at_least(1).collect()
}

/// A string without its quotes, escapes as written.
pub fn string<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, String, E> {
    token(Kind::Text).map_with(|token, e: &mut At<'t, '_, 's, E>| {
        let text = e.state().at(token.span);
        text[1..text.len() - 1].to_owned()
    })
}

fn is_open(params: &[Variable]) -> bool {
    params.last().is_some_and(|last| last.dims.first() == Some(&None))
}

/// `[16][8]` behind a kernel's name (PTX ISA 1.1, Table 68).
fn block_dims<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<Option<u64>>, E> {
    let dim = dimension()
        .or_not()
        .delimited_by(mark(Kind::OpenBracket), mark(Kind::CloseBracket));
    dim.repeated()
        .collect::<Vec<_>>()
        .validate(|dims, e: &mut At<'t, '_, 's, E>, emitter| {
            if !dims.is_empty() && !e.state().legacy {
                let message = "dimensions behind a kernel's name went with PTX 1.x";
                emitter.emit(E::because(e.span(), message));
            } else if dims.len() > 3 {
                emitter.emit(E::because(e.span(), "a block has at most three dimensions"));
            }
            dims
        })
}

/// A function's header, up to its `;` or its body. The body is the caller's to attach.
pub fn function<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Function, E> {
    let kind = choice((word(".entry").to(true), word(".func").to(false)));
    let end = choice((mark(Kind::Semicolon), mark(Kind::Braces)));
    linkage()
        .repeated()
        .at_most(1)
        .collect::<Vec<_>>()
        .then(kind)
        .then(attributes().or_not())
        .then(parameters().or_not())
        .then(choice((name(), anonymous())))
        .then(block_dims())
        .then(parameters().or_not())
        .then(header_directive().repeated().collect::<Vec<_>>())
        .then_ignore(end)
        .map_with(
            |(((((((linkage, entry), attributes), returns), name), dims), params), directives),
             e: &mut At<'t, '_, 's, E>| {
                let params = params.unwrap_or_default();
                Function {
                    linkage: linkage.first().copied().unwrap_or_default(),
                    entry,
                    name,
                    dims,
                    returns: returns.unwrap_or_default(),
                    variadic: is_open(&params),
                    params,
                    noreturn: directives.iter().any(|directive| &*directive.name.text == "noreturn"),
                    directives,
                    attributes: attributes.unwrap_or_default(),
                    body: None,
                    span: place(e),
                }
            },
        )
}

/// Members of one range in a list of targets: each becomes a name of its own, however short the text is.
const MAX_TARGETS: u64 = 256;

/// `label: .callprototype (…) _ (…) .noreturn;`, `label: .calltargets f, g;`, `label: .branchtargets a, b;`
pub fn targets<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Statement, E> {
    let label = name().then_ignore(mark(Kind::Colon));
    let count = integer()
        .delimited_by(mark(Kind::Less), mark(Kind::Greater))
        .try_map(|count, span| match count {
            1..=MAX_TARGETS => Ok(count),
            _ => Err(E::because(span, format!("a range has 1 to {MAX_TARGETS} members here"))),
        });
    // `f<2>` is `f0, f1`.
    let members = name().then(count.or_not()).map(|(name, count)| match count {
        None => vec![name],
        Some(count) => (0..count)
            .map(|member| Name {
                text: format!("{}{member}", name.text).into(),
                span: name.span,
            })
            .collect(),
    });
    let names = members
        .separated_by(mark(Kind::Comma))
        .at_least(1)
        .collect::<Vec<_>>()
        .map(|lists| lists.concat());
    let list = choice((word(".calltargets").to(true), word(".branchtargets").to(false)));
    let list = label.clone().then(list).then(names).map(|((label, calls), targets)| {
        if calls {
            Statement::CallTargets { label, targets }
        } else {
            Statement::BranchTargets { label, targets }
        }
    });
    let directives = header_directive().repeated().collect::<Vec<_>>();
    let prototype = label
        .then_ignore(word(".callprototype"))
        .then(parameters().or_not())
        .then_ignore(mark(Kind::Underscore))
        .then(parameters().or_not())
        .then(directives)
        .map_with(|(((label, returns), params), directives), e: &mut At<'t, '_, 's, E>| {
            Statement::CallPrototype(Box::new(CallPrototype {
                label,
                returns: returns.unwrap_or_default(),
                params: params.unwrap_or_default(),
                noreturn: directives.iter().any(|directive| &*directive.name.text == "noreturn"),
                directives,
                span: place(e),
            }))
        });
    choice((list, prototype)).then_ignore(mark(Kind::Semicolon))
}

/// `.loc 1 20 0`, `.loc 1 20 0, function_name $L__info+2, inlined_at 1 10 3`
pub fn location<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Statement, E> {
    let small = || {
        integer().try_map(|value, span| {
            u32::try_from(value).map_err(|_| E::because(span, "lines and columns are 32-bit numbers"))
        })
    };
    let place = || {
        integer()
            .then(small())
            .then(small())
            .map(|((file, line), column)| (file, line, column))
    };
    let function = mark(Kind::Comma)
        .ignore_then(keyword("function_name"))
        .ignore_then(name())
        .then(mark(Kind::Plus).ignore_then(integer()).or_not());
    let inlined = mark(Kind::Comma)
        .ignore_then(keyword("inlined_at"))
        .ignore_then(place());
    word(".loc")
        .ignore_then(place())
        .then(function.or_not())
        .then(inlined.or_not())
        .map_with(
            |(((file, line, column), function), inlined_at), e: &mut At<'t, '_, 's, E>| {
                let (function, offset) = match function {
                    Some((name, offset)) => (Some(name), offset.unwrap_or(0)),
                    None => (None, 0),
                };
                Statement::Loc {
                    file,
                    line,
                    column,
                    function,
                    offset,
                    inlined_at,
                    place: Place(super::grammar::place(e)),
                }
            },
        )
}

/// `.pragma "…", "…";`
pub fn pragma<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Vec<String>, E> {
    word(".pragma")
        .ignore_then(strings())
        .then_ignore(mark(Kind::Semicolon))
}
