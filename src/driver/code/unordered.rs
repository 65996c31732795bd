//! Races between operations: what the checker of those ([`between`]) finds becomes a report, and is told once for the same two places.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::config;
use crate::driver::process::check::{self, Deed, Finding, Host, Kind, Role};
use crate::memory::{AddressSpace, life};
use crate::program::{Named, demangle};
use crate::sanitizer::between::{self, Act, Class, Missing, Party, Race, Rule, Stream};

use super::fault::{self, Bytes};
use super::settle;

/// Looks, if somebody has asked for it.
pub fn start() {
    /// Memory whose rights change is other memory.
    struct Forget;
    impl life::Listener for Forget {
        fn changed(&self, life: &life::Life) {
            between::forget(life.start, life.bytes);
            settle::memory(life);
        }
    }
    static FORGET: OnceLock<Arc<dyn life::Listener>> = OnceLock::new();
    if config::get().check.race {
        life::listen(FORGET.get_or_init(|| Arc::new(Forget)));
        between::start(found);
        if config::get().check_host {
            between::start_with_host();
        }
    }
}

fn found(race: Race) {
    /// What is done where, of both, and the memory.
    type Known = ([(String, &'static str); 2], u64);
    static KNOWN: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());
    let parties = [&race.first, &race.second];
    let mut places = parties.map(|party| (place(party), word(party)));
    places.sort();
    // Kernels have lines to be told apart by; of calls there is nothing but the name.
    let memory = match parties.iter().all(|party| party.place.is_some()) {
        true => 0,
        false => AddressSpace::get()
            .find(race.address)
            .map_or(race.address, |found| found.start),
    };
    if !KNOWN.lock().insert((places, memory)) {
        return;
    }
    let sites = |party: &Party| party.place.iter().map(|(site, ..)| site.clone()).collect();
    let deed = |party: &Party| Deed {
        what: word(party),
        block: party.place.as_ref().map(|(_, block, _)| *block),
        thread: party.place.as_ref().map(|(.., thread)| *thread),
    };
    let call = parties.iter().find(|party| party.kernel.is_none());
    let memory = check::near(Some(race.address));
    let host = |party: &Party| {
        let role = match party.caller.is_program() {
            true => Role::Access(word(party)),
            false => Role::Operation(word(party)),
        };
        let host = Host::of(role, party.caller)?;
        Some(host.launching(party.kernel.as_ref()))
    };
    check::tell(&Finding {
        kernel: parties.iter().find_map(|party| party.kernel.clone()),
        sites: sites(&race.first),
        other: sites(&race.second),
        first: deed(&race.first),
        second: deed(&race.second),
        address: Some(race.address),
        bytes: (!is_by_program(&race)).then_some(race.bytes),
        call: call.map(|party| party.caller.plain()),
        hosts: parties
            .into_iter()
            .filter_map(host)
            .chain(check::hosts(None, &memory))
            .collect(),
        ..Finding::new(Kind::Race, report(&race))
    });
}

/// Whether the program's own code is one of the two.
fn is_by_program(race: &Race) -> bool {
    race.first.caller.is_program() || race.second.caller.is_program()
}

/// A line of a source, or of PTX where there is none; of the driver's own work the call.
fn place(party: &Party) -> String {
    match &party.place {
        Some((site, ..)) => match site.origin.lines.first() {
            Some(line) => format!("{}:{}", line.file, line.line),
            None => format!("{}:{}", site.function, site.ptx_line),
        },
        None => name(party),
    }
}

fn name(party: &Party) -> String {
    match &party.kernel {
        Some(kernel) => demangle(kernel).into_owned(),
        None => party.caller.plain().to_owned(),
    }
}

fn word(party: &Party) -> &'static str {
    match (party.act, party.class) {
        (Act::Allocates, _) => "allocation",
        (Act::Frees, _) => "free",
        (Act::Touches, Class::Write) => "write",
        (Act::Touches, Class::Read) => "read",
        (Act::Touches, Class::StrongWrite) => "strong write",
        (Act::Touches, Class::StrongRead) => "strong read",
    }
}

/// For people; several lines, the first of which says what races.
fn report(race: &Race) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(race, &mut text);
    text
}

