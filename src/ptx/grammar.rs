//! The shape of statements: guard, opcode with dotted modifiers, operands. The tokens of one statement with its `;` become a
//! piece of tree, or chumsky's account of what was expected.
//!
//! Which opcodes there are, how many operands one takes and what a name stands for is the instruction table's and the
//! check's business. The one exception is `call`, whose parentheses hold arguments and not an expression; the caller says
//! which of the two shapes to read.
//!
//! Parsers are generic over the error type. A statement is read with errors that hold nothing, which costs nothing; the
//! rare statement that fails is read again with [`Rich`] errors to say why.

use std::sync::Arc;

use chumsky::error::{EmptyErr, LabelError, Rich};
use chumsky::extra::{Full, SimpleState};
use chumsky::input::MapExtra;
use chumsky::pratt::{infix, left, postfix, prefix};
use chumsky::prelude::*;
use chumsky::util::MaybeRef;

use super::ast::{Address, AddressBase, Expr, Guard, Instruction, Name, Opcode, Operand, Span};
use super::constant::{self, Binary, Folded, Unary};
use super::lexer::{Kind, Token};
use super::names::Context;

pub type Tokens<'t> = &'t [Token];
pub type Extra<'s, E> = Full<E, SimpleState<Context<'s>>, ()>;

/// A finding of the grammar's own: the place if it is not the tokens read, and the sentence.
#[derive(Clone, Debug)]
pub struct Complaint {
    pub at: Option<Span>,
    pub message: String,
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors that say why.
pub type Why<'t> = Rich<'t, Token, SimpleSpan, Complaint>;

/// An error type that the grammar can report its own findings with.
pub trait Failure<'t>: chumsky::error::Error<'t, Tokens<'t>> + LabelError<'t, Tokens<'t>, &'static str> + 't {
    fn complain(span: SimpleSpan, at: Option<Span>, message: String) -> Self;

    fn because(span: SimpleSpan, message: impl Into<String>) -> Self {
        Self::complain(span, None, message.into())
    }
}

impl<'t> Failure<'t> for EmptyErr {
    fn complain(_: SimpleSpan, _: Option<Span>, _: String) -> EmptyErr {
        EmptyErr::default()
    }
    fn because(_: SimpleSpan, _: impl Into<String>) -> EmptyErr {
        EmptyErr::default()
    }
}

impl<'t> Failure<'t> for Why<'t> {
    fn complain(span: SimpleSpan, at: Option<Span>, message: String) -> Why<'t> {
        Rich::custom(span, Complaint { at, message })
    }
}

/// A parser of a part of a statement.
pub trait Part<'t, 's: 't, O, E: Failure<'t>>: Parser<'t, Tokens<'t>, O, Extra<'s, E>> + Clone {}
impl<'t, 's: 't, O, E: Failure<'t>, P> Part<'t, 's, O, E> for P where P: Parser<'t, Tokens<'t>, O, Extra<'s, E>> + Clone {}

/// What a `map_with` closure is handed.
pub type At<'t, 'b, 's, E> = MapExtra<'t, 'b, Tokens<'t>, Extra<'s, E>>;

/// The place in the text of the tokens just parsed.
pub fn place<'t, 's: 't, E: Failure<'t>>(e: &mut At<'t, '_, 's, E>) -> Span {
    let tokens: &[Token] = e.slice();
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
    }
}

/// One token of this kind.
pub fn token<'t, 's: 't, E: Failure<'t>>(kind: Kind) -> impl Part<'t, 's, Token, E> {
    just(Token::of(kind)).to_slice().map(|tokens: &[Token]| tokens[0])
}

/// Punctuation: it is there, or it is not.
pub fn mark<'t, 's: 't, E: Failure<'t>>(kind: Kind) -> impl Part<'t, 's, (), E> {
    just(Token::of(kind)).ignored()
}

