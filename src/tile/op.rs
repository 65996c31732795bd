//! The operations (CUDA Tile IR Reference, Operations): one table says how each is written.

/// What belongs to an operation beside its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// One of a few words, by its number.
    Word,
    Number,
    Bool,
    Text,
    /// 32-bit numbers.
    List,
    /// What is in bounds, a byte for each dimension: a promise.
    Bounds,
    /// Elements of a tile of the result's type.
    Constant,
    /// What is assumed: a promise.
    Predicate,
    /// A number for each tile that is folded.
    Identities,
    /// For the compiler.
    Hints,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    One,
    /// Where a flag says so.
    Maybe,
    /// As many as it says.
    Many,
}

/// An attribute: what it is, since which minor version it is written, whether a flag says that it is there.
pub struct Written {
    pub attribute: Attribute,
    pub since: u8,
    pub optional: bool,
}

/// How an operation is written: its results' types, flags, attributes, operands, regions.
pub struct Layout {
    pub name: &'static str,
    /// The minor version that it came with.
    pub since: u8,
    /// Results, whose number is written if it could be another one.
    pub results: Option<u8>,
    /// Since which minor version there are flags; 0: there are none.
    pub flags: u8,
    /// Flags that stand for nothing but themselves, before those of optional attributes and operands or behind them.
    pub attributes: &'static [Written],
    /// `None`: as many as it says, all in one.
    pub operands: Option<&'static [Operand]>,
    pub regions: u8,
    /// It ends its block.
    pub ends: bool,
}

macro_rules! attributes {
    ($([$($kind:ident $(@ $since:literal)? $(? $optional:ident)?),*])?) => {
        const {
            &[$($(Written {
                attribute: Attribute::$kind,
                since: 1 $(- 1 + $since)?,
                optional: said!($($optional)?),
            }),*)?]
        }
    };
}

/// Whether a word is there.
macro_rules! said {
    () => {
        false
    };
    ($word:ident) => {
        true
    };
}

macro_rules! results {
    (counted) => {
        None
    };
    ($count:literal) => {
        Some($count)
    };
}

macro_rules! operands {
    (counted) => { None };
    ([$($operand:ident),*]) => { Some(&[$(Operand::$operand),*]) };
}

/// `Name = code "spelling" since results operands; flags since …; attributes …; regions …; ends`.
macro_rules! operations {
    ($($name:ident $code:literal $spelling:literal $since:literal : $results:tt, $operands:tt
        $(, flags $flags:literal)? $(, attributes [$($attributes:tt)*])? $(, regions $regions:literal)? $(, ends $ends:ident)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($name),* }

        impl Code {
            /// As the bytecode numbers them.
            pub fn of(number: u64) -> Option<Code> {
                match number {
                    $($code => Some(Code::$name),)*
                    _ => None,
                }
            }

            pub fn layout(self) -> &'static Layout {
                match self {
                    $(Code::$name => const { &Layout {
                        name: $spelling,
                        since: $since,
                        results: results!($results),
                        flags: 0 $(+ $flags)?,
                        attributes: attributes!($([$($attributes)*])?),
                        operands: operands!($operands),
                        regions: 0 $(+ $regions)?,
                        ends: said!($($ends)?),
                    } },)*
                }
            }
        }
    };
}