fn write(race: &Race, text: &mut String) -> fmt::Result {
    let parties = [&race.first, &race.second];
    let [first, second] = parties.map(word);
    let article = |word: &str| if word.starts_with('a') { "an" } else { "a" };
    match first == second {
        true => write!(text, "race of two {first}s")?,
        false => write!(
            text,
            "race of {} {first} and {} {second}",
            article(first),
            article(second)
        )?,
    }
    let [first, second] = parties.map(name);
    match first == second {
        true if race.first.kernel.is_some() => write!(text, " by two launches of {first}")?,
        true if race.first.is_node => write!(text, " by two nodes ({first})")?,
        true => write!(text, " by two calls of {first}")?,
        false => write!(text, " by {first} and {second}")?,
    }
    match is_by_program(race) {
        // How far the host's instruction goes is not known.
        true => write!(text, ": at {:#x}", race.address)?,
        false => write!(text, ": {} at {:#x}", Bytes(race.bytes), race.address)?,
    }
    if let Some(near) = AddressSpace::get().nearest(race.address).filter(|near| near.is_near()) {
        write!(text, ", {near}")?;
    }
    let streams = Streams::of(race);
    for (party, stream) in parties.into_iter().zip(&streams.names) {
        self::party(party, stream, text)?;
    }
    write!(text, "\n  {}", streams.missing(race))
}

fn party(party: &Party, stream: &str, text: &mut String) -> fmt::Result {
    let word = word(party);
    let by = match &party.place {
        Some((_, [bx, by, bz], [x, y, z])) => format!(
            "block ({bx},{by},{bz}), thread ({x},{y},{z}) of {}",
            party
                .kernel
                .as_ref()
                .map_or(String::new(), |name| Named(name).to_string())
        ),
        None if party.kernel.is_some() => format!("what {} has put in line", name(party)),
        None => name(party),
    };
    match (party.is_node, party.stream) {
        (true, _) => write!(text, "\n  {word} by {by}, in a graph launched into {stream}")?,
        (false, Some(_)) => write!(text, "\n  {word} by {by}, in {stream}")?,
        (false, None) if party.caller.is_program() => write!(text, "\n  {word} by {by}")?,
        (false, None) => write!(text, "\n  {word} by {by}, on the host")?,
    }
    match &party.place {
        Some((site, ..)) => fault::stack(std::slice::from_ref(site), text),
        None => Ok(()),
    }
}

/// The streams of the two, and words for them.
struct Streams {
    both: [Option<Stream>; 2],
    names: [String; 2],
}

impl Streams {
    fn of(race: &Race) -> Streams {
        let both = [race.first.stream, race.second.stream];
        let mut names = both.map(|stream| match stream {
            None => String::new(),
            Some(stream) if stream.rule == Rule::Legacy => "the default stream".into(),
            // CU_STREAM_PER_THREAD
            Some(stream) if stream.handle == 2 => "the default stream of a thread".into(),
            Some(stream) => format!("stream {:#x}", stream.handle),
        });
        if let [Some(first), Some(second)] = both
            && first.id != second.id
            && names[0] == names[1]
        {
            let whose = if first.context != second.context {
                "context"
            } else {
                "thread"
            };
            names[1] = format!("the default stream of another {whose}");
        }
        Streams { both, names }
    }

    fn missing(&self, race: &Race) -> String {
        let [first, second] = &self.names;
        match race.missing {
            Missing::Edge => "both are in one graph, and no edges lead from the one to the other".into(),
            Missing::Wait => {
                let stream = if race.first.stream.is_some() { first } else { second };
                format!("the host has not waited for {stream}: no synchronisation, no event")
            }
            Missing::Streams => {
                let legacy = self.both.iter().flatten().find(|stream| stream.rule == Rule::Legacy);
                let apart = self.both.iter().position(|stream| {
                    let other = |legacy: &&Stream| stream.is_some_and(|stream| stream.context == legacy.context);
                    legacy.is_some_and(|legacy| other(&legacy))
                        && stream.is_some_and(|stream| stream.rule == Rule::NonBlocking)
                });
                let why = match apart {
                    Some(which) => format!(
                        "; {} is non-blocking, so that the default stream does not wait for it, nor it for that",
                        self.names[which]
                    ),
                    None => String::new(),
                };
                format!("nothing orders {second} after {first}: no event, no synchronisation{why}")
            }
        }
    }
}
