//! A module, and what a tier has made of its functions so far: made when first used, kept as long as somebody may
//! launch one.
//!
//! Those who launch pass it on and need not know what is in it: each tier adds its own way in (`interp/code.rs`).

use std::any::Any;
use std::sync::{Arc, OnceLock};

use crate::program::{Function, Module, passes};

pub struct Executables {
    pub module: Arc<Module>,
    forms: Box<[Forms]>,
    /// By function, what an observer asks of kernels each time that one starts.
    answers: Box<[[OnceLock<bool>; 2]]>,
    /// For launches with which nobody wants to know what is wrong.
    bare: OnceLock<Arc<Executables>>,
    /// Its functions lack the checks that are there for whoever wants to know.
    is_bare: bool,
}

/// The forms of one function, of a type that its tier chooses.
type Forms = OnceLock<Box<dyn Any + Send + Sync>>;

impl Executables {
    pub fn new(module: Arc<Module>) -> Executables {
        let forms = module.functions.iter().map(|_| Forms::new()).collect();
        let answers = module.functions.iter().map(|_| Default::default()).collect();
        Executables {
            module,
            forms,
            answers,
            bare: OnceLock::new(),
            is_bare: false,
        }
    }

    /// The same module with forms of its own, which lack what passes have added to find mistakes ([`passes::strip`]).
    pub fn bare(&self) -> &Arc<Executables> {
        self.bare.get_or_init(|| {
            Arc::new(Executables {
                is_bare: true,
                ..Executables::new(Arc::clone(&self.module))
            })
        })
    }

    /// A function of the module as its forms here have it.
    pub(super) fn own(&self, function: &Arc<Function>) -> Arc<Function> {
        match self.is_bare {
            true => passes::strip(function).map_or_else(|| Arc::clone(function), Arc::new),
            false => Arc::clone(function),
        }
    }

    /// Functions whose forms are there already: programs built by hand.
    #[cfg(test)]
    pub(super) fn with<T: Any + Send + Sync>(module: Module, forms: Vec<T>) -> Executables {
        let boxed = |form: T| Forms::from(Box::new(form) as Box<dyn Any + Send + Sync>);
        Executables {
            answers: module.functions.iter().map(|_| Default::default()).collect(),
            module: Arc::new(module),
            forms: forms.into_iter().map(boxed).collect(),
            bare: OnceLock::new(),
            is_bare: false,
        }
    }

    /// What a tier keeps of function `index`.
    pub(super) fn forms<T: Any + Send + Sync + Default>(&self, index: u32) -> &T {
        let forms = self.forms[index as usize].get_or_init(|| Box::new(T::default()));
        forms.downcast_ref().expect("one tier keeps forms here")
    }

    /// What the one observer that asks has found out of a kernel, by the number of its question; `find` is asked the first time.
    pub fn answer(&self, kernel: u32, question: usize, find: impl FnOnce() -> bool) -> bool {
        *self.answers[kernel as usize][question].get_or_init(find)
    }
}
