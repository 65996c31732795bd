//! Directions → faces of a cube, and back (CUDA C++ Programming Guide, Cubemap Textures).

/// Face, and the coordinates on it from -1 to 1 with the length of the major axis: (s, t, m).
pub fn face(direction: [f64; 3]) -> (u32, [f64; 3]) {
    let [x, y, z] = direction;
    let (a, b, c) = (x.abs(), y.abs(), z.abs());
    if c >= a && c >= b {
        match z.is_sign_negative() {
            false => (4, [x, -y, c]),
            true => (5, [-x, -y, c]),
        }
    } else if b >= a {
        match y.is_sign_negative() {
            false => (2, [x, z, b]),
            true => (3, [x, -z, b]),
        }
    } else {
        match x.is_sign_negative() {
            false => (0, [-z, -y, a]),
            true => (1, [z, -y, a]),
        }
    }
}

/// The direction of a point of a face, its major axis of length 1.
pub fn direction(face: u32, s: f64, t: f64) -> [f64; 3] {
    match face {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    }
}

/// A vector's components along a face's s, t and major axis.
pub fn along(face: u32, v: [f64; 3]) -> [f64; 3] {
    let [x, y, z] = v;
    match face {
        0 => [-z, -y, x],
        1 => [z, -y, -x],
        2 => [x, z, y],
        3 => [x, -z, -y],
        4 => [x, -y, z],
        _ => [-x, -y, -z],
    }
}

/// The texel (x, y) beside or beyond the edges of a face of `size` texels, as one of the neighbour's: face and texel.
/// `None` at a corner, where there is no fourth.
pub fn across(at: u32, x: i64, y: i64, size: i64) -> Option<(u32, i64, i64)> {
    let inside = |v: i64| (0..size).contains(&v);
    match (inside(x), inside(y)) {
        (true, true) => return Some((at, x, y)),
        (false, false) => return None,
        _ => {}
    }
    let centre = |v: i64| (2 * v + 1 - size) as f64 / size as f64;
    let (next, [s, t, m]) = face(direction(at, centre(x), centre(y)));
    let index = |v: f64| (((v / m + 1.0) / 2.0 * size as f64).floor() as i64).clamp(0, size - 1);
    Some((next, index(s), index(t)))
}
