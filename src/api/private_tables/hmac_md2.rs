//! HMAC (RFC 2104) with MD2 (RFC 1319): what cudart checks the driver with.
//!
//! It protects nothing (MD2 is broken), and is here for that check alone.

/// Digest and block size.
const SIZE: usize = 16;

/// The permutation of RFC 1319, made of the digits of pi (its table `PI_SUBST`).
#[rustfmt::skip]
const PI: [u8; 256] = [
    41, 46, 67, 201, 162, 216, 124, 1, 61, 54, 84, 161, 236, 240, 6, 19,
    98, 167, 5, 243, 192, 199, 115, 140, 152, 147, 43, 217, 188, 76, 130, 202,
    30, 155, 87, 60, 253, 212, 224, 22, 103, 66, 111, 24, 138, 23, 229, 18,
    190, 78, 196, 214, 218, 158, 222, 73, 160, 251, 245, 142, 187, 47, 238, 122,
    169, 104, 121, 145, 21, 178, 7, 63, 148, 194, 16, 137, 11, 34, 95, 33,
    128, 127, 93, 154, 90, 144, 50, 39, 53, 62, 204, 231, 191, 247, 151, 3,
    255, 25, 48, 179, 72, 165, 181, 209, 215, 94, 146, 42, 172, 86, 170, 198,
    79, 184, 56, 210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4, 241,
    69, 157, 112, 89, 100, 113, 135, 32, 134, 91, 207, 101, 230, 45, 168, 2,
    27, 96, 37, 173, 174, 176, 185, 246, 28, 70, 97, 105, 52, 64, 126, 15,
    85, 71, 163, 35, 221, 81, 175, 58, 195, 92, 249, 206, 186, 197, 234, 38,
    44, 83, 13, 110, 133, 40, 132, 9, 211, 223, 205, 244, 65, 129, 77, 82,
    106, 220, 55, 200, 108, 193, 171, 250, 36, 225, 123, 8, 12, 189, 177, 74,
    120, 136, 149, 139, 227, 99, 232, 109, 233, 203, 213, 254, 59, 0, 29, 57,
    242, 239, 183, 14, 102, 88, 208, 228, 166, 119, 114, 248, 235, 117, 75, 10,
    49, 68, 80, 180, 143, 237, 31, 26, 219, 153, 141, 51, 159, 17, 131, 20,
];

/// MD2 of a message.
pub fn md2(message: &[u8]) -> [u8; SIZE] {
    // Padding: as many bytes as are missing to a whole block, at least one, each of them that number.
    let missing = SIZE - message.len() % SIZE;
    let mut padded = message.to_vec();
    padded.resize(message.len() + missing, missing as u8);

    let mut checksum = [0u8; SIZE];
    let mut last = 0;
    for block in padded.chunks_exact(SIZE) {
        for (sum, byte) in checksum.iter_mut().zip(block) {
            *sum ^= PI[usize::from(byte ^ last)];
            last = *sum;
        }
    }
    padded.extend_from_slice(&checksum);

    let mut state = [0u8; 3 * SIZE];
    for block in padded.chunks_exact(SIZE) {
        for (at, byte) in block.iter().enumerate() {
            state[SIZE + at] = *byte;
            state[2 * SIZE + at] = state[at] ^ byte;
        }
        let mut carry = 0u8;
        for round in 0..18u8 {
            for byte in &mut state {
                *byte ^= PI[usize::from(carry)];
                carry = *byte;
            }
            carry = carry.wrapping_add(round);
        }
    }
    let mut digest = [0; SIZE];
    digest.copy_from_slice(&state[..SIZE]);
    digest
}

/// HMAC-MD2 with a key of one block.
pub fn hmac(key: &[u8; SIZE], message: &[u8]) -> [u8; SIZE] {
    let mut inner = key.map(|byte| byte ^ 0x36).to_vec();
    inner.extend_from_slice(message);
    let mut outer = key.map(|byte| byte ^ 0x5c).to_vec();
    outer.extend_from_slice(&md2(&inner));
    md2(&outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: [u8; SIZE]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The test suite of RFC 1319, appendix A.5.
    #[test]
    fn md2_of_rfc_1319() {
        for (message, digest) in [
            ("", "8350e5a3e24c153df2275c9f80692773"),
            ("a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"),
            ("abc", "da853b0d3f88d99b30283a69e6ded6bb"),
            ("message digest", "ab4f496bfb2a530b219ff33031fe06b0"),
            ("abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"),
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "da33def2a42df13975352846c30338cd",
            ),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "d5976f79d83d3a0dc9806c3c66f3efd8",
            ),
        ] {
            assert_eq!(hex(md2(message.as_bytes())), digest, "{message:?}");
        }
    }

    /// Digests computed with PyCryptodome's HMAC and MD2.
    #[test]
    fn hmac_agrees_with_another_implementation() {
        let counting: [u8; SIZE] = std::array::from_fn(|index| index as u8);
        assert_eq!(
            hex(hmac(&counting, b"what do ya want for nothing?")),
            "022f90a619e88463118324aa4749d100"
        );
        assert_eq!(
            hex(hmac(&[0xaa; SIZE], &[0xdd; 50])),
            "ff09238e4bded84b5490bc42cfd5c265"
        );
        assert_eq!(hex(hmac(&[0x0b; SIZE], b"")), "04894b6d61529936cc9bf1611b3e1993");
    }
}
