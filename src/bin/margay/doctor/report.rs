//! What was seen and what is wrong, as it is printed.

use std::fmt;

#[derive(Default)]
pub struct Report {
    /// What was looked at, and what it is.
    seen: Vec<(&'static str, String)>,
    /// What is wrong, and what to do about it.
    problems: Vec<(String, String)>,
    /// What is not wrong, and may surprise.
    notes: Vec<String>,
}

impl Report {
    pub fn seen(&mut self, what: &'static str, text: impl Into<String>) {
        self.seen.push((what, text.into()));
    }

    /// The same problem found twice is one; an empty remedy is none.
    pub fn problem(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        let problem = (what.into(), remedy.into());
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for (what, text) in &self.seen {
            let heading = if *what == last { "" } else { what };
            last = what;
            writeln!(f, "{heading:9} {}", indented(text, 10))?;
        }
        for note in &self.notes {
            writeln!(f, "{:9} {}", "note", indented(note, 10))?;
        }
        writeln!(f)?;
        match self.problems.len() {
            0 => writeln!(f, "No problem found.")?,
            1 => writeln!(f, "1 problem found:")?,
            n => writeln!(f, "{n} problems found:")?,
        }
        for (number, (what, remedy)) in (1..).zip(&self.problems) {
            writeln!(f, "{number:3}. {}", indented(what, 5))?;
            if !remedy.is_empty() {
                writeln!(f, "     What to do: {}", indented(remedy, 5))?;
            }
        }
        Ok(())
    }
}

/// Lines after the first one begin in the same column.
fn indented(text: &str, column: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{:column$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_once_and_with_its_remedy() {
        let mut report = Report::default();
        assert_eq!(report.to_string(), "\nNo problem found.\n");
        report.seen("machine", "small\nand old");
        report.seen("machine", "slow");
        report.note("It is late.");
        report.problem("Nothing works.", "Wait.");
        report.problem("Nothing works.", "Wait.");
        let expected = "\
machine   small
          and old
          slow
note      It is late.

1 problem found:
  1. Nothing works.
     What to do: Wait.
";
        assert_eq!(report.to_string(), expected);
    }
}