/// A dotted word with exactly this text.
pub fn word<'t, 's: 't, E: Failure<'t>>(text: &'static str) -> impl Part<'t, 's, Token, E> {
    token(Kind::Word).try_map_with(move |token, e: &mut At<'t, '_, 's, E>| {
        if e.state().at(token.span) == text {
            Ok(token)
        } else {
            Err(misplaced(e.span(), text, token))
        }
    })
}

/// `token` stands where `text` should.
fn misplaced<'t, E: Failure<'t>>(span: SimpleSpan, text: &'static str, token: Token) -> E {
    <E as LabelError<'t, Tokens<'t>, &'static str>>::expected_found([text], Some(MaybeRef::Val(token)), span)
}

/// `token` stands where something else should; what that is, others say.
pub fn unexpected<'t, E: Failure<'t>>(span: SimpleSpan, token: Token) -> E {
    let nothing: [&'static str; 0] = [];
    <E as LabelError<'t, Tokens<'t>, &'static str>>::expected_found(nothing, Some(MaybeRef::Val(token)), span)
}

/// A name with exactly this text.
pub fn keyword<'t, 's: 't, E: Failure<'t>>(text: &'static str) -> impl Part<'t, 's, (), E> {
    token(Kind::Name).try_map_with(move |token, e: &mut At<'t, '_, 's, E>| {
        if e.state().at(token.span) == text {
            Ok(())
        } else {
            Err(misplaced(e.span(), text, token))
        }
    })
}

/// An identifier.
pub fn name<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Name, E> {
    token(Kind::Name).map_with(|token, e| e.state().name(token.span))
}

/// A folded expression. If there is none, reading goes on with a zero, so that what follows is not blamed.
pub fn folded<'t, 's: 't, E: Failure<'t>>(parser: impl Part<'t, 's, Folded, E>) -> impl Part<'t, 's, Expr, E> {
    parser.validate(|folded, e: &mut At<'t, '_, 's, E>, emitter| {
        folded.unwrap_or_else(|complaint| {
            let (at, message) = *complaint;
            emitter.emit(E::complain(e.span(), Some(at), message));
            Expr::Int {
                bits: 0,
                unsigned: false,
                span: at,
            }
        })
    })
}

