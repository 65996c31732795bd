//! The functions of LLVM's C interface that are called here, as its headers declare them; they are the same from LLVM 19 to 22.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Types that only LLVM looks into.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        })*
    };
}

opaque!(Context Module MemoryBuffer Target TargetMachine TargetData PassBuilderOptions Error DiagnosticInfo);
opaque!(Value Type BasicBlock Builder Use);

/// `LLVMCodeGenOptLevel`
pub const CODEGEN_LEVELS: [c_uint; 4] = [0, 1, 2, 3];
/// `LLVMRelocPIC`
pub const RELOC_PIC: c_uint = 2;
/// `LLVMCodeModelSmall`
pub const CODE_MODEL_SMALL: c_uint = 3;
/// `LLVMAssemblyFile`, `LLVMObjectFile`
pub const ASSEMBLY_FILE: c_uint = 0;
pub const OBJECT_FILE: c_uint = 1;
/// `LLVMReturnStatusAction`
pub const RETURN_STATUS: c_uint = 2;
/// `LLVMDSError`
pub const SEVERITY_ERROR: c_uint = 0;

unsafe extern "C" {
    pub fn LLVMInitializeX86TargetInfo();
    pub fn LLVMInitializeX86Target();
    pub fn LLVMInitializeX86TargetMC();
    pub fn LLVMInitializeX86AsmPrinter();
    pub fn LLVMInitializeX86AsmParser();
    /// What it has to say of options that it does not know goes nowhere.
    pub fn LLVMParseCommandLineOptions(count: c_int, words: *const *const c_char, overview: *const c_char);
    pub fn LLVMInstallFatalErrorHandler(handler: extern "C" fn(*const c_char));

    pub fn LLVMContextCreate() -> *mut Context;
    pub fn LLVMContextDispose(context: *mut Context);
    pub fn LLVMContextSetDiagnosticHandler(
        context: *mut Context,
        handler: extern "C" fn(*mut DiagnosticInfo, *mut c_void),
        data: *mut c_void,
    );
    pub fn LLVMGetDiagInfoSeverity(info: *mut DiagnosticInfo) -> c_uint;
    pub fn LLVMGetDiagInfoDescription(info: *mut DiagnosticInfo) -> *mut c_char;

    pub fn LLVMCreateMemoryBufferWithMemoryRange(
        data: *const c_char,
        length: usize,
        name: *const c_char,
        has_nul_after_it: c_int,
    ) -> *mut MemoryBuffer;
    pub fn LLVMGetBufferStart(buffer: *mut MemoryBuffer) -> *const c_char;
    pub fn LLVMGetBufferSize(buffer: *mut MemoryBuffer) -> usize;
    pub fn LLVMDisposeMemoryBuffer(buffer: *mut MemoryBuffer);

    pub fn LLVMParseIRInContext(
        context: *mut Context,
        buffer: *mut MemoryBuffer,
        module: *mut *mut Module,
        message: *mut *mut c_char,
    ) -> c_int;
    pub fn LLVMVerifyModule(module: *mut Module, action: c_uint, message: *mut *mut c_char) -> c_int;
    pub fn LLVMPrintModuleToString(module: *mut Module) -> *mut c_char;
    pub fn LLVMSetTarget(module: *mut Module, triple: *const c_char);
    pub fn LLVMSetModuleDataLayout(module: *mut Module, layout: *mut TargetData);
    pub fn LLVMDisposeModule(module: *mut Module);
    pub fn LLVMDisposeMessage(message: *mut c_char);

    pub fn LLVMGetTargetFromTriple(triple: *const c_char, target: *mut *mut Target, message: *mut *mut c_char)
    -> c_int;
    pub fn LLVMCreateTargetMachine(
        target: *mut Target,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        level: c_uint,
        reloc: c_uint,
        code_model: c_uint,
    ) -> *mut TargetMachine;
    pub fn LLVMDisposeTargetMachine(machine: *mut TargetMachine);
    pub fn LLVMCreateTargetDataLayout(machine: *mut TargetMachine) -> *mut TargetData;
    pub fn LLVMCopyStringRepOfTargetData(layout: *mut TargetData) -> *mut c_char;
    pub fn LLVMDisposeTargetData(layout: *mut TargetData);
    pub fn LLVMTargetMachineEmitToMemoryBuffer(
        machine: *mut TargetMachine,
        module: *mut Module,
        kind: c_uint,
        message: *mut *mut c_char,
        buffer: *mut *mut MemoryBuffer,
    ) -> c_int;

    pub fn LLVMCreatePassBuilderOptions() -> *mut PassBuilderOptions;
    pub fn LLVMDisposePassBuilderOptions(options: *mut PassBuilderOptions);
    pub fn LLVMRunPasses(
        module: *mut Module,
        passes: *const c_char,
        machine: *mut TargetMachine,
        options: *mut PassBuilderOptions,
    ) -> *mut Error;
    /// Consumes the error.
    pub fn LLVMGetErrorMessage(error: *mut Error) -> *mut c_char;
    pub fn LLVMDisposeErrorMessage(message: *mut c_char);

    pub fn LLVMGetFirstFunction(module: *mut Module) -> *mut Value;
    pub fn LLVMGetNextFunction(function: *mut Value) -> *mut Value;
    pub fn LLVMGetFirstBasicBlock(function: *mut Value) -> *mut BasicBlock;
    pub fn LLVMGetNextBasicBlock(block: *mut BasicBlock) -> *mut BasicBlock;
    pub fn LLVMGetFirstInstruction(block: *mut BasicBlock) -> *mut Value;
    pub fn LLVMGetNextInstruction(instruction: *mut Value) -> *mut Value;
    /// The value, or null if it is no instruction.
    pub fn LLVMIsAInstruction(value: *mut Value) -> *mut Value;
    pub fn LLVMGetInstructionOpcode(instruction: *mut Value) -> c_uint;
    pub fn LLVMIsConstant(value: *mut Value) -> c_int;
    pub fn LLVMGetNumOperands(value: *mut Value) -> c_int;
    pub fn LLVMGetOperand(value: *mut Value, at: c_uint) -> *mut Value;
    pub fn LLVMSetOperand(user: *mut Value, at: c_uint, value: *mut Value);
    pub fn LLVMGetFirstUse(value: *mut Value) -> *mut Use;
    pub fn LLVMGetNextUse(one: *mut Use) -> *mut Use;
    pub fn LLVMGetUser(one: *mut Use) -> *mut Value;

    pub fn LLVMTypeOf(value: *mut Value) -> *mut Type;
    pub fn LLVMGetTypeKind(ty: *mut Type) -> c_uint;
    pub fn LLVMGetElementType(ty: *mut Type) -> *mut Type;
    pub fn LLVMGetVectorSize(ty: *mut Type) -> c_uint;
    pub fn LLVMGetIntTypeWidth(ty: *mut Type) -> c_uint;
    pub fn LLVMInt32TypeInContext(context: *mut Context) -> *mut Type;
    pub fn LLVMFunctionType(result: *mut Type, operands: *mut *mut Type, count: c_uint, has_more: c_int) -> *mut Type;

    pub fn LLVMConstInt(ty: *mut Type, value: u64, is_signed: c_int) -> *mut Value;
    pub fn LLVMConstVector(values: *mut *mut Value, count: c_uint) -> *mut Value;
    pub fn LLVMGetPoison(ty: *mut Type) -> *mut Value;
    pub fn LLVMGetInlineAsm(
        function: *mut Type,
        text: *const c_char,
        length: usize,
        constraints: *const c_char,
        constraints_length: usize,
        has_side_effects: c_int,
        aligns_stack: c_int,
        dialect: c_uint,
        can_throw: c_int,
    ) -> *mut Value;

    pub fn LLVMCreateBuilderInContext(context: *mut Context) -> *mut Builder;
    pub fn LLVMDisposeBuilder(builder: *mut Builder);
    pub fn LLVMPositionBuilderBefore(builder: *mut Builder, instruction: *mut Value);
    pub fn LLVMBuildCall2(
        builder: *mut Builder,
        ty: *mut Type,
        function: *mut Value,
        operands: *mut *mut Value,
        count: c_uint,
        name: *const c_char,
    ) -> *mut Value;
    pub fn LLVMBuildShuffleVector(
        builder: *mut Builder,
        a: *mut Value,
        b: *mut Value,
        places: *mut Value,
        name: *const c_char,
    ) -> *mut Value;
}

/// What there is no C function for: without these LLVM ends the process when memory is short.
pub type BadAllocHandler = extern "C" fn(*mut c_void, *const c_char, bool);
unsafe extern "C" {
    /// `llvm::install_bad_alloc_error_handler`
    #[link_name = "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_"]
    pub fn install_bad_alloc_error_handler(handler: BadAllocHandler, data: *mut c_void);
    /// `llvm::install_out_of_memory_new_handler`: C++'s `new` calls that handler, too.
    #[link_name = "_ZN4llvm33install_out_of_memory_new_handlerEv"]
    pub fn install_out_of_memory_new_handler();
}
