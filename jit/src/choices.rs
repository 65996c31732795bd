//! Keeps LLVM from an instruction that it gets wrong: `(x & C) | (y & ~C)`, bits of one vector and the rest of another, as one arm of a
//! `select` whose other arm is x or y.
//!
//! With AVX-512 that is one `vpternlog` under a mask. Where LLVM 19 has its third operand read from memory, it writes the truth table 228 where 184
//! is right, and the other way round, so the wrong bits are chosen. Whether memory is read is decided late, so every such `or` that a `select`
//! takes goes through an empty piece of assembly first, which nothing is moved into: the choice by bits and the one by the mask become
//! an instruction each. LLVM's own `copysign` does not become such an instruction.

use std::ffi::{c_char, c_uint};

use crate::llvm::{self, Builder, Context, Module, Type, Value};

/// `LLVMOpcode`
const ADD: c_uint = 8;
const SHL: c_uint = 20;
const LSHR: c_uint = 21;
const AND: c_uint = 23;
const OR: c_uint = 24;
const XOR: c_uint = 25;
const ZEXT: c_uint = 31;
const BIT_CAST: c_uint = 41;
const SELECT: c_uint = 46;
/// `LLVMTypeKind`
const INTEGER: c_uint = 8;
const VECTOR: c_uint = 13;
/// What one register holds.
const MOST_BITS: c_uint = 512;

/// # Safety
///
/// Both are alive, and nobody else uses them meanwhile.
pub unsafe fn apart(context: *mut Context, module: *mut Module) {
    // SAFETY: by the caller's word; the builder is ours.
    unsafe {
        let builder = llvm::LLVMCreateBuilderInContext(context);
        let mut function = llvm::LLVMGetFirstFunction(module);
        while !function.is_null() {
            let mut block = llvm::LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut instruction = llvm::LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    // What is put in behind an instruction is none to look at.
                    let next = llvm::LLVMGetNextInstruction(instruction);
                    if is_choice(instruction) {
                        part(context, builder, instruction);
                    }
                    instruction = next;
                }
                block = llvm::LLVMGetNextBasicBlock(block);
            }
            function = llvm::LLVMGetNextFunction(function);
        }
        llvm::LLVMDisposeBuilder(builder);
    }
}

/// An instruction's operation; 0 for what is none.
unsafe fn operation(value: *mut Value) -> c_uint {
    // SAFETY: the value is one of a live module, by the callers' word.
    unsafe {
        match llvm::LLVMIsAInstruction(value).is_null() {
            true => 0,
            false => llvm::LLVMGetInstructionOpcode(value),
        }
    }
}

/// Whether LLVM may know of bits of the value that they are zero.
unsafe fn lacks_bits(value: *mut Value) -> bool {
    // SAFETY: as for `operation`; these instructions have two operands.
    unsafe {
        match operation(value) {
            AND => {
                llvm::LLVMIsConstant(llvm::LLVMGetOperand(value, 0)) != 0
                    || llvm::LLVMIsConstant(llvm::LLVMGetOperand(value, 1)) != 0
            }
            SHL | LSHR | ZEXT => true,
            _ => false,
        }
    }
}

/// Whether it may become a choice by bits of vectors of integers.
unsafe fn is_choice(instruction: *mut Value) -> bool {
    // SAFETY: as for `operation`.
    unsafe {
        let operation = operation(instruction);
        if ![ADD, OR, XOR].contains(&operation) {
            return false;
        }
        let ty = llvm::LLVMTypeOf(instruction);
        if llvm::LLVMGetTypeKind(ty) != VECTOR {
            return false;
        }
        let element = llvm::LLVMGetElementType(ty);
        if llvm::LLVMGetTypeKind(element) != INTEGER || llvm::LLVMGetIntTypeWidth(element) == 1 {
            return false;
        }
        let [a, b] = [0, 1].map(|at| lacks_bits(llvm::LLVMGetOperand(instruction, at)));
        // y ^ ((x ^ y) & C) is such a choice, too.
        if operation == XOR { a || b } else { a && b }
    }
}

/// Those that choose by a mask take the instruction's value from behind the assembly.
unsafe fn part(context: *mut Context, builder: *mut Builder, instruction: *mut Value) {
    // SAFETY: as for `operation`; uses are collected before any is changed, and operands stay of their types. An instruction that is
    // none of the last in its block has one behind it.
    unsafe {
        let mut uses = Vec::new();
        let mut one = llvm::LLVMGetFirstUse(instruction);
        while !one.is_null() {
            let user = llvm::LLVMGetUser(one);
            if [SELECT, BIT_CAST].contains(&operation(user)) && !uses.contains(&user) {
                uses.push(user);
            }
            one = llvm::LLVMGetNextUse(one);
        }
        if uses.is_empty() {
            return;
        }
        llvm::LLVMPositionBuilderBefore(builder, llvm::LLVMGetNextInstruction(instruction));
        let shielded = shielded(context, builder, instruction);
        for user in uses {
            for at in 0..llvm::LLVMGetNumOperands(user) as c_uint {
                if llvm::LLVMGetOperand(user, at) == instruction {
                    llvm::LLVMSetOperand(user, at, shielded);
                }
            }
        }
    }
}

/// The value out of empty assembly, by halves if no register holds it.
unsafe fn shielded(context: *mut Context, builder: *mut Builder, value: *mut Value) -> *mut Value {
    const NAME: *const c_char = c"".as_ptr();
    // SAFETY: as for `operation`; the value is a vector of integers, and the builder stands behind it.
    unsafe {
        let ty = llvm::LLVMTypeOf(value);
        let lanes = llvm::LLVMGetVectorSize(ty);
        if lanes * llvm::LLVMGetIntTypeWidth(llvm::LLVMGetElementType(ty)) <= MOST_BITS {
            let mut operand: [*mut Type; 1] = [ty];
            let function = llvm::LLVMFunctionType(ty, operand.as_mut_ptr(), 1, 0);
            let constraints = "=v,0";
            let nothing = llvm::LLVMGetInlineAsm(
                function,
                NAME,
                0,
                constraints.as_ptr().cast(),
                constraints.len(),
                0,
                0,
                0,
                0,
            );
            let mut operand = [value];
            return llvm::LLVMBuildCall2(builder, function, nothing, operand.as_mut_ptr(), 1, NAME);
        }
        let number = llvm::LLVMInt32TypeInContext(context);
        let half = |from: c_uint, to: c_uint| {
            let mut places: Vec<*mut Value> = (from..to).map(|at| llvm::LLVMConstInt(number, at.into(), 0)).collect();
            llvm::LLVMConstVector(places.as_mut_ptr(), places.len() as c_uint)
        };
        let halves = [(0, lanes / 2), (lanes / 2, lanes)].map(|(from, to)| {
            let none = llvm::LLVMGetPoison(ty);
            let part = llvm::LLVMBuildShuffleVector(builder, value, none, half(from, to), NAME);
            shielded(context, builder, part)
        });
        llvm::LLVMBuildShuffleVector(builder, halves[0], halves[1], half(0, lanes), NAME)
    }
}

/// Whether code for these features can have the instruction.
pub fn concerns(features: &[u8]) -> bool {
    features.windows(6).any(|part| part == b"avx512")
}
