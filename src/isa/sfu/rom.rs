//! The tables of the function unit: the words as published become coefficients with their signs, laid out as `mod.rs`
//! looks them up.

// The digits of the words are grouped as their fields are.
#![allow(
    clippy::unusual_byte_groupings,
    reason = "digits are grouped by the fields of the tables"
)]

/// Coefficients of one function, slice by slice: A, of 26 bits; above twelve bits of C, B, both with signs.
pub struct Rom<const N: usize> {
    pub a: [u32; N],
    pub bc: [u32; N],
}

/// From words of 26 bits of A, 16 of B and 12 of C; B and C less a bias, a power of two or nothing.
const fn rom<const N: usize>(words: [u64; N], b_bias: u32, c_bias: u32) -> Rom<N> {
    let (mut a, mut bc) = ([0; N], [0; N]);
    let mut slice = 0;
    while slice < N {
        let word = words[slice];
        a[slice] = (word >> 28) as u32;
        let b = (word >> 12 & 0xffff) as u32;
        let c = (word & 0xfff) as u32;
        bc[slice] = b.wrapping_sub(b_bias) << 12 | c.wrapping_sub(c_bias) & 0xfff;
        slice += 1;
    }
    Rom { a, bc }
}

pub static RCP: Rom<128> = rom(RCP_WORDS, 1 << 16, 0);
pub static RSQRT: Rom<128> = rom(RSQRT_WORDS, 1 << 16, 0);
pub static SIN: Rom<64> = rom(SIN_WORDS, 0, 1 << 11);
pub static EX2: Rom<64> = rom(EX2_WORDS, 0, 0);
pub static LG2: Rom<64> = rom(LG2_WORDS, 0, 1 << 10);

