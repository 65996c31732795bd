//! What `cuModuleLoad*` is handed → PTX text.
