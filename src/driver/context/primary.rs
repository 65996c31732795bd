//! Primary contexts: retained, released, reset. What of the program's runs while one is emptied may ask for it again.

use std::sync::Arc;

use parking_lot::MutexGuard;

use super::{Context, Life, Users};
use crate::driver::per_thread;
use crate::driver::stream::check_host_function;
use crate::driver::{Device, Error, Result};

impl Context {
    /// `cuDevicePrimaryCtxRetain`: waits while another thread empties it. A destructor that runs under that gets it at once;
    /// a host function that it waits for gets 800.
    pub fn primary_retain(device: &'static Device) -> Result<Arc<Context>> {
        let context = device.primary();
        let mut users = context.users.lock();
        while let Some(thread) = users.emptied_by {
            // Whichever thread runs it: the one that empties the context helps its streams to end.
            check_host_function()?;
            if thread == per_thread::number() {
                users.revived = true;
                break;
            }
            context.ended.wait(&mut users);
        }
        users.count = users.count.checked_add(1).ok_or(Error::InvalidValue)?;
        context.set_life(Life::Active);
        Ok(Arc::clone(context))
    }

    /// `cuDevicePrimaryCtxRelease`: 201 when it is not retained.
    pub fn primary_release(device: &'static Device) -> Result<()> {
        check_host_function()?;
        let context = device.primary();
        let mut users = context.users.lock();
        users.count = users.count.checked_sub(1).ok_or(Error::InvalidContext)?;
        if users.count == 0 {
            context.empty_as_primary(users);
        }
        Ok(())
    }

    /// `cuDevicePrimaryCtxReset`: ends everything in it; it stays retained as often as it was.
    pub fn primary_reset(device: &'static Device) -> Result<()> {
        check_host_function()?;
        let context = device.primary();
        context.empty_as_primary(context.users.lock());
        Ok(())
    }

    /// Empties a primary context; what runs under it and asks for the same is content with that. Whoever comes from another
    /// thread waits until it is done, unless the context is to stay for others by then.
    fn empty_as_primary(self: &Arc<Context>, mut users: MutexGuard<'_, Users>) {
        if let Some(thread) = users.emptied_by {
            if thread == per_thread::number() {
                users.revived &= users.count > 0;
            } else {
                self.ended.wait_while(&mut users, |users| users.emptied_by.is_some());
            }
            return;
        }
        if self.life() != Life::Active {
            return;
        }
        users.emptied_by = Some(per_thread::number());
        users.revived = false;
        drop(users);
        let _emptying = Emptying(self);
        self.empty();
    }

    /// `cuDevicePrimaryCtxGetState`: flags, and whether it is active.
    pub fn primary_state(device: &'static Device) -> (u32, bool) {
        let context = device.primary();
        (context.flags(), context.life() == Life::Active)
    }

    /// `cuDevicePrimaryCtxSetFlags`.
    pub fn primary_set_flags(device: &'static Device, flags: u32) -> Result<()> {
        device.primary().set_flags(flags)
    }
}

/// A primary context is being emptied; at its end those who wait go on, whatever happened.
struct Emptying<'a>(&'a Context);

impl Drop for Emptying<'_> {
    fn drop(&mut self) {
        let mut users = self.0.users.lock();
        users.emptied_by = None;
        self.0
            .set_life(if users.revived { Life::Active } else { Life::Inactive });
        self.0.ended.notify_all();
    }
}
