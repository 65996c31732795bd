//! Context-local storage, as the private tables of cudart have it.

use super::{Context, StorageDrop, Stored, with_stack};
use crate::driver::{Error, Result};

impl Context {
    /// Context-local storage of the private tables: shared by all threads, one value for each key.
    pub fn storage_put(&self, key: usize, value: usize, drop: Option<StorageDrop>) {
        let stored = Stored { key, value, drop };
        let mut storage = self.storage.write();
        match storage.iter_mut().find(|stored| stored.key == key) {
            Some(old) => *old = stored,
            None => storage.push(stored),
        }
    }

    /// Takes the value out without running its destructor.
    pub fn storage_delete(&self, key: usize) -> Result<()> {
        let mut storage = self.storage.write();
        let index = storage
            .iter()
            .position(|stored| stored.key == key)
            .ok_or(Error::InvalidHandle)?;
        storage.swap_remove(index);
        Ok(())
    }

    pub fn storage_get(&self, key: usize) -> Option<usize> {
        let storage = self.storage.read();
        let found = storage.iter().find(|stored| stored.key == key);
        found.map(|stored| stored.value)
    }

    /// [`Context::storage_get`] of the calling thread's context, without touching the context's count: the hottest call
    /// of cudart's.
    pub fn storage_get_current(key: usize) -> Result<usize> {
        with_stack(|stack| {
            let context = stack.last().ok_or(Error::InvalidContext)?;
            context.storage_get(key).ok_or(Error::InvalidHandle)
        })
    }
}