operations! {
    AbsF 0x00 "absf" 1: 1, [One];
    AbsI 0x01 "absi" 1: 1, [One];
    AddF 0x02 "addf" 1: 1, [One, One], flags 1, attributes [Word];
    AddI 0x03 "addi" 1: 1, [One, One], attributes [Word];
    AndI 0x04 "andi" 1: 1, [One, One];
    Assert 0x05 "assert" 1: 0, [One], attributes [Text];
    Assume 0x06 "assume" 1: 1, [One], attributes [Predicate];
    AtomicCas 0x07 "atomic_cas_tko" 1: 2, [One, One, One, Maybe, Maybe], flags 1, attributes [Word, Word];
    AtomicRmw 0x08 "atomic_rmw_tko" 1: 2, [One, One, Maybe, Maybe], flags 1, attributes [Word, Word, Word];
    Bitcast 0x09 "bitcast" 1: 1, [One];
    Break 0x0a "break" 1: counted, counted, ends here;
    Broadcast 0x0b "broadcast" 1: 1, [One];
    Cat 0x0c "cat" 1: 1, [One, One], attributes [Number];
    Ceil 0x0d "ceil" 1: 1, [One];
    CmpF 0x0e "cmpf" 1: 1, [One, One], attributes [Word, Word];
    CmpI 0x0f "cmpi" 1: 1, [One, One], attributes [Word, Word];
    Constant 0x10 "constant" 1: 1, [], attributes [Constant];
    Continue 0x11 "continue" 1: counted, counted, ends here;
    Cos 0x12 "cos" 1: 1, [One];
    CosH 0x13 "cosh" 1: 1, [One];
    DivF 0x14 "divf" 1: 1, [One, One], flags 1, attributes [Word];
    DivI 0x15 "divi" 1: 1, [One, One], attributes [Word, Word];
    Exp 0x17 "exp" 1: 1, [One], attributes [Word @ 3];
    Exp2 0x18 "exp2" 1: 1, [One], flags 1;
    ExtI 0x25 "exti" 1: 1, [One], attributes [Word];
    Extract 0x26 "extract" 1: counted, counted;
    Floor 0x27 "floor" 1: 1, [One];
    Fma 0x28 "fma" 1: 1, [One, One, One], flags 1, attributes [Word];
    For 0x29 "for" 1: counted, counted, flags 2, regions 1;
    FToF 0x2a "ftof" 1: 1, [One], attributes [Word];
    FToI 0x2b "ftoi" 1: 1, [One], flags 4, attributes [Word, Word];
    GetGlobal 0x2c "get_global" 1: 1, [], attributes [Text];
    GetIndexSpaceShape 0x2d "get_index_space_shape" 1: counted, [One];
    GetNumTileBlocks 0x2e "get_num_tile_blocks" 1: 3, [];
    GetTensorShape 0x2f "get_tensor_shape" 1: counted, [One];
    GetTileBlockId 0x30 "get_tile_block_id" 1: 3, [];
    If 0x32 "if" 1: counted, [One], regions 2;
    IntToPtr 0x33 "int_to_ptr" 1: 1, [One];
    Iota 0x3a "iota" 1: 1, [];
    IToF 0x3b "itof" 1: 1, [One], attributes [Word, Word];
    JoinTokens 0x3c "join_tokens" 1: counted, counted;
    LoadPtr 0x3d "load_ptr_tko" 1: 2, [One, Maybe, Maybe, Maybe], flags 1, attributes [Word, Word ?maybe, Hints ?maybe];
    LoadView 0x3e "load_view_tko" 1: counted, [One, Many, Maybe], flags 1,
        attributes [Word, Word ?maybe, Hints ?maybe, Bounds @ 4];
    Log 0x3f "log" 1: 1, [One];
    Log2 0x40 "log2" 1: 1, [One];
    Loop 0x41 "loop" 1: counted, counted, regions 1;
    MakePartitionView 0x42 "make_partition_view" 1: 1, [One];
    MakeTensorView 0x43 "make_tensor_view" 1: counted, [One, Many, Many];
    MakeToken 0x44 "make_token" 1: 1, [];
    MaxF 0x45 "maxf" 1: 1, [One, One], flags 1;
    MaxI 0x46 "maxi" 1: 1, [One, One], attributes [Word];
    MinF 0x47 "minf" 1: 1, [One, One], flags 1;
    MinI 0x48 "mini" 1: 1, [One, One], attributes [Word];
    MmaF 0x49 "mmaf" 1: 1, [One, One, One], flags 3;
    MmaI 0x4a "mmai" 1: 1, [One, One, One], attributes [Word, Word];
    MulF 0x4c "mulf" 1: 1, [One, One], flags 1, attributes [Word];
    MulhiI 0x4d "mulhii" 1: 1, [One, One];
    MulI 0x4e "muli" 1: 1, [One, One], attributes [Word];
    NegF 0x4f "negf" 1: 1, [One];
    NegI 0x50 "negi" 1: 1, [One], attributes [Word @ 2];
    Offset 0x51 "offset" 1: 1, [One, One];
    OrI 0x52 "ori" 1: 1, [One, One];
    Permute 0x53 "permute" 1: 1, [One], attributes [List];
    PowF 0x54 "pow" 1: 1, [One, One];
    Print 0x55 "print_tko" 1: counted, [Many, Maybe], flags 2, attributes [Text];
    PtrToInt 0x56 "ptr_to_int" 1: 1, [One];
    PtrToPtr 0x57 "ptr_to_ptr" 1: 1, [One];
    Reduce 0x58 "reduce" 1: counted, counted, attributes [Number, Identities], regions 1;
    RemF 0x59 "remf" 1: 1, [One, One];
    RemI 0x5a "remi" 1: 1, [One, One], attributes [Word];
    Reshape 0x5b "reshape" 1: 1, [One];
    Return 0x5c "return" 1: counted, counted, ends here;
    Rsqrt 0x5d "rsqrt" 1: 1, [One], flags 1;
    Scan 0x5e "scan" 1: counted, counted, attributes [Number, Bool, Identities], regions 1;
    Select 0x5f "select" 1: 1, [One, One, One];
    ShLI 0x60 "shli" 1: 1, [One, One], attributes [Word];
    ShRI 0x61 "shri" 1: 1, [One, One], attributes [Word];
    Sin 0x62 "sin" 1: 1, [One];
    SinH 0x63 "sinh" 1: 1, [One];
    Sqrt 0x64 "sqrt" 1: 1, [One], flags 1, attributes [Word];
    StorePtr 0x65 "store_ptr_tko" 1: 1, [One, One, Maybe, Maybe], flags 1, attributes [Word, Word ?maybe, Hints ?maybe];
    StoreView 0x66 "store_view_tko" 1: counted, [One, One, Many, Maybe], flags 1,
        attributes [Word, Word ?maybe, Hints ?maybe, Bounds @ 4];
    SubF 0x67 "subf" 1: 1, [One, One], flags 1, attributes [Word];
    SubI 0x68 "subi" 1: 1, [One, One], attributes [Word];
    Tan 0x69 "tan" 1: 1, [One];
    TanH 0x6a "tanh" 1: 1, [One], attributes [Word @ 2];
    TruncI 0x6b "trunci" 1: 1, [One], attributes [Word];
    XOrI 0x6c "xori" 1: 1, [One, One];
    Yield 0x6d "yield" 1: counted, counted, ends here;
    Atan2 0x6e "atan2" 2: 1, [One, One];
    Pack 0x6f "pack" 3: 1, [One];
    Unpack 0x70 "unpack" 3: 1, [One];
    Alloca 0x71 "alloca" 3: 1, [], flags 1, attributes [Number, Number];
    MmaFScaled 0x72 "mmaf_scaled" 3: 1, [One, One, One, One, One];
    MakeGatherScatterView 0x73 "make_gather_scatter_view" 3: 1, [One];
    MakeStridedView 0x74 "make_strided_view" 3: 1, [One];
    AtomicRedView 0x75 "atomic_red_view_tko" 3: counted, [One, Many, One, Maybe], flags 1,
        attributes [Word, Word, Word, Bounds @ 5];
    Insert 0x76 "insert" 4: counted, counted;
    GdcLaunchDependents 0x77 "gdc_launch_dependents_tko" 4: 1, counted;
    GdcWait 0x78 "gdc_wait_tko" 4: 1, counted;
    PowI 0x79 "fpowi" 4: 1, [One, One];
    MemoryFenceAlias 0x7a "memory_fence_alias_tko" 4: 1, [One];
    MultimemLoadReduceView 0x7b "multimem_load_reduce_view_tko" 5: counted, [One, Many, Maybe], flags 1,
        attributes [Word, Word ?maybe, Word, Bounds];
    MultimemReduceView 0x7c "multimem_reduce_view_tko" 5: counted, [One, One, Many, Maybe], flags 1,
        attributes [Word, Word, Word, Bounds];
    MultimemStoreView 0x7d "multimem_store_view_tko" 5: counted, [One, One, Many, Maybe], flags 1,
        attributes [Word, Word ?maybe, Bounds];
}

impl Code {
    /// Whether something of the world can be wrong with it: an address, or what is asserted.
    pub fn reaches_out(self) -> bool {
        self.is_access() || self == Code::Assert
    }

    /// Whether it reads or writes memory.
    pub fn is_access(self) -> bool {
        matches!(
            self,
            Code::LoadPtr
                | Code::LoadView
                | Code::StorePtr
                | Code::StoreView
                | Code::AtomicRmw
                | Code::AtomicCas
                | Code::AtomicRedView
        )
    }
}