#[rustfmt::skip]
pub(in crate::isa) const RCP_WORDS: [u64; 128] = [
    0x3fffffe_0002_3f5, 0x3f80fe0_03f6_3dd, 0x3f03f04_07d3_3c6, 0x3e88cb3_0b99_3b1, 0x3e0f83c_0f4a_39b, 0x3d980f6_12e5_386,
    0x3d22636_166b_373, 0x3cae758_19de_35f, 0x3c3c3c2_1d3d_34d, 0x3bcbadc_2089_33b, 0x3b5cc0f_23c3_329, 0x3aef6c9_26ec_317,
    0x3a83a83_2a03_306, 0x3a196b2_2d09_2f6, 0x39b0ad1_2fff_2e6, 0x3949660_32e5_2d7, 0x38e38e3_35bc_2c7, 0x387f1e0_3884_2b8,
    0x381c0e0_3b3d_2aa, 0x37ba570_3de8_29d, 0x3759f21_4085_290, 0x36fad87_4315_282, 0x369d035_4597_277, 0x36406c8_480d_26a,
    0x35e50d7_4a77_25d, 0x358ae04_4cd4_252, 0x3531dec_4f26_246, 0x34da034_516c_23c, 0x3483484_53a7_231, 0x342da7f_55d8_225,
    0x33d91d3_57fd_21c, 0x3385a29_5a19_211, 0x3333333_5c2a_207, 0x32e1c9f_5e31_1fe, 0x329161e_602f_1f5, 0x3241f69_6224_1ea,
    0x31f3831_640f_1e2, 0x31a6032_65f1_1da, 0x3159722_67cb_1d1, 0x310dcbf_699c_1c9, 0x30c30c3_6b65_1c1, 0x30792ef_6d26_1b9,
    0x3030303_6edf_1b1, 0x2fe80c0_7090_1aa, 0x2fa0be8_723a_1a2, 0x2f5a441_73dc_19c, 0x2f14990_7578_193, 0x2ecfb9c_770c_18d,
    0x2e8ba2f_7899_186, 0x2e4850f_7a20_17f, 0x2e05c0a_7ba0_179, 0x2dc3eee_7d19_173, 0x2d82d83_7e8c_16e, 0x2d4279a_7ffa_166,
    0x2d02d02_8161_161, 0x2cc3d8c_82c2_15c, 0x2c8590b_841e_155, 0x2c47f50_8573_151, 0x2c0b02c_86c4_14b, 0x2bceb76_880f_146,
    0x2b93105_8955_140, 0x2b580ae_8a95_13c, 0x2b1da47_8bd1_136, 0x2ae3da7_8d08_131, 0x2aaaaaa_8e39_12e, 0x2a7212a_8f66_129,
    0x2a3a0fe_908f_123, 0x2a02a02_91b3_11f, 0x29cbc15_92d2_11b, 0x2995710_93ed_117, 0x295fad4_9504_112, 0x292a73d_9616_10f,
    0x28f5c29_9725_10a, 0x28c1979_982f_107, 0x288df0c_9936_102, 0x285acc4_9a38_100, 0x2828283_9b37_0fb, 0x27f6028_9c32_0f8,
    0x27c4598_9d2a_0f3, 0x27932b4_9e1e_0f0, 0x2762762_9f0e_0ed, 0x2732386_9ffb_0e9, 0x2702703_a0e4_0e7, 0x26d31bf_a1cb_0e2,
    0x26a439f_a2ae_0df, 0x2675c8b_a38d_0de, 0x2647c69_a46a_0da, 0x261a320_a544_0d6, 0x25ed098_a61a_0d4, 0x25c04b9_a6ee_0d0,
    0x2593f69_a7bf_0cd, 0x2568096_a88c_0cc, 0x253c825_a958_0c7, 0x2511602_aa20_0c5, 0x24e6a17_aae5_0c4, 0x24bc44e_aba8_0c1,
    0x2492492_ac69_0bd, 0x2468acf_ad27_0ba, 0x243f6f1_ade2_0b8, 0x24168e1_ae9b_0b6, 0x23ee090_af51_0b4, 0x23c5de7_b005_0b2,
    0x239e0d5_b0b7_0af, 0x2376948_b166_0ad, 0x234f72c_b213_0ab, 0x2328a6f_b2be_0a9, 0x2302302_b367_0a6, 0x22dc0d1_b40d_0a5,
    0x22b63cc_b4b2_0a1, 0x2290be2_b554_0a0, 0x226b902_b5f4_09f, 0x2246b1d_b693_09b, 0x2222222_b72f_09a, 0x21fde02_b7c9_099,
    0x21d9ead_b862_096, 0x21b6416_b8f8_095, 0x2192e2a_b98d_093, 0x216fcdd_ba20_091, 0x214d022_bab1_08f, 0x212a7e6_bb40_08f,
    0x2108421_bbce_08c, 0x20e64c2_bc5a_08a, 0x20c49bb_bce4_089, 0x20a32ff_bd6d_087, 0x2082082_bdf4_085, 0x2061237_be79_084,
    0x204080f_befd_083, 0x2020201_bf7f_082,
];
#[rustfmt::skip]
pub(in crate::isa) const RSQRT_WORDS: [u64; 128] = [
    0x3fffffd_0005_2f2, 0x3f817ad_05e8_2d5, 0x3f05d8f_0b91_2ba, 0x3e8cfe3_1105_2a0, 0x3e16d08_1645_288, 0x3da336d_1b55_271,
    0x3d32199_2037_25b, 0x3cc3625_24ed_246, 0x3c56fbb_2979_232, 0x3becd12_2dde_21f, 0x3b84cf4_321c_20e, 0x3b1ee3f_3637_1fc,
    0x3abafd2_3a2f_1ec, 0x3a590a6_3e06_1dc, 0x39f8fb3_41be_1cd, 0x399ac08_4558_1be, 0x393e4b6_48d5_1b1, 0x38e38e3_4c36_1a4,
    0x388a7b0_4f7e_197, 0x3833055_52ac_18b, 0x37dd20a_55c2_17f, 0x3788c11_58c1_174, 0x3735db5_5ba9_16a, 0x36e4649_5e7c_160,
    0x3694525_613b_156, 0x36459ab_63e6_14c, 0x35f833b_667e_143, 0x35ac144_6904_13a, 0x3561336_6b79_131, 0x3517888_6ddc_12a,
    0x34cf0b4_7030_122, 0x3487b40_7273_11b, 0x34417ae_74a8_113, 0x33fc587_76ce_10c, 0x33b8456_78e6_106, 0x33753b4_7af1_0ff,
    0x3333333_7cef_0f8, 0x32f226c_7ee0_0f2, 0x32b20fe_80c5_0ec, 0x3272e85_829e_0e7, 0x3234aac_846c_0e1, 0x31f7512_862f_0dc,
    0x31bad67_87e7_0d7, 0x317f355_8995_0d2, 0x314468b_8b39_0cd, 0x310a6ba_8cd3_0c9, 0x30d139a_8e64_0c4, 0x3098cdc_8fed_0bf,
    0x306123e_916c_0bb, 0x302a377_92e3_0b7, 0x2ff4047_9452_0b3, 0x2fbe86e_95b8_0b0, 0x2f89bad_9717_0ac, 0x2f559c5_986f_0a8,
    0x2f2227d_99bf_0a5, 0x2eef59a_9b08_0a2, 0x2ebd2e8_9c4b_09e, 0x2e8ba2f_9d87_09a, 0x2e5ab3a_9ebc_097, 0x2e2a5d5_9feb_094,
    0x2dfa9d0_a114_091, 0x2dcb6f8_a237_08f, 0x2d9cd26_a354_08c, 0x2d6ec25_a46c_089, 0x2d413c9_4aff_215, 0x2ce7c62_4f28_201,
    0x2c905a6_5329_1ed, 0x2c3ae55_5704_1db, 0x2be754a_5aba_1cb, 0x2b9596c_5e4f_1ba, 0x2b459b1_61c2_1ab, 0x2af7514_6517_19c,
    0x2aaaaaa_684e_18e, 0x2a5f987_6b6a_180, 0x2a160d5_6e6a_173, 0x29cdfbd_7151_167, 0x298757d_741f_15c, 0x2942152_76d7_150,
    0x28fe287_7978_146, 0x28bb875_7c03_13c, 0x287a26b_7e7b_132, 0x2839fd1_80df_129, 0x27fb010_8330_120, 0x27bd291_8570_117,
    0x27806c9_879f_10f, 0x2744c37_89bd_107, 0x270a257_8bcb_100, 0x26d08af_8dcb_0f8, 0x2697ec7_8fbc_0f1, 0x266042e_919f_0eb,
    0x2629879_9374_0e5, 0x25f3b40_953d_0de, 0x25bec17_96f9_0d9, 0x258aaa6_98aa_0d2, 0x2557687_9a4f_0cd, 0x2524f67_9be9_0c7,
    0x24f34e7_9d78_0c3, 0x24c26bc_9efd_0be, 0x2492493_a078_0b9, 0x2462e1a_a1ea_0b4, 0x243430a_a352_0b0, 0x2406319_a4b2_0ab,
    0x23d8e02_a609_0a7, 0x23ac382_a757_0a3, 0x2380354_a89e_09f, 0x2354d3d_a9dd_09b, 0x232a0fd_ab14_098, 0x22ffe5d_ac44_094,
    0x22d651e_ad6d_091, 0x22ad50e_ae8f_08e, 0x2284df7_afab_08a, 0x225cf9f_b0c0_088, 0x22359db_b1cf_085, 0x220ec79_b2d8_082,
    0x21e874a_b3dc_07e, 0x21c2a1d_b4d9_07c, 0x219d4c6_b5d1_07a, 0x217871f_b6c4_077, 0x21540f6_b7b2_075, 0x213022c_b89b_072,
    0x210ca93_b97f_070, 0x20e9a08_ba5e_06e, 0x20c7067_bb39_06b, 0x20a4d88_bc0f_069, 0x208314a_bce1_067, 0x2061b89_bdaf_065,
    0x2040c27_be79_063, 0x2020307_bf3e_061,
];
#[rustfmt::skip]
pub(in crate::isa) const SIN_WORDS: [u64; 64] = [
    0x0000000_6489_7f2, 0x019214e_6482_7d0, 0x0323ec8_646a_7b4, 0x04b547c_6444_792, 0x0645e94_640d_777, 0x07d5934_63c8_755,
    0x096407a_6373_737, 0x0af109c_630e_71b, 0x0c7c5ba_629b_6fa, 0x0e05c10_6218_6dc, 0x0f8cfc8_6186_6be, 0x1111d24_60e5_6a0,
    0x129405e_6035_683, 0x14135ca_5f76_666, 0x158f9a2_5ea9_647, 0x170884c_5dcd_62a, 0x187de2a_5ce2_60f, 0x19ef796_5be9_5f3,
    0x1b5d0fe_5ae2_5d7, 0x1cc66e8_59cd_5bb, 0x1e2b5d4_58aa_5a0, 0x1f8ba48_577a_583, 0x20e70ec_563c_568, 0x223d66c_54f0_550,
    0x238e760_5398_535, 0x24da0a8_5232_51e, 0x261fefc_50c0_505, 0x275ff44_4f42_4ea, 0x2899e5e_4db7_4d4, 0x29cd952_4c21_4b9,
    0x2afad20_4a7e_4a5, 0x2c216e4_48d0_48f, 0x2d413ca_4717_478, 0x2e5a104_4553_462, 0x2f6bbe4_4384_44e, 0x30761be_41ab_439,
    0x3179008_3fc8_424, 0x327444c_3dda_414, 0x3367c04_3be4_3ff, 0x34534f2_39e4_3ed, 0x3536cc0_37db_3dd, 0x361214e_35c9_3ce,
    0x36e5064_33b0_3bb, 0x37af812_318e_3ad, 0x3871658_2f65_39d, 0x392a960_2d34_390, 0x39daf5c_2afc_384, 0x3a82698_28be_376,
    0x3b20d7a_2679_36c, 0x3bb6274_242f_35f, 0x3c4241c_21df_354, 0x3cc511e_1f89_34d, 0x3d3e82c_1d2f_343, 0x3dae822_1ad0_33c,
    0x3e14fda_186e_332, 0x3e71e78_1607_32c, 0x3ec52fc_139d_326, 0x3f0eca0_1130_321, 0x3f4eab2_0ec0_31e, 0x3f84c8e_0c4f_316,
    0x3fb11b2_09db_314, 0x3fd39ba_0765_314, 0x3fec43c_04ef_311, 0x3ffb10c_0278_30f,
];
#[rustfmt::skip]
pub(in crate::isa) const EX2_WORDS: [u64; 64] = [
    0x2000000_58b9_1ee, 0x2059347_59b0_1f5, 0x20b361b_5aaa_1fa, 0x210e8a2_5ba7_1ff, 0x216ab0f_5ca6_206, 0x21c7d86_5da9_209,
    0x2226039_5eae_20f, 0x2285356_5fb6_214, 0x22e5709_60c0_21d, 0x2346b7e_61ce_222, 0x23a90e5_62df_227, 0x240c772_63f2_22f,
    0x2470f4e_6509_234, 0x24d68ad_6623_238, 0x253d3c0_673f_241, 0x25a50b6_685f_247, 0x260dfc2_6982_24d, 0x2678117_6aa8_254,
    0x26e34e6_6bd2_258, 0x274fb67_6cfe_261, 0x27bd4c9_6e2e_267, 0x282c145_6f61_26e, 0x289c10b_7098_273, 0x290d456_71d2_279,
    0x297fb5a_730f_281, 0x29f364e_7450_287, 0x2a6856a_7594_28f, 0x2ade8e7_76dc_295, 0x2b560fb_7827_29e, 0x2bcede2_7976_2a5,
    0x2c48fd7_7ac8_2ae, 0x2cc4710_7c1f_2b3, 0x2d413cc_7d79_2bb, 0x2dbf648_7ed7_2c1, 0x2e3eebe_8038_2cb, 0x2ebfd6a_819e_2d1,
    0x2f4228e_8307_2da, 0x2fc5e67_8474_2e3, 0x304b134_85e5_2ec, 0x30d1b33_875b_2f1, 0x3159ca8_88d4_2fb, 0x31e35d3_8a51_305,
    0x326e6f7_8bd3_30b, 0x32fb054_8d59_313, 0x3389230_8ee3_31c, 0x3418ccf_9071_326, 0x34aa076_9204_32d, 0x353cd6a_939b_336,
    0x35d13f4_9536_341, 0x3667457_96d6_34a, 0x36feede_987b_351, 0x37983d3_9a24_35a, 0x383337d_9bd1_366, 0x38cfe27_9d84_36d,
    0x396e41c_9f3b_377, 0x3a0e5aa_a0f7_380, 0x3ab031d_a2b7_38d, 0x3b53cc1_a47d_395, 0x3bf92e7_a648_39d, 0x3ca05dd_a817_3aa,
    0x3d495f5_a9ec_3b2, 0x3df437f_abc5_3bf, 0x3ea0ecc_ada4_3c9, 0x3f4f831_af88_3d4,
];
#[rustfmt::skip]
pub(in crate::isa) const LG2_WORDS: [u64; 64] = [
    0x0000004_b8a8_129, 0x016e797_b5d1_13f, 0x02d75ad_b310_153, 0x043ace7_b064_167, 0x0598fe2_adcc_17a, 0x06f210f_ab47_18d,
    0x08462c9_a8d5_19e, 0x0995750_a674_1b0, 0x0ae00d8_a424_1c0, 0x0c26162_a1e4_1d1, 0x0d67af5_9fb4_1e0, 0x0ea4f76_9d93_1ee,
    0x0fde0b9_9b81_1fa, 0x111307c_997c_208, 0x124407c_9784_215, 0x1371251_9599_221, 0x149a786_93ba_22e, 0x15c01a8_91e7_239,
    0x16e2222_9020_243, 0x1800a59_8e63_24f, 0x191bbac_8cb2_257, 0x1a33760_8b0a_262, 0x1b47ebe_896c_26c, 0x1c592fb_87d8_274,
    0x1d6753f_864c_27f, 0x1e726aa_84ca_287, 0x1f7a857_8350_290, 0x207fb52_81df_297, 0x218209f_8076_29e, 0x2281942_7f14_2a6,
    0x237e627_7dba_2ad, 0x247883b_7c67_2b5, 0x257006a_7b1c_2ba, 0x2664f8d_79d7_2c1, 0x2757682_7898_2c9, 0x2847614_7761_2cd,
    0x2934f0d_762f_2d4, 0x2a20233_7503_2db, 0x2b0904a_73de_2df, 0x2befa00_72be_2e5, 0x2cd4011_71a3_2ec, 0x2db632e_708e_2f1,
    0x2e963fd_6f7e_2f6, 0x2f7431d_6e74_2fa, 0x305013a_6d6e_2ff, 0x3129eee_6c6d_303, 0x3201cc6_6b71_307, 0x32d7b5d_6a79_30c,
    0x33abb41_6985_312, 0x347dd00_6896_316, 0x354e121_67ac_318, 0x361c823_66c5_31d, 0x36e9293_65e2_321, 0x37b40e4_6503_325,
    0x387d398_6428_328, 0x3944b1e_6350_32d, 0x3a0a7ec_627d_32f, 0x3acea7a_61ac_334, 0x3b91337_60df_337, 0x3c52285_6016_339,
    0x3d118da_5f4f_33d, 0x3dcf690_5e8c_340, 0x3e8bc12_5dcc_343, 0x3f469c1_5d0f_346,
];
