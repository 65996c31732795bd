//! Sizes, alignments and offsets of every record, as a C compiler lays out CUDA 13.5's own header (x86-64, System V).
//!
//! The numbers were printed by a C program and are literals here, so that a changed field cannot pass unnoticed.

use super::*;
use std::mem::{align_of, offset_of, size_of};

/// `Record { size, alignment; field offset, … }`
macro_rules! layout {
    ($($record:ident { $size:literal, $align:literal; $($field:ident $offset:literal,)* })*) => {
        $(
            assert_eq!(size_of::<$record>(), $size, "size of {}", stringify!($record));
            assert_eq!(align_of::<$record>(), $align, "alignment of {}", stringify!($record));
            $(assert_eq!(
                offset_of!($record, $field),
                $offset,
                "offset of {}::{}",
                stringify!($record),
                stringify!($field)
            );)*
        )*
    };
}

#[test]
fn records_lie_as_in_c_1() {
    layout! {
        CUuuid_st { 16, 1; bytes 0, }
        CUmemFabricHandle_st { 64, 1; data 0, }
        CUipcEventHandle_st { 64, 1; reserved 0, }
        CUipcMemHandle_st { 64, 1; reserved 0, }
        CUstreamMemOpWaitValueParams_st { 40, 8; operation 0, address 8, anonymous 16, flags 24, alias 32, }
        CUstreamMemOpWriteValueParams_st { 40, 8; operation 0, address 8, anonymous 16, flags 24, alias 32, }
        CUstreamMemOpFlushRemoteWritesParams_st { 8, 4; operation 0, flags 4, }
        CUstreamMemOpMemoryBarrierParams_st { 8, 4; operation 0, flags 4, }
        CUstreamMemOpAtomicReductionParams_st { 40, 8; operation 0, flags 4, reductionOp 8, dataType 12, address 16, value 24, alias 32, }
        CUstreamBatchMemOpParams_union { 48, 8; operation 0, waitValue 0, writeValue 0, flushRemoteWrites 0, memoryBarrier 0, atomicReduction 0, pad 0, }
        CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st { 32, 8; ctx 0, count 8, paramArray 16, flags 24, }
        CUDA_BATCH_MEM_OP_NODE_PARAMS_v2_st { 32, 8; ctx 0, count 8, paramArray 16, flags 24, }
        CUasyncNotificationInfo_st { 16, 8; r#type 0, info 8, }
        CUdevprop_st { 56, 4; maxThreadsPerBlock 0, maxThreadsDim 4, maxGridSize 16, sharedMemPerBlock 28, totalConstantMemory 32, SIMDWidth 36, memPitch 40, regsPerBlock 44, clockRate 48, textureAlign 52, }
        CUaccessPolicyWindow_st { 32, 8; base_ptr 0, num_bytes 8, hitRatio 16, hitProp 20, missProp 24, }
        CUDA_KERNEL_NODE_PARAMS_st { 56, 8; func 0, gridDimX 8, gridDimY 12, gridDimZ 16, blockDimX 20, blockDimY 24, blockDimZ 28, sharedMemBytes 32, kernelParams 40, extra 48, }
        CUDA_KERNEL_NODE_PARAMS_v2_st { 72, 8; func 0, gridDimX 8, gridDimY 12, gridDimZ 16, blockDimX 20, blockDimY 24, blockDimZ 28, sharedMemBytes 32, kernelParams 40, extra 48, kern 56, ctx 64, }
        CUDA_KERNEL_NODE_PARAMS_v3_st { 72, 8; func 0, gridDimX 8, gridDimY 12, gridDimZ 16, blockDimX 20, blockDimY 24, blockDimZ 28, sharedMemBytes 32, kernelParams 40, extra 48, kern 56, ctx 64, }
        CUDA_MEMSET_NODE_PARAMS_st { 40, 8; dst 0, pitch 8, value 16, elementSize 20, width 24, height 32, }
        CUDA_MEMSET_NODE_PARAMS_v2_st { 48, 8; dst 0, pitch 8, value 16, elementSize 20, width 24, height 32, ctx 40, }
        CUDA_HOST_NODE_PARAMS_st { 16, 8; r#fn 0, userData 8, }
        CUDA_HOST_NODE_PARAMS_v2_st { 32, 8; r#fn 0, userData 8, syncMode 16, anonymous 24, }
        CUDA_CONDITIONAL_NODE_PARAMS { 32, 8; handle 0, r#type 8, size 12, phGraph_out 16, ctx 24, }
        CUgraphEdgeData_st { 8, 1; from_port 0, to_port 1, r#type 2, reserved 3, }
        CUDA_GRAPH_INSTANTIATE_PARAMS_st { 32, 8; flags 0, hUploadStream 8, hErrNode_out 16, result_out 24, }
        CUlaunchMemSyncDomainMap_st { 2, 1; default_ 0, remote 1, }
        CUlaunchAttributeValue_union { 64, 8; pad 0, accessPolicyWindow 0, cooperative 0, syncPolicy 0, clusterDim 0, clusterSchedulingPolicyPreference 0, programmaticStreamSerializationAllowed 0, programmaticEvent 0, launchCompletionEvent 0, priority 0, memSyncDomainMap 0, memSyncDomain 0, preferredClusterDim 0, deviceUpdatableKernelNode 0, sharedMemCarveout 0, nvlinkUtilCentricScheduling 0, portableClusterSizeMode 0, sharedMemoryMode 0, }
        CUlaunchAttribute_st { 72, 8; id 0, pad 4, value 8, }
        CUlaunchConfig_st { 56, 8; gridDimX 0, gridDimY 4, gridDimZ 8, blockDimX 12, blockDimY 16, blockDimZ 20, sharedMemBytes 24, hStream 32, attrs 40, numAttrs 48, }
        CUexecAffinitySmCount_st { 4, 4; val 0, }
        CUexecAffinityParam_st { 8, 4; r#type 0, param 4, }
        CUctxCigParam_st { 16, 8; sharedDataType 0, sharedData 8, }
        CUctxCreateParams_st { 24, 8; execAffinityParams 0, numExecAffinityParams 8, cigParams 16, }
        CUstreamCigParam_st { 16, 8; streamSharedDataType 0, streamSharedData 8, }
        CUstreamCigCaptureParams_st { 8, 8; streamCigParams 0, }
        CUlibraryHostUniversalFunctionAndDataTable_st { 32, 8; functionTable 0, functionWindowSize 8, dataTable 16, dataWindowSize 24, }
        CUDA_MEMCPY2D_st { 128, 8; srcXInBytes 0, srcY 8, srcMemoryType 16, srcHost 24, srcDevice 32, srcArray 40, srcPitch 48, dstXInBytes 56, dstY 64, dstMemoryType 72, dstHost 80, dstDevice 88, dstArray 96, dstPitch 104, WidthInBytes 112, Height 120, }
        CUDA_MEMCPY3D_st { 200, 8; srcXInBytes 0, srcY 8, srcZ 16, srcLOD 24, srcMemoryType 32, srcHost 40, srcDevice 48, srcArray 56, reserved0 64, srcPitch 72, srcHeight 80, dstXInBytes 88, dstY 96, dstZ 104, dstLOD 112, dstMemoryType 120, dstHost 128, dstDevice 136, dstArray 144, reserved1 152, dstPitch 160, dstHeight 168, WidthInBytes 176, Height 184, Depth 192, }
        CUDA_MEMCPY3D_PEER_st { 200, 8; srcXInBytes 0, srcY 8, srcZ 16, srcLOD 24, srcMemoryType 32, srcHost 40, srcDevice 48, srcArray 56, srcContext 64, srcPitch 72, srcHeight 80, dstXInBytes 88, dstY 96, dstZ 104, dstLOD 112, dstMemoryType 120, dstHost 128, dstDevice 136, dstArray 144, dstContext 152, dstPitch 160, dstHeight 168, WidthInBytes 176, Height 184, Depth 192, }
        CUDA_MEMCPY_NODE_PARAMS_st { 216, 8; flags 0, reserved 4, copyCtx 8, copyParams 16, }
    }
}

#[test]
fn records_lie_as_in_c_2() {
    layout! {
        CUDA_ARRAY_DESCRIPTOR_st { 24, 8; Width 0, Height 8, Format 16, NumChannels 20, }
        CUDA_ARRAY3D_DESCRIPTOR_st { 40, 8; Width 0, Height 8, Depth 16, Format 24, NumChannels 28, Flags 32, }
        CUDA_ARRAY_SPARSE_PROPERTIES_st { 48, 8; tileExtent 0, miptailFirstLevel 12, miptailSize 16, flags 24, reserved 28, }
        CUDA_ARRAY_MEMORY_REQUIREMENTS_st { 32, 8; size 0, alignment 8, reserved 16, }
        CUDA_RESOURCE_DESC_st { 144, 8; resType 0, res 8, flags 136, }
        CUDA_TEXTURE_DESC_st { 104, 4; addressMode 0, filterMode 12, flags 16, maxAnisotropy 20, mipmapFilterMode 24, mipmapLevelBias 28, minMipmapLevelClamp 32, maxMipmapLevelClamp 36, borderColor 40, reserved 56, }
        CUDA_RESOURCE_VIEW_DESC_st { 112, 8; format 0, width 8, height 16, depth 24, firstMipmapLevel 32, lastMipmapLevel 36, firstLayer 40, lastLayer 44, reserved 48, }
        CUtensorMap_st { 128, 128; opaque 0, }
        CUDA_POINTER_ATTRIBUTE_P2P_TOKENS_st { 16, 8; p2pToken 0, vaSpaceToken 8, }
        CUDA_LAUNCH_PARAMS_st { 56, 8; function 0, gridDimX 8, gridDimY 12, gridDimZ 16, blockDimX 20, blockDimY 24, blockDimZ 28, sharedMemBytes 32, hStream 40, kernelParams 48, }
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st { 104, 8; r#type 0, handle 8, size 24, flags 32, reserved 36, }
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st { 88, 8; offset 0, size 8, flags 16, reserved 20, }
        CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st { 120, 8; offset 0, arrayDesc 8, numLevels 48, reserved 52, }
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_st { 96, 8; r#type 0, handle 8, flags 24, reserved 28, }
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st { 144, 8; params 0, flags 72, reserved 76, }
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st { 144, 8; params 0, flags 72, reserved 76, }
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st { 24, 8; extSemArray 0, paramsArray 8, numExtSems 16, }
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st { 32, 8; extSemArray 0, paramsArray 8, numExtSems 16, anonymous 24, }
        CUDA_EXT_SEM_WAIT_NODE_PARAMS_st { 24, 8; extSemArray 0, paramsArray 8, numExtSems 16, }
        CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_st { 32, 8; extSemArray 0, paramsArray 8, numExtSems 16, anonymous 24, }
        CUarrayMapInfo_st { 96, 8; resourceType 0, resource 8, subresourceType 16, subresource 24, memOperationType 56, memHandleType 60, memHandle 64, offset 72, deviceBitMask 80, flags 84, reserved 88, }
        CUmemLocation_st { 8, 4; r#type 0, anonymous 4, }
        CUmemAllocationProp_st { 32, 8; r#type 0, requestedHandleTypes 4, location 8, win32HandleMetaData 16, allocFlags 24, }
        CUmulticastObjectProp_st { 32, 8; numDevices 0, size 8, handleTypes 16, flags 24, }
        CUmemAccessDesc_st { 12, 4; location 0, flags 8, }
        CUgraphExecUpdateResultInfo_st { 24, 8; result 0, errorNode 8, errorFromNode 16, }
        CUmemPoolProps_st { 88, 8; allocType 0, handleTypes 4, location 8, win32SecurityAttributes 16, maxSize 24, usage 32, gpuDirectRDMACapable 34, reserved 35, }
        CUmemPoolPtrExportData_st { 64, 1; reserved 0, }
        CUmemcpyAttributes_st { 24, 4; srcAccessOrder 0, srcLocHint 4, dstLocHint 12, flags 20, }
        CUoffset3D_st { 24, 8; x 0, y 8, z 16, }
        CUextent3D_st { 24, 8; width 0, height 8, depth 16, }
        CUmemcpy3DOperand_st { 40, 8; r#type 0, op 8, }
        CUDA_MEMCPY3D_BATCH_OP_st { 112, 8; src 0, dst 40, extent 80, srcAccessOrder 104, flags 108, }
        CUDA_MEM_ALLOC_NODE_PARAMS_v1_st { 120, 8; poolProps 0, accessDescs 88, accessDescCount 96, bytesize 104, dptr 112, }
        CUDA_MEM_ALLOC_NODE_PARAMS_v2_st { 120, 8; poolProps 0, accessDescs 88, accessDescCount 96, bytesize 104, dptr 112, }
        CUDA_MEM_FREE_NODE_PARAMS_st { 8, 8; dptr 0, }
        CUDA_CHILD_GRAPH_NODE_PARAMS_st { 16, 8; graph 0, ownership 8, }
        CUDA_EVENT_RECORD_NODE_PARAMS_st { 16, 8; event 0, anonymous 8, }
        CUDA_EVENT_WAIT_NODE_PARAMS_st { 8, 8; event 0, }
        CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_st { 64, 8; count 0, dsts 8, srcs 16, sizes 24, attrs 32, attrsIdxs 40, numAttrs 48, anonymous 56, }
    }
}

#[test]
fn records_lie_as_in_c_3() {
    layout! {
        CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_st { 32, 8; numOps 0, opList 8, flags 16, anonymous 24, }
        CUgraphNodeParams_st { 256, 8; r#type 0, reserved0 4, anonymous 16, reserved2 248, }
        CUcheckpointCustomStoragePerDeviceData_st { 24, 8; devPtr 0, size 8, stream 16, }
        CUcheckpointCustomStorageInfo_st { 24, 8; handle 0, perDeviceData 8, deviceCount 16, }
        CUcheckpointLockArgs_st { 64, 8; timeoutMs 0, reserved0 4, reserved1 8, }
        CUcheckpointCheckpointArgs_st { 64, 8; customStorageInfo_out 0, reserved 8, }
        CUcheckpointGpuPair_st { 32, 1; oldUuid 0, newUuid 16, }
        CUcheckpointRestoreArgs_st { 64, 8; gpuPairs 0, gpuPairsCount 8, padding0 12, customStorageInfo_out 16, reserved 24, }
        CUcheckpointUnlockArgs_st { 64, 8; reserved 0, }
        CUmemDecompressParams_st { 64, 8; srcNumBytes 0, dstNumBytes 8, dstActBytes 16, src 24, dst 32, algo 40, padding 44, }
        CUcliqueInfo_st { 8, 4; r#type 0, id 4, }
        CUlogicalEndpointFabricHandle_st { 64, 1; data 0, }
        CUlogicalEndpointProp_struct { 24, 8; r#type 0, anonymous 4, size 8, ipcHandleTypes 16, flags 20, }
        CUfabricCpyOperand_st { 24, 8; r#type 0, op 8, }
        CUDA_FABRIC_COPY_BATCH_OP_st { 64, 8; src 0, dst 24, size 48, flags 56, }
        CUdevSmResource_st { 20, 4; smCount 0, minSmPartitionSize 4, smCoscheduledAlignment 8, flags 12, localityDomainId 16, }
        CUdevWorkqueueConfigResource_st { 12, 4; device 0, wqConcurrencyLimit 4, sharingScope 8, }
        CUdevWorkqueueResource_st { 40, 1; reserved 0, }
        CU_DEV_SM_RESOURCE_GROUP_PARAMS_st { 64, 4; smCount 0, coscheduledSmCount 4, preferredCoscheduledSmCount 8, flags 12, localityDomainId 16, reserved 20, }
        CUdevResource_st { 144, 8; r#type 0, _internal_padding 4, anonymous 96, nextResource 136, }
        CUDA_MEMCPY2D_v1_st { 96, 8; srcXInBytes 0, srcY 4, srcMemoryType 8, srcHost 16, srcDevice 24, srcArray 32, srcPitch 40, dstXInBytes 44, dstY 48, dstMemoryType 52, dstHost 56, dstDevice 64, dstArray 72, dstPitch 80, WidthInBytes 84, Height 88, }
        CUDA_MEMCPY3D_v1_st { 144, 8; srcXInBytes 0, srcY 4, srcZ 8, srcLOD 12, srcMemoryType 16, srcHost 24, srcDevice 32, srcArray 40, reserved0 48, srcPitch 56, srcHeight 60, dstXInBytes 64, dstY 68, dstZ 72, dstLOD 76, dstMemoryType 80, dstHost 88, dstDevice 96, dstArray 104, reserved1 112, dstPitch 120, dstHeight 124, WidthInBytes 128, Height 132, Depth 136, }
        CUDA_ARRAY_DESCRIPTOR_v1_st { 16, 4; Width 0, Height 4, Format 8, NumChannels 12, }
        CUDA_ARRAY3D_DESCRIPTOR_v1_st { 24, 4; Width 0, Height 4, Depth 8, Format 12, NumChannels 16, Flags 20, }
    }
}