/// A constant expression. `symbols`: names of variables and functions are atoms too (initialisers, offsets).
/// PTX ISA, Constants: C's operators with C's precedence; casts to `.s64` and `.u64`.
pub fn expression<'t, 's: 't, E: Failure<'t>>(symbols: bool) -> impl Part<'t, 's, Folded, E> {
    recursive(move |whole| {
        let number = token(Kind::Number).map_with(|token, e: &mut At<'t, '_, 's, E>| {
            match constant::number(e.state().at(token.span), token.span) {
                // PTX ISA, Floating-Point Constants: they may not be used in constant expressions.
                Ok(Expr::F32 { .. } | Expr::F64 { .. }) => {
                    let message = "a hexadecimal floating-point number stands alone";
                    Err(Box::new((token.span, message.to_owned())))
                }
                folded => folded,
            }
        });
        let float = token(Kind::Float)
            .map_with(|token, e: &mut At<'t, '_, 's, E>| constant::float(e.state().at(token.span), token.span));
        let typed = token(Kind::Typed).try_map_with(|token, e: &mut At<'t, '_, 's, E>| match e.state().legacy {
            true => Ok(constant::typed(e.state().at(token.span), token.span)),
            false => Err(E::because(e.span(), "an immediate with a type went with PTX 1.x")),
        });
        let symbol = name().try_map(move |name, span| match &*name.text {
            "WARP_SZ" => Ok(Ok(Expr::Int {
                bits: 32,
                unsigned: false,
                span: name.span,
            })),
            _ if symbols => Ok(Ok(Expr::Symbol {
                span: name.span,
                name,
                offset: 0,
                generic: false,
                mask: None,
            })),
            _ => Err(E::because(span, format!("`{}` is not a constant", name.text))),
        });
        let parenthesised = whole
            .clone()
            .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen))
            .boxed();
        // `generic(name)`, and `0xFF00(name+4)` which takes a byte out of an address.
        let applied = choice((token(Kind::Name), token(Kind::Number)))
            .then(parenthesised.clone())
            .map_with(|(token, operand), e: &mut At<'t, '_, 's, E>| {
                let span = place(e);
                apply(token, e.state().at(token.span), operand, span)
            });
        let cast = token(Kind::Word)
            .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen))
            .map_with(|token, e: &mut At<'t, '_, 's, E>| e.state().at(token.span));
        let atom = choice((applied, number, float, typed, symbol, parenthesised));
        macro_rules! operator {
            ($level:literal, $kind:ident, $operation:ident) => {
                infix(
                    left($level),
                    mark(Kind::$kind),
                    |a, (), b, e: &mut At<'t, '_, 's, E>| {
                        let span = place(e);
                        constant::binary(Binary::$operation, a, b, span)
                    },
                )
            };
            ($kind:ident, $operation:ident) => {
                prefix(11, mark(Kind::$kind), |(), a, e: &mut At<'t, '_, 's, E>| {
                    let span = place(e);
                    constant::unary(Unary::$operation, a, span)
                })
            };
        }
        // `7%3` of PTX 1.x, where `%3` is a name to the lexer.
        let remainder = token(Kind::Name).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
            let divisor = e.state().at(token.span).strip_prefix('%');
            match divisor.filter(|digits| e.state().legacy && digits.starts_with(|c: char| c.is_ascii_digit())) {
                Some(digits) => Ok(constant::number(digits, token.span)),
                None => Err(misplaced(e.span(), "%", token)),
            }
        });
        let arithmetic = atom.pratt((
            postfix(10, remainder, |a, b, e: &mut At<'t, '_, 's, E>| {
                let span = place(e);
                constant::binary(Binary::Rem, a, b, span)
            }),
            (
                operator!(Minus, Minus),
                operator!(Plus, Plus),
                operator!(Not, Not),
                operator!(Tilde, Complement),
                prefix(11, cast, |to, a, e: &mut At<'t, '_, 's, E>| {
                    let span = place(e);
                    constant::cast(to, a, span)
                }),
            ),
            (
                operator!(10, Star, Mul),
                operator!(10, Slash, Div),
                operator!(10, Percent, Rem),
                operator!(9, Plus, Add),
                operator!(9, Minus, Sub),
                operator!(8, ShiftLeft, Shl),
                operator!(8, ShiftRight, Shr),
            ),
            (
                operator!(7, LessEqual, Le),
                operator!(7, GreaterEqual, Ge),
                operator!(7, Less, Lt),
                operator!(7, Greater, Gt),
                operator!(6, EqualEqual, Eq),
                operator!(6, NotEqual, Ne),
                operator!(5, And, And),
                operator!(4, Xor, Xor),
                operator!(3, Or, Or),
                operator!(2, AndAnd, AndAnd),
                operator!(1, OrOr, OrOr),
            ),
        ));
        let arms = mark(Kind::Question)
            .ignore_then(whole.clone())
            .then_ignore(mark(Kind::Colon))
            .then(whole);
        arithmetic.then(arms.or_not()).map(|(condition, arms)| match arms {
            Some((yes, no)) => constant::choose(condition, yes, no),
            None => condition,
        })
    })
}

/// `generic(symbol)` or `mask(symbol)`.
fn apply(function: Token, text: &str, operand: Folded, span: Span) -> Folded {
    // An offset goes behind `generic(…)` and into `0xFF(…)`.
    let complain = |message: &str| Err(Box::new((span, message.to_owned())));
    let Expr::Symbol {
        name,
        offset,
        generic,
        mask,
        ..
    } = operand?
    else {
        return complain("only the address of a variable or function stands in these parentheses");
    };
    if function.kind == Kind::Name {
        if text != "generic" {
            return complain("`generic` is the only function in a constant expression");
        }
        if offset != 0 || generic || mask.is_some() {
            return complain("`generic` takes a name alone; an offset goes behind: `generic(a)+8`");
        }
        return Ok(Expr::Symbol {
            name,
            offset,
            generic: true,
            mask,
            span,
        });
    }
    let Expr::Int { bits, .. } = constant::number(text, function.span)? else {
        return complain("a byte mask is an integer");
    };
    if mask.is_some() {
        return complain("a byte of a byte");
    }
    Ok(Expr::Symbol {
        name,
        offset,
        generic,
        mask: Some(bits),
        span,
    })
}

