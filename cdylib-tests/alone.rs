//! A process of its own for a test: for errors that stay, for environment variables, for what is printed.
//!
//! ```ignore
//! #[test]
//! fn a_trap_is_reported() {
//!     let run = alone(test_name!(), &[("MARGAY_LOG", "error")], || {
//!         // runs in the other process; a panic here fails the test
//!     });
//!     assert!(run.stderr.contains("trap"));
//! }
//! ```

use std::io::ErrorKind;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Tells the other process which test it is there for. (Not `MARGAY_…`: the library would report it as unknown.)
const INSIDE: &str = "CDYLIB_TEST_ALONE";

/// How long a test may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a process left behind.
#[derive(Debug)]
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// The full name of the test function this stands in, as `--exact` wants it.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let name = std::any::type_name_of_val(&here);
        let name = name.strip_suffix("::here").unwrap_or(name);
        name.split_once("::").map_or(name, |(_crate, name)| name)
    }};
}

/// Runs `body` in a process of its own and returns what it printed. Whatever follows the call runs in this process only.
/// A failure of `body`, by panic or by death, fails the test.
pub fn alone(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Run {
    let run = in_another_process(test, environment, body);
    assert!(
        run.status.success(),
        "in its own process, {test} ended with {}\n--- standard output\n{}\n--- standard error\n{}",
        run.status,
        run.stdout,
        run.stderr
    );
    run
}

/// Like [`alone`] for a body that is expected to end the process itself, with a code or a signal.
pub fn in_another_process(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Run {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        body();
        // As a program ends: exit handlers run, C's buffers are flushed.
        std::process::exit(0);
    }
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    // The environment of whoever runs the tests must not decide what they find.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MARGAY_")) {
        command.env_remove(name);
    }
    command
        .env("RUST_BACKTRACE", "0")
        .envs(environment.iter().copied())
        .env(INSIDE, test);
    finish(command, test)
}

/// Takes away what would steer the driver.
pub fn plain_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("MARGAY_") || text.starts_with("CUDA_") {
            command.env_remove(name);
        }
    }
}

/// Starts a command, and waits for it no longer than [`PATIENCE`].
pub fn finish(mut command: Command, what: &str) -> Run {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = loop {
        match command.spawn() {
            Ok(child) => break child,
            // A program that a test has just written: another test's process had it open while it was forked.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{what}: {error}"),
        }
    };
    // Pipes are emptied while the process runs, lest it waits for a reader.
    let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("waiting for a child") {
            Some(status) => break status,
            None if start.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                panic!(
                    "{what} hangs\n--- output\n{}\n{}",
                    stdout.join().unwrap(),
                    stderr.join().unwrap()
                );
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    Run {
        status,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[test]
fn what_is_printed_comes_back() {
    let run = alone(test_name!(), &[("CDYLIB_TEST_WORD", "word")], || {
        println!("out: {}", std::env::var("CDYLIB_TEST_WORD").unwrap());
        eprintln!("err");
    });
    assert!(run.stdout.contains("out: word"), "{run:?}");
    assert!(run.stderr.contains("err"), "{run:?}");
}

#[test]
fn death_is_noticed() {
    use std::os::unix::process::ExitStatusExt;
    let run = in_another_process(test_name!(), &[], || std::process::abort());
    assert_eq!(run.status.signal(), Some(libc::SIGABRT));
}

#[test]
#[should_panic(expected = "the body's own words")]
fn a_panic_is_passed_on() {
    if std::env::var(INSIDE).is_ok() {
        // `should_panic` holds in the other process as well; there, only death counts as failure.
        eprintln!("the body's own words");
        std::process::exit(1);
    }
    alone(test_name!(), &[], || {});
}
