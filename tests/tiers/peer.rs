//! The other end of a child: starts it with a configuration, asks, and starts it again when it is gone.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What became of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The hash of what memory held afterwards.
    Ran(String),
    /// A call of the library failed.
    Failed(String),
    Died,
    Hung,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Outcome::Ran(hash) => write!(f, "left {hash}"),
            Outcome::Failed(what) => write!(f, "failed: {what}"),
            Outcome::Died => write!(f, "killed its process"),
            Outcome::Hung => write!(f, "did not end in time"),
        }
    }
}

pub struct Peer {
    environment: Vec<(String, String)>,
    /// Whether what the library says goes on to the user.
    pub loud: bool,
    running: Option<(Child, Receiver<String>)>,
    /// What the library says where it has compiled nothing though it should: kernels would be compared with themselves.
    defect: Arc<OnceLock<String>>,
}

impl Peer {
    /// `NAME=VALUE,NAME=VALUE`.
    pub fn new(configuration: &str) -> Peer {
        let pair = |text: &str| {
            text.split_once('=')
                .map(|(name, value)| (name.to_string(), value.to_string()))
        };
        Peer {
            environment: configuration.split(',').filter_map(pair).collect(),
            loud: true,
            running: None,
            defect: Arc::default(),
        }
    }

    fn start(&mut self) -> std::io::Result<(Child, Receiver<String>)> {
        let mut command = Command::new(std::env::current_exe()?);
        // The environment of whoever runs the tests must not decide what they find.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("MARGAY_") || text.starts_with("CUDA_") {
                command.env_remove(&name);
            }
        }
        let mut child = command
            .arg("child")
            // Kernels that will never be run again are not worth keeping.
            .envs([
                ("MARGAY_LOG", "error,cuda::simt::jit=warn"),
                ("MARGAY_THREADS", "1"),
                ("MARGAY_JIT_CACHE", "off"),
            ])
            .envs(super::child::compiler().map(|path| ("MARGAY_JIT_LIBRARY", path)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        self.defect = Arc::default();
        if let Some(errors) = child.stderr.take() {
            let (defect, loud) = (self.defect.clone(), self.loud);
            std::thread::spawn(move || {
                for line in BufReader::new(errors).lines().map_while(Result::ok) {
                    if loud {
                        eprintln!("{line}");
                    }
                    if line.contains("LLVM made no code") {
                        let _ = defect.set(line);
                    }
                }
            });
        }
        let (to, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if to.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok((child, lines))
    }

    pub fn send(&mut self, command: &str) {
        if self.running.is_none() {
            self.running = self.start().ok();
        }
        if let Some((child, _)) = &mut self.running
            && let Some(input) = &mut child.stdin
        {
            // One that is gone is found when its answer is missing.
            let _ = writeln!(input, "{command}");
        }
    }

    pub fn answer(&mut self, patience: Duration) -> Outcome {
        let Some((_, lines)) = &mut self.running else {
            return Outcome::Died;
        };
        let outcome = match lines.recv_timeout(patience) {
            Ok(line) => match (line.split_once(' '), self.defect.get()) {
                (Some(("ok", _)), Some(defect)) => Outcome::Failed(defect.clone()),
                (Some(("ok", hash)), None) => return Outcome::Ran(hash.to_string()),
                (Some((_, what)), _) => Outcome::Failed(what.to_string()),
                (None, _) => Outcome::Failed(line),
            },
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => Outcome::Hung,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => Outcome::Died,
        };
        // After an error the context may be of no use.
        self.stop();
        outcome
    }

    pub fn stop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}