/// A number alone: what nearly every constant is. Followed by `,` `;` `]` `}` or `)`, so that no operator is missed.
fn literal<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Expr, E> {
    let end = any().filter(|token: &Token| {
        matches!(
            token.kind,
            Kind::Comma | Kind::Semicolon | Kind::CloseBracket | Kind::CloseBrace | Kind::CloseParen
        )
    });
    let value = choice((
        token(Kind::Number)
            .map_with(|token, e: &mut At<'t, '_, 's, E>| constant::number(e.state().at(token.span), token.span)),
        token(Kind::Float)
            .map_with(|token, e: &mut At<'t, '_, 's, E>| constant::float(e.state().at(token.span), token.span)),
    ));
    folded(value).then_ignore(end.rewind())
}

/// A constant expression without symbols.
pub fn constant_expression<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Expr, E> {
    choice((literal(), folded(expression(false)))).boxed()
}

/// A constant expression that may hold names.
pub fn initial_value<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Expr, E> {
    choice((literal(), folded(expression(true)))).boxed()
}

/// A constant integer.
pub fn integer<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, u64, E> {
    token(Kind::Number).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
        match constant::number(e.state().at(token.span), token.span) {
            Ok(Expr::Int { bits, .. }) => Ok(bits),
            Ok(_) => Err(E::because(e.span(), "an integer stands here")),
            Err(complaint) => Err(E::because(e.span(), complaint.1)),
        }
    })
}

/// A name that has perhaps something behind it: `%r1`, `%tid.x`.
fn named<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, (Name, Option<Name>), E> {
    let plain = token(Kind::Name).try_map_with(|token, e: &mut At<'t, '_, 's, E>| {
        if e.state().at(token.span) == "WARP_SZ" {
            return Err(E::because(e.span(), "WARP_SZ is a constant"));
        }
        Ok((e.state().name(token.span), None))
    });
    let dotted = token(Kind::Dotted).map_with(|token, e: &mut At<'t, '_, 's, E>| {
        let context = e.state();
        let dot = context.at(token.span).find('.').unwrap_or_default() as u32;
        let Span { start, end } = token.span;
        let base = context.name(Span {
            start,
            end: start + dot,
        });
        let select = context.name(Span {
            start: start + dot + 1,
            end,
        });
        (base, Some(select))
    });
    choice((plain, dotted))
}

/// `+ constant`; in PTX 1.x also `- constant`.
fn offset<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, i64, E> {
    let sign = choice((token(Kind::Plus), token(Kind::Minus))).try_map_with(|sign, e: &mut At<'t, '_, 's, E>| {
        let minus = sign.kind == Kind::Minus;
        if minus && !e.state().legacy {
            let message = "an offset is added: write `+-4` for four bytes before";
            return Err(E::because(e.span(), message));
        }
        Ok(minus)
    });
    sign.then(constant_expression())
        .try_map(|(minus, expr), span| match expr {
            Expr::Int { bits, .. } if minus => Ok((bits as i64).wrapping_neg()),
            Expr::Int { bits, .. } => Ok(bits as i64),
            Expr::F32 { .. } | Expr::F64 { .. } | Expr::Symbol { .. } => {
                Err(E::because(span, "an offset is an integer"))
            }
        })
}

enum Tail {
    Offset(i64),
    Index(Option<Name>, i64),
    Pair(Operand),
}

/// What stands between the brackets of `var[…]`.
fn subscript<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, (Option<Name>, i64), E> {
    let register = name()
        .then(offset().or_not())
        .map(|(name, offset)| (Some(name), offset.unwrap_or(0)));
    let constant = constant_expression().try_map(|expr, span| match expr {
        Expr::Int { bits, .. } => Ok((None, bits as i64)),
        Expr::F32 { .. } | Expr::F64 { .. } | Expr::Symbol { .. } => {
            Err(E::because(span, "an index is an integer or a register"))
        }
    });
    choice((register, constant)).delimited_by(mark(Kind::OpenBracket), mark(Kind::CloseBracket))
}

