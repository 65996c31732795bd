use collatz::{KERNEL, WRONG_KERNEL, steps};

fn on_the_cpu(number: u32) -> u32 {
    let next = |n: &u64| (*n > 1).then(|| if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 });
    std::iter::successors(Some(u64::from(number)), next).count() as u32 - 1
}

/// 159487 is the first number whose sequence leaves 32 bits (OEIS A006884).
fn compare(ptx: &str) {
    let numbers: Vec<u32> = (159_000..160_000).collect();
    let got = steps(ptx, &numbers).expect("CUDA works");
    for (number, got) in numbers.into_iter().zip(got) {
        assert_eq!(got, on_the_cpu(number), "the steps of {number} differ from the CPU's");
    }
}

#[test]
fn steps_are_those_of_the_cpu() {
    compare(KERNEL);
}

/// OEIS A006577: the first numbers of steps.
#[test]
fn first_steps_are_those_of_the_literature() {
    let numbers: Vec<u32> = (1..=10).collect();
    assert_eq!(
        steps(KERNEL, &numbers).expect("CUDA works"),
        [0, 1, 7, 2, 5, 8, 16, 3, 19, 6]
    );
}

/// The test itself is tested: a kernel with a mistake must be found.
#[test]
#[should_panic(expected = "the steps of 159487 differ from the CPU's")]
fn mistake_is_found() {
    compare(WRONG_KERNEL);
}
