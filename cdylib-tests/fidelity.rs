//! The table with which a process ends that was asked how exact it was.

use crate::alone::alone;
use crate::c::ok;
use crate::code::*;
use crate::test_name;

const KERNELS: &str = "
.visible .func helper() { .reg .f32 %a; mov.f32 %a, 0f3f000000; tanh.approx.f32 %a, %a; ret; }
.visible .entry runs()
{
    .reg .f32 %a;
    .reg .b32 %t;
    .reg .pred %p;
    mov.f32 %a, 0f3f800000;
    add.f32 %a, %a, %a;
    ex2.approx.ftz.f32 %a, %a;
    mov.u32 %t, %clock;
    call helper, ();
    mov.b32 %t, 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra over;
    ways: .branchtargets over, over;
    brx.idx %t, ways;
over:
    ret;
}
.visible .entry only_there()
{
    .reg .b32 %t;
    popc.b32 %t, %t;
    ret;
}";

#[test]
fn kernels_that_ran_are_listed_by_how_exact_they_are() {
    let run = alone(test_name!(), &[("MARGAY_FIDELITY", "1")], || {
        let _context = context();
        let module = module(KERNELS);
        function(module, "only_there");
        ok(try_launch(function(module, "runs"), 1, 1, &[]));
    });
    let table = run
        .stderr
        .split("how far the results of what ran are hardware's")
        .nth(1);
    let table = table.unwrap_or_else(|| panic!("no table in {:?}", run.stderr));
    let wanted = "
  exact
    add, bra, brx, call, mov, ret, setp
  exact as measured
    ex2.approx.ftz.f32, tanh.approx.f32
  this machine's own
    %clock
";
    assert!(table.ends_with(wanted), "{table}");
}

#[test]
fn nothing_is_listed_unasked() {
    let run = alone(test_name!(), &[], || {
        let _context = context();
        ok(try_launch(function(module(KERNELS), "runs"), 1, 1, &[]));
    });
    assert!(!run.stderr.contains("hardware's"), "{}", run.stderr);
}