/// An operand that starts with a name.
fn named_operand<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Operand, E> {
    let partner = choice((
        named().map(|(name, select)| Operand::Name {
            name,
            select,
            offset: 0,
        }),
        token(Kind::Underscore).map(|token| Operand::Sink(token.span)),
    ));
    let tail = choice((
        offset().map(Tail::Offset),
        subscript().map(|(index, offset)| Tail::Index(index, offset)),
        mark(Kind::Or).ignore_then(partner).map(Tail::Pair),
    ));
    named()
        .then(tail.or_not())
        .map_with(|((name, select), tail), e: &mut At<'t, '_, 's, E>| match tail {
            None => Operand::Name {
                name,
                select,
                offset: 0,
            },
            Some(Tail::Offset(offset)) => Operand::Name { name, select, offset },
            Some(Tail::Index(index, offset)) => Operand::Address(Address {
                base: AddressBase::Name(joined(name, select)),
                index,
                offset,
                subscript: true,
                unified: false,
                span: place(e),
            }),
            Some(Tail::Pair(second)) => {
                let first = Operand::Name {
                    name,
                    select,
                    offset: 0,
                };
                Operand::Pair(Box::new(first), Box::new(second))
            }
        })
}

/// `sp.x` as the name of a place in memory (PTX 1.x, structures).
fn joined(name: Name, select: Option<Name>) -> Name {
    match select {
        None => name,
        Some(member) => Name {
            text: Arc::from(format!("{}.{}", name.text, member.text)),
            span: name.span.to(member.span),
        },
    }
}

