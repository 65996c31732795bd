//! What `MARGAY_SEED` says, and the random numbers of a schedule (`schedule.rs`) that follow from it: they depend on the seed and
//! on the launch's own number alone.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a schedule is drawn: what is left to chance alone, or to chance and an intention. Each is legal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Everybody who can run is as likely to.
    #[default]
    Random,
    /// Blocks, bundles and fragments have priorities, and the first of those who can run does, until at a few moments the
    /// priorities are drawn anew (Burckhardt and others: A Randomized Scheduler with Probabilistic Guarantees of Finding
    /// Bugs, ASPLOS 2010).
    Priority,
    /// One block, and one bundle of each, runs when nobody else gets on.
    Delay,
    /// Later blocks, bundles and places in the code first.
    Backwards,
    /// Asynchronous copies end when somebody waits for them, and no sooner.
    Late,
    /// They end where they begin, and waits at barriers in memory often come back with nothing.
    Early,
}

impl Strategy {
    pub const ALL: [Strategy; 6] = [
        Strategy::Random,
        Strategy::Priority,
        Strategy::Delay,
        Strategy::Backwards,
        Strategy::Late,
        Strategy::Early,
    ];

    /// As `MARGAY_SEED` has it before the number.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Random => "random",
            Strategy::Priority => "priority",
            Strategy::Delay => "delay",
            Strategy::Backwards => "backwards",
            Strategy::Late => "late",
            Strategy::Early => "early",
        }
    }
}

/// Which order of threads, as `MARGAY_SEED` names it: `7`, `priority:7`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub strategy: Strategy,
    pub number: u64,
}

impl Order {
    /// The `n`-th one that is tried, counted from 0 and from a number on: the strategies take turns.
    pub fn nth(first: u64, n: u64) -> Order {
        let all = Strategy::ALL.len() as u64;
        Order {
            strategy: Strategy::ALL[(n % all) as usize],
            number: first.wrapping_add(n / all),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strategy {
            Strategy::Random => write!(f, "{}", self.number),
            strategy => write!(f, "{}:{}", strategy.word(), self.number),
        }
    }
}

impl From<u64> for Order {
    fn from(number: u64) -> Order {
        Order {
            number,
            ..Order::default()
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Order, String> {
        let (word, digits) = text.rsplit_once(':').unwrap_or((Strategy::Random.word(), text));
        let strategy = Strategy::ALL.into_iter().find(|strategy| strategy.word() == word);
        let number = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        match (strategy, number) {
            (Some(strategy), Ok(number)) => Ok(Order { strategy, number }),
            (None, _) => {
                let words: Vec<&str> = Strategy::ALL.into_iter().map(Strategy::word).collect();
                Err(format!("expected one of {} before the number", words.join(", ")))
            }
            (Some(_), Err(_)) => {
                Err("expected a number, such as 7, or a strategy and a number, such as priority:7".into())
            }
        }
    }
}

/// What `MARGAY_SEED` says: an order for all launches, and others for some, by number, as in `1,12=priority:7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    pub all: Order,
    apart: Vec<(u64, Order)>,
}

impl Orders {
    /// Of launch number `launch`.
    pub fn of(&self, launch: u64) -> Order {
        let apart = self.apart.iter().find(|(number, _)| *number == launch);
        apart.map_or(self.all, |(_, order)| *order)
    }
}

impl FromStr for Orders {
    type Err = String;

    fn from_str(text: &str) -> Result<Orders, String> {
        let mut parts = text.split(',');
        let all = parts.next().unwrap_or_default().trim().parse()?;
        let apart = parts.map(|part| {
            let (launch, order) = part
                .trim()
                .split_once('=')
                .ok_or("expected LAUNCH=SEED behind a comma")?;
            let launch = launch
                .parse()
                .map_err(|_| "expected the number of a launch behind a comma")?;
            Ok((launch, order.parse()?))
        });
        let apart = apart.collect::<Result<_, String>>()?;
        Ok(Orders { all, apart })
    }
}

/// Where a launch's random numbers come from.
#[derive(Debug)]
pub struct Seed {
    number: u64,
    strategy: Strategy,
    /// What is launched more than once (a graph's node) is not the same every time.
    runs: AtomicU64,
}

/// What one run of a launch, or a child of it, draws from.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    pub number: u64,
    pub strategy: Strategy,
}

impl Seed {
    /// For launch number `launch` of a process, or of whatever else counts launches.
    pub fn new(order: impl Into<Order>, launch: u64) -> Seed {
        Seed::at(order.into(), launch, 0)
    }

    /// As [`Seed::new`], where there have been so many runs already.
    pub fn at(order: Order, launch: u64, runs: u64) -> Seed {
        // Numbers without a strategy mean what they always have.
        let salt = order.strategy as u64;
        Seed {
            number: mix(mix(order.number ^ salt << 56) ^ launch),
            strategy: order.strategy,
            runs: AtomicU64::new(runs),
        }
    }

    /// Counts a run, and says how many there were before.
    pub fn count(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn next_run(&self) -> Drawn {
        Drawn {
            number: below(self.number, self.count()),
            strategy: self.strategy,
        }
    }
}

impl Drawn {
    /// Of the `n`-th thing that its kernels launch.
    pub(super) fn of_child(self, n: u64) -> Drawn {
        Drawn {
            number: below(self.number, n),
            ..self
        }
    }
}

/// The seed of the `n`-th thing below one.
fn below(seed: u64, n: u64) -> u64 {
    mix(seed ^ mix(n ^ 0xC0DE))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(GOLDEN);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_written() {
        for n in 0..13 {
            let order = Order::nth(5, n);
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        let orders: Orders = "3,12=delay:7, 4=0x10".parse().expect("it is right");
        assert_eq!(orders.of(1).to_string(), "3");
        assert_eq!(orders.of(12).to_string(), "delay:7");
        assert_eq!(orders.of(4).to_string(), "16");
        for wrong in ["-1", "", "some:1", "delay:", "1,2", "1,x=2"] {
            assert!(wrong.parse::<Orders>().is_err(), "{wrong}");
        }
    }
}
