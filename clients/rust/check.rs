//! What the programs have in common: checks are functions with names, each runs in a process of its own, so that an error that
//! stays with its process costs only one; one line for each says how it went.

use std::error::Error;
use std::process::Command;

pub type Outcome = Result<(), Box<dyn Error>>;
pub type Check = (&'static str, fn() -> Outcome);

pub fn main(checks: &[Check]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &arguments[..]
        && flag == "--check"
    {
        let (_, check) = checks
            .iter()
            .find(|(known, _)| known == name)
            .expect("a check of this name");
        match check() {
            Ok(()) => println!("passed {name}"),
            Err(error) => println!("failed {name}: {error}"),
        }
        return;
    }
    let program = std::env::current_exe().expect("a path to this program");
    for (name, _) in checks {
        if !arguments.is_empty() && !arguments.iter().any(|wanted| name.starts_with(wanted)) {
            continue;
        }
        let ended = Command::new(&program)
            .args(["--check", name])
            .status()
            .expect("a process");
        if !ended.success() {
            println!("failed {name}: {ended}");
        }
    }
}

/// An error unless both are the same; says where they are not.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &[T], want: &[T]) -> Outcome {
    if got.len() != want.len() {
        return Err(format!("{what}: {} elements, not {}", got.len(), want.len()).into());
    }
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        if got != want {
            return Err(format!("{what}: [{i}] is {got:?}, not {want:?}").into());
        }
    }
    Ok(())
}

pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Outcome {
    if got == want {
        Ok(())
    } else {
        Err(format!("{what} is {got:?}, not {want:?}").into())
    }
}

pub fn holds(what: &str, condition: bool) -> Outcome {
    if condition {
        Ok(())
    } else {
        Err(format!("not so: {what}").into())
    }
}
