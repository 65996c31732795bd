//! Where this command's lines go: to standard error, or to the file of `--log-file`, which has the program's log, too.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

#[derive(Default)]
pub struct Output(Option<(PathBuf, File)>);

impl Output {
    /// # Errors
    /// The file cannot be made, or its name is not understood.
    pub fn of(matches: &ArgMatches) -> Result<Output, String> {
        let Some(name) = matches.get_one::<String>("log-file") else {
            return Ok(Output::default());
        };
        let name = expanded(name)?;
        let open = || {
            // Whatever was there goes; what is written later comes behind what others have written.
            File::create(&name)?;
            let file = File::options().append(true).open(&name)?;
            // The program may change its folder before it uses the driver.
            Ok((std::fs::canonicalize(&name)?, file))
        };
        let (path, file) = open().map_err(|error: std::io::Error| format!("--log-file: {name}: {error}"))?;
        if path.to_string_lossy().contains("%p") {
            // The library would make a process id of it.
            return Err(format!("--log-file: {}: a path with %p in it", path.display()));
        }
        Ok(Output(Some((path, file))))
    }

    pub fn path(&self) -> Option<&Path> {
        self.0.as_ref().map(|(path, _)| path.as_path())
    }

    /// A line of this command's.
    pub fn line(&mut self, text: &str) {
        self.lines(&format!("margay check: {text}\n"));
    }

    /// Lines as they are.
    pub fn lines(&mut self, text: &str) {
        // Nobody reads it any more, or the disk is full: no reason to do anything else than what is due.
        let _ = match &mut self.0 {
            Some((_, file)) => file.write_all(text.as_bytes()),
            None => std::io::stderr().write_all(text.as_bytes()),
        };
    }
}

/// A name with what `%` stands for, as compute-sanitizer has it.
fn expanded(name: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        rest = if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            after
        } else if let Some(after) = after.strip_prefix('p') {
            out.push_str(&std::process::id().to_string());
            after
        } else if let Some((variable, after)) = after.strip_prefix("q{").and_then(|after| after.split_once('}')) {
            out.push_str(&std::env::var_os(variable).unwrap_or_default().to_string_lossy());
            after
        } else {
            return Err(format!("--log-file: {name}: behind % is p, q{{NAME}} or %"));
        };
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::expanded;

    #[test]
    fn names_have_numbers_and_variables() {
        let id = std::process::id();
        assert_eq!(expanded("log"), Ok("log".into()));
        assert_eq!(expanded("a.%p.%%.%q{NO_SUCH_VARIABLE}b"), Ok(format!("a.{id}.%.b")));
        assert!(expanded("a%q").is_err() && expanded("a%").is_err() && expanded("%x").is_err());
        let path = std::env::var("PATH").unwrap();
        assert_eq!(expanded("%q{PATH}"), Ok(path));
    }
}
