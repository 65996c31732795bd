//! A second process for a test, to talk with: for what processes share.
//!
//! ```ignore
//! #[test]
//! fn words_go_both_ways() {
//!     let mut peer = peer(test_name!(), &[], |other| {
//!         // runs in the other process
//!         let word = other.receive();
//!         other.send(&word);
//!     });
//!     peer.send("word");
//!     assert_eq!(peer.receive(), "word");
//!     peer.finish();
//! }
//! ```

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::RawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const INSIDE: &str = "CDYLIB_TEST_PEER";
/// What the test harness prints has no such mark.
const MARK: &str = "@@";

/// The other process.
pub struct Peer {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// The process that started this one.
pub struct Other {
    lines: Lines<std::io::StdinLock<'static>>,
}

/// Starts the same test in another process, where `body` runs. What follows the call runs in this process only.
pub fn peer(test: &str, environment: &[(&str, &str)], body: impl FnOnce(&mut Other)) -> Peer {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        let lines = std::io::stdin().lines();
        body(&mut Other { lines });
        std::process::exit(0);
    }
    let mut command = Command::new(std::env::current_exe().expect("the test's own path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    crate::alone::plain_environment(&mut command);
    let mut child = command
        .envs(environment.iter().copied())
        .env(INSIDE, test)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starting the other process");
    let stdin = child.stdin.take().expect("a pipe");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    Peer { child, stdin, lines }
}

impl Peer {
    pub fn send(&mut self, text: &str) {
        writeln!(self.stdin, "{text}").expect("the other process listens");
    }

    #[track_caller]
    pub fn receive(&mut self) -> String {
        for line in self.lines.by_ref() {
            // The harness may have begun a line.
            if let Some((_, text)) = line.expect("text").split_once(MARK) {
                return text.to_string();
            }
        }
        panic!("the other process has ended: {:?}", self.child.wait());
    }

    /// The other process has done all that it was to do.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.stdin);
        let status = self.child.wait().expect("waiting for a child");
        assert!(status.success(), "the other process ended with {status}");
    }

    /// The other process dies at once.
    pub fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("waiting for a child");
    }
}

impl Other {
    pub fn send(&mut self, text: &str) {
        println!("{MARK}{text}");
    }

    pub fn receive(&mut self) -> String {
        self.lines.next().expect("another line").expect("text")
    }
}

pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex<const N: usize>(text: &str) -> [u8; N] {
    let digit = |index: usize| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).expect("two digits");
    std::array::from_fn(digit)
}

/// Lets processes that are started from now on have a descriptor, under the same number.
pub fn inherit(descriptor: RawFd) {
    // SAFETY: concerns the descriptor alone.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) }, 0);
}
