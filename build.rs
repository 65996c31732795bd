//! Gives the cdylib the name that programs look for.
fn main() {
    // Without DT_SONAME glibc does not recognise a preloaded library as the `libcuda.so.1` that cudart asks dlopen for.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // Its threads and the handlers it registers outlive any dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
