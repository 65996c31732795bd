//! The command `margay`, started as people start it.

use crate::alone::{Run, finish, plain_environment};
use crate::c;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sample(name: &str) -> String {
    format!("{}/tests/data/fatbin/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn margay(path: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let mut command = Command::new(path);
    command
        .args(arguments)
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("LD_PRELOAD");
    plain_environment(&mut command);
    command.envs(environment.iter().copied());
    finish(command, "margay")
}

fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_margay"))
}

/// An installation of the command and the library in a directory of its own, gone when dropped.
struct Installation(PathBuf);

impl Installation {
    fn new(name: &str, library: &str) -> Installation {
        let root = std::env::temp_dir().join(format!("margay-test-{}-{name}", std::process::id()));
        let library = root.join(library);
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        std::fs::copy(built(), root.join("bin/margay")).unwrap();
        std::os::unix::fs::symlink(c::library_path(), library).unwrap();
        Installation(root.canonicalize().unwrap())
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        margay(&self.0.join("bin/margay"), &[&["run"], arguments].concat(), environment)
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SHOW: [&str; 3] = [
    "sh",
    "-c",
    "echo \"$LD_LIBRARY_PATH,$LD_PRELOAD\"; cut -d' ' -f6- /proc/$$/maps",
];

#[test]
fn run_puts_the_library_first() {
    let installed = Installation::new("lib", "lib/libcuda.so.1");
    let directory = installed.0.join("lib").display().to_string();
    let run = installed.run(&[&["--"], &SHOW[..]].concat(), &[("LD_LIBRARY_PATH", "/elsewhere")]);
    assert_eq!(
        run.stdout.lines().next(),
        Some(format!("{directory}:/elsewhere,").as_str())
    );
    // An empty list gains no empty element: that would be the current directory.
    let run = installed.run(&SHOW, &[("LD_LIBRARY_PATH", "")]);
    assert_eq!(run.stdout.lines().next(), Some(format!("{directory},").as_str()));
}

#[test]
fn run_can_preload_the_library() {
    let installed = Installation::new("preload", "lib/libcuda.so.1");
    let run = installed.run(&[&["--preload", "--"], &SHOW[..]].concat(), &[]);
    let directory = installed.0.join("lib").display().to_string();
    assert_eq!(
        run.stdout.lines().next(),
        Some(format!("{directory},{directory}/libcuda.so.1").as_str())
    );
    // The loader took it: no complaint, and it is mapped.
    assert_eq!(run.stderr, "");
    assert!(run.stdout.contains("libcuda.so"), "{}", run.stdout);
}

#[test]
fn run_makes_the_name_that_cargo_does_not() {
    let installed = Installation::new("cargo", "bin/libcuda.so");
    let run = installed.run(&SHOW, &[]);
    assert!(
        run.stdout.starts_with(&installed.0.join("bin").display().to_string()),
        "{}",
        run.stdout
    );
    assert!(installed.0.join("bin/libcuda.so.1").is_file());
}

#[test]
fn run_ends_as_the_program_ends() {
    let installed = Installation::new("exit", "lib/libcuda.so.1");
    assert_eq!(installed.run(&["--", "sh", "-c", "exit 7"], &[]).status.code(), Some(7));
    let absent = installed.run(&["--", "/no/such/program"], &[]);
    assert_eq!(absent.status.code(), Some(127));
    assert!(
        absent.stderr.starts_with("margay run: /no/such/program: "),
        "{}",
        absent.stderr
    );
    assert_eq!(installed.run(&["--", "/"], &[]).status.code(), Some(126));
    // Options behind the program are the program's.
    assert_eq!(installed.run(&["echo", "--preload"], &[]).stdout, "--preload\n");
}

#[test]
fn info_lists_every_variable_with_its_value() {
    let run = margay(
        built(),
        &["info"],
        &[("MARGAY_DEVICES", "2"), ("MARGAY_DEVICE_COUNT", "2")],
    );
    assert!(run.status.success());
    assert!(run.stdout.contains("MARGAY_DEVICES   2 (set)"), "{}", run.stdout);
    assert!(
        run.stdout.contains("MARGAY_DEVICE    sm_120 (default)"),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr.contains("MARGAY_DEVICE_COUNT is no variable of Margay's"),
        "{}",
        run.stderr
    );
}

#[test]
fn image_lists_what_files_hold() {
    let run = margay(
        built(),
        &["image", &sample("several.fatbin"), &sample("sass.fatbin"), "/no/file"],
        &[],
    );
    let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("PTX for sm_75, sm_90a and sm_100f; machine code for sm_75"),
        "{words}"
    );
    assert!(words.contains("unit 0 runs from PTX for sm_75, PTX ISA 9.5"), "{words}");
    assert!(
        words.contains("holds no PTX, which is what Margay runs; it holds machine code for sm_90"),
        "{words}"
    );
    assert!(
        run.stderr.starts_with("margay image: /no/file: No such file"),
        "{}",
        run.stderr
    );
    assert_eq!(run.status.code(), Some(1));
}

#[test]
fn image_prints_the_ptx_for_a_device() {
    let ptx = |device| {
        margay(
            built(),
            &["image", "--ptx", &sample("concat.fatbin")],
            &[("MARGAY_DEVICE", device)],
        )
    };
    assert!(ptx("sm_90").stdout.contains(".target sm_90a"));
    assert!(ptx("sm_100").stdout.contains(".target sm_100f"));
    assert!(ptx("sm_120").stdout.contains(".target sm_75"));
    assert_eq!(
        ptx("big").stderr,
        "margay image: MARGAY_DEVICE=big: expected something like sm_120\n"
    );
}

/// What a compiler writes has values of every kind that the printed form knows.
#[test]
fn lower_prints_what_nvcc_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nvcc");
    let mut printed = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Parts of a program call what other parts define.
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".ptx") || name.starts_with("rdc_") {
            continue;
        }
        let run = margay(built(), &["ptx", "lower", path.to_str().unwrap()], &[]);
        assert!(run.status.success(), "{name}: {run:?}");
        assert!(run.stdout.contains("b0:"), "{name}: {}", run.stdout);
        printed += 1;
    }
    assert!(printed > 20, "{printed} texts");
}
