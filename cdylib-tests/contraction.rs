//! `MARGAY_FMAD`: whether a product and a sum are rounded once or twice. Expectations: f32 arithmetic of the host.

use std::ptr::null_mut;

use crate::alone::alone;
use crate::c::*;
use crate::test_name;

/// 1 + 2^-12, whose square has a bit that one rounding drops and a fused operation keeps.
const A: f32 = 1.000_244_1;
const C: f32 = -1.000_488_3;

/// Results: mul+add open, mul.rn+add, mul+add.rn, product used twice, mul−c, c−mul, saturated.
fn results() -> [f32; 7] {
    let text = c".version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out, .param .f32 pa, .param .f32 pc)
{
    .reg .b64 %out;
    .reg .f32 %a, %b, %c, %m<7>, %r<7>, %n;
    ld.param.u64 %out, [out];
    ld.param.f32 %a, [pa];
    ld.param.f32 %c, [pc];
    neg.f32 %n, %c;
    mul.f32 %m0, %a, %a;
    add.f32 %r0, %m0, %c;
    st.global.f32 [%out], %r0;
    mul.rn.f32 %m1, %a, %a;
    add.f32 %r1, %m1, %c;
    st.global.f32 [%out+4], %r1;
    mul.f32 %m2, %a, %a;
    add.rn.f32 %r2, %m2, %c;
    st.global.f32 [%out+8], %r2;
    mul.f32 %m3, %a, %a;
    add.f32 %r3, %m3, %c;
    add.f32 %r3, %r3, %m3;
    st.global.f32 [%out+12], %r3;
    mul.f32 %m4, %a, %a;
    sub.f32 %r4, %m4, %n;
    st.global.f32 [%out+16], %r4;
    mul.f32 %m5, %a, %a;
    sub.f32 %r5, %c, %m5;
    st.global.f32 [%out+20], %r5;
    mul.f32 %m6, %a, %a;
    add.sat.f32 %r6, %c, %m6;
    st.global.f32 [%out+24], %r6;
    ret;
}
";
    ok(cuInit(0));
    let mut context = null_mut();
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
    ok(cuModuleGetFunction(&mut function, module, c"kernel".as_ptr()));
    let mut out = 0;
    ok(cuMemAlloc(&mut out, 28));
    let (mut to, mut a, mut c) = (out, A, C);
    let mut parameters = [(&raw mut to).cast(), (&raw mut a).cast(), (&raw mut c).cast()];
    // Parameters from memory: nothing here is known before the launch.
    ok(cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    let mut results = [0f32; 7];
    ok(cuMemcpyDtoH(results.as_mut_ptr().cast(), out, 28));
    ok(cuMemFree(out));
    results
}

#[test]
fn a_product_and_a_sum_are_rounded_apart_where_that_is_asked_for() {
    alone(test_name!(), &[("MARGAY_FMAD", "0")], || {
        let twice = A * A + C;
        assert_ne!(twice, A.mul_add(A, C));
        assert_eq!(
            results(),
            [
                twice,
                twice,
                twice,
                twice + A * A,
                twice,
                C - A * A,
                twice.clamp(0.0, 1.0)
            ]
        );
    });
}

#[test]
fn they_are_contracted_by_default_where_the_text_leaves_it_open() {
    alone(test_name!(), &[("MARGAY_FMAD", "")], || {
        let (once, twice) = (A.mul_add(A, C), A * A + C);
        let expected = [
            once,
            twice,
            twice,
            A.mul_add(A, once),
            once,
            (-A).mul_add(A, C),
            once.clamp(0.0, 1.0),
        ];
        assert_eq!(results(), expected);
    });
}