/// `{a, b, _, 1}`
fn vector<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Operand, E> {
    let sink = token(Kind::Underscore).map(|token| Operand::Sink(token.span));
    let element = choice((named_operand(), sink, constant_expression().map(Operand::Immediate)));
    element
        .separated_by(mark(Kind::Comma))
        .at_least(1)
        .collect()
        .delimited_by(mark(Kind::OpenBrace), mark(Kind::CloseBrace))
        .map_with(|list, e: &mut At<'t, '_, 's, E>| Operand::Vector(list, place(e)))
        .boxed()
}

/// `[a+8]`, `[8]`, `[tex, {x, y}]`, `[a].unified`
fn brackets<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Operand, E> {
    let element = choice((named_operand(), vector(), constant_expression().map(Operand::Immediate)));
    element
        .separated_by(mark(Kind::Comma))
        .at_least(1)
        .collect::<Vec<_>>()
        .delimited_by(mark(Kind::OpenBracket), mark(Kind::CloseBracket))
        .map_with(|list, e: &mut At<'t, '_, 's, E>| (list, place(e)))
        .then(word(".unified").or_not())
        .try_map_with(|((mut list, span), unified), e: &mut At<'t, '_, 's, E>| {
            let unified = unified.is_some();
            let only = if list.len() == 1 { list.pop() } else { None };
            let Some(only) = only else {
                return if unified {
                    Err(E::because(e.span(), "`.unified` belongs to a plain address"))
                } else {
                    Ok(Operand::Group(list, span))
                };
            };
            let (base, offset) = match only {
                Operand::Name { name, select, offset } => (AddressBase::Name(joined(name, select)), offset),
                Operand::Immediate(Expr::Int { bits, .. }) => (AddressBase::Absolute(bits), 0),
                Operand::Address(inner) if e.state().legacy => {
                    return Ok(Operand::Address(Address { unified, span, ..inner }));
                }
                Operand::Address(_) => {
                    return Err(E::because(
                        e.span(),
                        "an array element is an address by itself: `a[1]`, not `[a[1]]`",
                    ));
                }
                Operand::Not(_)
                | Operand::Negated(_)
                | Operand::Immediate(_)
                | Operand::Vector(..)
                | Operand::Pair(..)
                | Operand::Sink(_)
                | Operand::Group(..)
                | Operand::Arguments(..) => {
                    let message = "an address is a register, a variable or an integer, with an offset perhaps";
                    return Err(E::because(e.span(), message));
                }
            };
            Ok(Operand::Address(Address {
                base,
                index: None,
                offset,
                subscript: false,
                unified,
                span,
            }))
        })
        .boxed()
}

/// Any operand but the arguments of a call.
fn operand<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Operand, E> {
    let not = mark(Kind::Not).ignore_then(name()).map(Operand::Not);
    let negated = mark(Kind::Minus).ignore_then(named()).map(|(name, select)| {
        Operand::Negated(Box::new(Operand::Name {
            name,
            select,
            offset: 0,
        }))
    });
    let partner = choice((name().map(|name| Operand::Name {
        name,
        select: None,
        offset: 0,
    }),));
    // `{…}|p` and `_|p`.
    let sink = token(Kind::Underscore).map(|token| Operand::Sink(token.span));
    let paired = choice((vector(), sink))
        .then(mark(Kind::Or).ignore_then(partner).or_not())
        .map(|(first, second)| match second {
            None => first,
            Some(second) => Operand::Pair(Box::new(first), Box::new(second)),
        });
    choice((
        named_operand(),
        brackets(),
        paired,
        not,
        negated,
        constant_expression().map(Operand::Immediate),
    ))
    .boxed()
}

/// `@p`, `@!p`
fn guard<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Guard, E> {
    mark(Kind::At)
        .ignore_then(mark(Kind::Not).or_not())
        .then(name())
        .map(|(not, predicate)| Guard {
            negated: not.is_some(),
            predicate,
        })
}

/// `ld.global.v4.f32`, in pieces too: `ld .global .v4.f32`, `ld.const[2].b32`.
fn opcode<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Opcode, E> {
    let bank = mark(Kind::OpenBracket)
        .then(mark(Kind::Number))
        .then(mark(Kind::CloseBracket))
        .then(mark(Kind::Word));
    let more = choice((mark(Kind::Word), bank.ignored())).repeated();
    choice((mark(Kind::Dotted), mark(Kind::Name)))
        .then(more)
        .map_with(|_, e: &mut At<'t, '_, 's, E>| {
            let tokens: &[Token] = e.slice();
            let span = place(e);
            let context = e.state();
            let text = match tokens {
                [_] => context.name(span).text,
                _ => tokens
                    .iter()
                    .map(|token| context.at(token.span))
                    .collect::<String>()
                    .into(),
            };
            Opcode { text, span }
        })
}

/// `@p opcode operands;`
pub fn instruction<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Instruction, E> {
    statement(operand())
}

/// `@p call (results), function, (arguments), prototype;`
pub fn call<'t, 's: 't, E: Failure<'t>>() -> impl Part<'t, 's, Instruction, E> {
    let sink = token(Kind::Underscore).map(|token| Operand::Sink(token.span));
    let arguments = choice((named_operand(), sink, constant_expression().map(Operand::Immediate)))
        .separated_by(mark(Kind::Comma))
        .collect()
        .delimited_by(mark(Kind::OpenParen), mark(Kind::CloseParen))
        .map_with(|list, e: &mut At<'t, '_, 's, E>| Operand::Arguments(list, place(e)));
    statement(choice((arguments, named_operand())))
}

fn statement<'t, 's: 't, E: Failure<'t>>(operand: impl Part<'t, 's, Operand, E>) -> impl Part<'t, 's, Instruction, E> {
    guard()
        .or_not()
        .then(opcode())
        .then(operand.separated_by(mark(Kind::Comma)).collect::<Vec<_>>())
        .then_ignore(mark(Kind::Semicolon))
        .map_with(|((guard, opcode), mut operands), e: &mut At<'t, '_, 's, E>| {
            // Trees of large modules live long.
            operands.shrink_to_fit();
            Instruction {
                guard,
                opcode,
                operands,
                span: place(e),
            }
        })
}
