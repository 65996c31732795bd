//! Surface coordinates → addresses (PTX ISA, suld, sust, sured).

use super::{Geometry, Surface};

impl Surface {
    /// Where `bytes` bytes at these coordinates lie; x counts units of `unit` bytes. Outside of the surface: with
    /// `clamp` the nearest place inside, otherwise `None`. The place is always within the surface's memory.
    pub fn place(
        &self,
        geometry: Geometry,
        layer: u32,
        at: [i32; 3],
        unit: u32,
        bytes: u32,
        clamp: bool,
    ) -> Option<u64> {
        let image = &self.image;
        let level = &image.levels[0];
        let dimensions = geometry.dimensions();
        let row = i64::from(level.width) * i64::from(image.format.bytes());
        let inside = |value: i64, last: i64| match (0..=last).contains(&value) {
            true => Some(value as u64),
            false if clamp && last >= 0 => Some(value.clamp(0, last) as u64),
            false => None,
        };
        let unit = i64::from(unit);
        let last = (row - i64::from(bytes)).div_euclid(unit) * unit;
        let x = inside(i64::from(at[0]) * unit, last)?;
        let y = match dimensions {
            1 => 0,
            _ => inside(at[1].into(), i64::from(level.height) - 1)?,
        };
        let z = match (geometry.is_array(), dimensions) {
            (true, _) => inside(layer.into(), i64::from(image.layers.max(1)) - 1)?,
            (false, 3) => inside(at[2].into(), i64::from(level.depth) - 1)?,
            (false, _) => 0,
        };
        Some(level.address + z * level.slice + y * level.pitch + x)
    }
}
