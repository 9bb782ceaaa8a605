// The KV, Watch and Lease services of etcd's v3 API, so that its clients work against the core unchanged.
import { enumDesc, fileDesc, messageDesc, serviceDesc } from "@bufbuild/protobuf/codegenv2";
import { file_etcd_kv } from "./kv_pb.js";
/**
 * Describes the file etcd/rpc.proto.
 */
export const file_etcd_rpc = /*@__PURE__*/ fileDesc("Cg5ldGNkL3JwYy5wcm90bxIMZXRjZHNlcnZlcnBiIlwKDlJlc3BvbnNlSGVhZGVyEhIKCmNsdXN0ZXJfaWQYASABKAQSEQoJbWVtYmVyX2lkGAIgASgEEhAKCHJldmlzaW9uGAMgASgDEhEKCXJhZnRfdGVybRgEIAEoBCLkAwoMUmFuZ2VSZXF1ZXN0EgsKA2tleRgBIAEoDBIRCglyYW5nZV9lbmQYAiABKAwSDQoFbGltaXQYAyABKAMSEAoIcmV2aXNpb24YBCABKAMSOAoKc29ydF9vcmRlchgFIAEoDjIkLmV0Y2RzZXJ2ZXJwYi5SYW5nZVJlcXVlc3QuU29ydE9yZGVyEjoKC3NvcnRfdGFyZ2V0GAYgASgOMiUuZXRjZHNlcnZlcnBiLlJhbmdlUmVxdWVzdC5Tb3J0VGFyZ2V0EhQKDHNlcmlhbGl6YWJsZRgHIAEoCBIRCglrZXlzX29ubHkYCCABKAgSEgoKY291bnRfb25seRgJIAEoCBIYChBtaW5fbW9kX3JldmlzaW9uGAogASgDEhgKEG1heF9tb2RfcmV2aXNpb24YCyABKAMSGwoTbWluX2NyZWF0ZV9yZXZpc2lvbhgMIAEoAxIbChNtYXhfY3JlYXRlX3JldmlzaW9uGA0gASgDIi4KCVNvcnRPcmRlchIICgROT05FEAASCgoGQVNDRU5EEAESCwoHREVTQ0VORBACIkIKClNvcnRUYXJnZXQSBwoDS0VZEAASCwoHVkVSU0lPThABEgoKBkNSRUFURRACEgcKA01PRBADEgkKBVZBTFVFEAQieQoNUmFuZ2VSZXNwb25zZRIsCgZoZWFkZXIYASABKAsyHC5ldGNkc2VydmVycGIuUmVzcG9uc2VIZWFkZXISHQoDa3ZzGAIgAygLMhAubXZjY3BiLktleVZhbHVlEgwKBG1vcmUYAyABKAgSDQoFY291bnQYBCABKAMidAoKUHV0UmVxdWVzdBILCgNrZXkYASABKAwSDQoFdmFsdWUYAiABKAwSDQoFbGVhc2UYAyABKAMSDwoHcHJldl9rdhgEIAEoCBIUCgxpZ25vcmVfdmFsdWUYBSABKAgSFAoMaWdub3JlX2xlYXNlGAYgASgIIl4KC1B1dFJlc3BvbnNlEiwKBmhlYWRlchgBIAEoCzIcLmV0Y2RzZXJ2ZXJwYi5SZXNwb25zZUhlYWRlchIhCgdwcmV2X2t2GAIgASgLMhAubXZjY3BiLktleVZhbHVlIkUKEkRlbGV0ZVJhbmdlUmVxdWVzdBILCgNrZXkYASABKAwSEQoJcmFuZ2VfZW5kGAIgASgMEg8KB3ByZXZfa3YYAyABKAgieAoTRGVsZXRlUmFuZ2VSZXNwb25zZRIsCgZoZWFkZXIYASABKAsyHC5ldGNkc2VydmVycGIuUmVzcG9uc2VIZWFkZXISDwoHZGVsZXRlZBgCIAEoAxIiCghwcmV2X2t2cxgDIAMoCzIQLm12Y2NwYi5LZXlWYWx1ZSLvAQoJUmVxdWVzdE9wEjMKDXJlcXVlc3RfcmFuZ2UYASABKAsyGi5ldGNkc2VydmVycGIuUmFuZ2VSZXF1ZXN0SAASLwoLcmVxdWVzdF9wdXQYAiABKAsyGC5ldGNkc2VydmVycGIuUHV0UmVxdWVzdEgAEkAKFHJlcXVlc3RfZGVsZXRlX3JhbmdlGAMgASgLMiAuZXRjZHNlcnZlcnBiLkRlbGV0ZVJhbmdlUmVxdWVzdEgAEi8KC3JlcXVlc3RfdHhuGAQgASgLMhguZXRjZHNlcnZlcnBiLlR4blJlcXVlc3RIAEIJCgdyZXF1ZXN0IvkBCgpSZXNwb25zZU9wEjUKDnJlc3BvbnNlX3JhbmdlGAEgASgLMhsuZXRjZHNlcnZlcnBiLlJhbmdlUmVzcG9uc2VIABIxCgxyZXNwb25zZV9wdXQYAiABKAsyGS5ldGNkc2VydmVycGIuUHV0UmVzcG9uc2VIABJCChVyZXNwb25zZV9kZWxldGVfcmFuZ2UYAyABKAsyIS5ldGNkc2VydmVycGIuRGVsZXRlUmFuZ2VSZXNwb25zZUgAEjEKDHJlc3BvbnNlX3R4bhgEIAEoCzIZLmV0Y2RzZXJ2ZXJwYi5UeG5SZXNwb25zZUgAQgoKCHJlc3BvbnNlIpYDCgdDb21wYXJlEjMKBnJlc3VsdBgBIAEoDjIjLmV0Y2RzZXJ2ZXJwYi5Db21wYXJlLkNvbXBhcmVSZXN1bHQSMwoGdGFyZ2V0GAIgASgOMiMuZXRjZHNlcnZlcnBiLkNvbXBhcmUuQ29tcGFyZVRhcmdldBILCgNrZXkYAyABKAwSEQoHdmVyc2lvbhgEIAEoA0gAEhkKD2NyZWF0ZV9yZXZpc2lvbhgFIAEoA0gAEhYKDG1vZF9yZXZpc2lvbhgGIAEoA0gAEg8KBXZhbHVlGAcgASgMSAASDwoFbGVhc2UYCCABKANIABIRCglyYW5nZV9lbmQYQCABKAwiQAoNQ29tcGFyZVJlc3VsdBIJCgVFUVVBTBAAEgsKB0dSRUFURVIQARIICgRMRVNTEAISDQoJTk9UX0VRVUFMEAMiRwoNQ29tcGFyZVRhcmdldBILCgdWRVJTSU9OEAASCgoGQ1JFQVRFEAESBwoDTU9EEAISCQoFVkFMVUUQAxIJCgVMRUFTRRAEQg4KDHRhcmdldF91bmlvbiKIAQoKVHhuUmVxdWVzdBImCgdjb21wYXJlGAEgAygLMhUuZXRjZHNlcnZlcnBiLkNvbXBhcmUSKAoHc3VjY2VzcxgCIAMoCzIXLmV0Y2RzZXJ2ZXJwYi5SZXF1ZXN0T3ASKAoHZmFpbHVyZRgDIAMoCzIXLmV0Y2RzZXJ2ZXJwYi5SZXF1ZXN0T3AiewoLVHhuUmVzcG9uc2USLAoGaGVhZGVyGAEgASgLMhwuZXRjZHNlcnZlcnBiLlJlc3BvbnNlSGVhZGVyEhEKCXN1Y2NlZWRlZBgCIAEoCBIrCglyZXNwb25zZXMYAyADKAsyGC5ldGNkc2VydmVycGIuUmVzcG9uc2VPcCI3ChFDb21wYWN0aW9uUmVxdWVzdBIQCghyZXZpc2lvbhgBIAEoAxIQCghwaHlzaWNhbBgCIAEoCCJCChJDb21wYWN0aW9uUmVzcG9uc2USLAoGaGVhZGVyGAEgASgLMhwuZXRjZHNlcnZlcnBiLlJlc3BvbnNlSGVhZGVyItcBCgxXYXRjaFJlcXVlc3QSOgoOY3JlYXRlX3JlcXVlc3QYASABKAsyIC5ldGNkc2VydmVycGIuV2F0Y2hDcmVhdGVSZXF1ZXN0SAASOgoOY2FuY2VsX3JlcXVlc3QYAiABKAsyIC5ldGNkc2VydmVycGIuV2F0Y2hDYW5jZWxSZXF1ZXN0SAASPgoQcHJvZ3Jlc3NfcmVxdWVzdBgDIAEoCzIiLmV0Y2RzZXJ2ZXJwYi5XYXRjaFByb2dyZXNzUmVxdWVzdEgAQg8KDXJlcXVlc3RfdW5pb24i/wEKEldhdGNoQ3JlYXRlUmVxdWVzdBILCgNrZXkYASABKAwSEQoJcmFuZ2VfZW5kGAIgASgMEhYKDnN0YXJ0X3JldmlzaW9uGAMgASgDEhcKD3Byb2dyZXNzX25vdGlmeRgEIAEoCBI8CgdmaWx0ZXJzGAUgAygOMisuZXRjZHNlcnZlcnBiLldhdGNoQ3JlYXRlUmVxdWVzdC5GaWx0ZXJUeXBlEg8KB3ByZXZfa3YYBiABKAgSEAoId2F0Y2hfaWQYByABKAMSEAoIZnJhZ21lbnQYCCABKAgiJQoKRmlsdGVyVHlwZRIJCgVOT1BVVBAAEgwKCE5PREVMRVRFEAEiJgoSV2F0Y2hDYW5jZWxSZXF1ZXN0EhAKCHdhdGNoX2lkGAEgASgDIhYKFFdhdGNoUHJvZ3Jlc3NSZXF1ZXN0ItQBCg1XYXRjaFJlc3BvbnNlEiwKBmhlYWRlchgBIAEoCzIcLmV0Y2RzZXJ2ZXJwYi5SZXNwb25zZUhlYWRlchIQCgh3YXRjaF9pZBgCIAEoAxIPCgdjcmVhdGVkGAMgASgIEhAKCGNhbmNlbGVkGAQgASgIEhgKEGNvbXBhY3RfcmV2aXNpb24YBSABKAMSFQoNY2FuY2VsX3JlYXNvbhgGIAEoCRIQCghmcmFnbWVudBgHIAEoCBIdCgZldmVudHMYCyADKAsyDS5tdmNjcGIuRXZlbnQiLAoRTGVhc2VHcmFudFJlcXVlc3QSCwoDVFRMGAEgASgDEgoKAklEGAIgASgDImoKEkxlYXNlR3JhbnRSZXNwb25zZRIsCgZoZWFkZXIYASABKAsyHC5ldGNkc2VydmVycGIuUmVzcG9uc2VIZWFkZXISCgoCSUQYAiABKAMSCwoDVFRMGAMgASgDEg0KBWVycm9yGAQgASgJIiAKEkxlYXNlUmV2b2tlUmVxdWVzdBIKCgJJRBgBIAEoAyJDChNMZWFzZVJldm9rZVJlc3BvbnNlEiwKBmhlYWRlchgBIAEoCzIcLmV0Y2RzZXJ2ZXJwYi5SZXNwb25zZUhlYWRlciIjChVMZWFzZUtlZXBBbGl2ZVJlcXVlc3QSCgoCSUQYASABKAMiXwoWTGVhc2VLZWVwQWxpdmVSZXNwb25zZRIsCgZoZWFkZXIYASABKAsyHC5ldGNkc2VydmVycGIuUmVzcG9uc2VIZWFkZXISCgoCSUQYAiABKAMSCwoDVFRMGAMgASgDIjIKFkxlYXNlVGltZVRvTGl2ZVJlcXVlc3QSCgoCSUQYASABKAMSDAoEa2V5cxgCIAEoCCKCAQoXTGVhc2VUaW1lVG9MaXZlUmVzcG9uc2USLAoGaGVhZGVyGAEgASgLMhwuZXRjZHNlcnZlcnBiLlJlc3BvbnNlSGVhZGVyEgoKAklEGAIgASgDEgsKA1RUTBgDIAEoAxISCgpncmFudGVkVFRMGAQgASgDEgwKBGtleXMYBSADKAwiFAoSTGVhc2VMZWFzZXNSZXF1ZXN0IhkKC0xlYXNlU3RhdHVzEgoKAklEGAEgASgDIm4KE0xlYXNlTGVhc2VzUmVzcG9uc2USLAoGaGVhZGVyGAEgASgLMhwuZXRjZHNlcnZlcnBiLlJlc3BvbnNlSGVhZGVyEikKBmxlYXNlcxgCIAMoCzIZLmV0Y2RzZXJ2ZXJwYi5MZWFzZVN0YXR1czLgAgoCS1YSQAoFUmFuZ2USGi5ldGNkc2VydmVycGIuUmFuZ2VSZXF1ZXN0GhsuZXRjZHNlcnZlcnBiLlJhbmdlUmVzcG9uc2USOgoDUHV0EhguZXRjZHNlcnZlcnBiLlB1dFJlcXVlc3QaGS5ldGNkc2VydmVycGIuUHV0UmVzcG9uc2USUgoLRGVsZXRlUmFuZ2USIC5ldGNkc2VydmVycGIuRGVsZXRlUmFuZ2VSZXF1ZXN0GiEuZXRjZHNlcnZlcnBiLkRlbGV0ZVJhbmdlUmVzcG9uc2USOgoDVHhuEhguZXRjZHNlcnZlcnBiLlR4blJlcXVlc3QaGS5ldGNkc2VydmVycGIuVHhuUmVzcG9uc2USTAoHQ29tcGFjdBIfLmV0Y2RzZXJ2ZXJwYi5Db21wYWN0aW9uUmVxdWVzdBogLmV0Y2RzZXJ2ZXJwYi5Db21wYWN0aW9uUmVzcG9uc2UyTQoFV2F0Y2gSRAoFV2F0Y2gSGi5ldGNkc2VydmVycGIuV2F0Y2hSZXF1ZXN0GhsuZXRjZHNlcnZlcnBiLldhdGNoUmVzcG9uc2UoATABMsEDCgVMZWFzZRJPCgpMZWFzZUdyYW50Eh8uZXRjZHNlcnZlcnBiLkxlYXNlR3JhbnRSZXF1ZXN0GiAuZXRjZHNlcnZlcnBiLkxlYXNlR3JhbnRSZXNwb25zZRJSCgtMZWFzZVJldm9rZRIgLmV0Y2RzZXJ2ZXJwYi5MZWFzZVJldm9rZVJlcXVlc3QaIS5ldGNkc2VydmVycGIuTGVhc2VSZXZva2VSZXNwb25zZRJfCg5MZWFzZUtlZXBBbGl2ZRIjLmV0Y2RzZXJ2ZXJwYi5MZWFzZUtlZXBBbGl2ZVJlcXVlc3QaJC5ldGNkc2VydmVycGIuTGVhc2VLZWVwQWxpdmVSZXNwb25zZSgBMAESXgoPTGVhc2VUaW1lVG9MaXZlEiQuZXRjZHNlcnZlcnBiLkxlYXNlVGltZVRvTGl2ZVJlcXVlc3QaJS5ldGNkc2VydmVycGIuTGVhc2VUaW1lVG9MaXZlUmVzcG9uc2USUgoLTGVhc2VMZWFzZXMSIC5ldGNkc2VydmVycGIuTGVhc2VMZWFzZXNSZXF1ZXN0GiEuZXRjZHNlcnZlcnBiLkxlYXNlTGVhc2VzUmVzcG9uc2ViBnByb3RvMw", [file_etcd_kv]);
/**
 * Describes the message etcdserverpb.ResponseHeader.
 * Use `create(ResponseHeaderSchema)` to create a new message.
 */
export const ResponseHeaderSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 0);
/**
 * Describes the message etcdserverpb.RangeRequest.
 * Use `create(RangeRequestSchema)` to create a new message.
 */
export const RangeRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 1);
/**
 * @generated from enum etcdserverpb.RangeRequest.SortOrder
 */
export const RangeRequest_SortOrder = {
    /**
     * @generated from enum value: NONE = 0;
     */
    NONE: 0,
    /**
     * @generated from enum value: ASCEND = 1;
     */
    ASCEND: 1,
    /**
     * @generated from enum value: DESCEND = 2;
     */
    DESCEND: 2,
};
/**
 * Describes the enum etcdserverpb.RangeRequest.SortOrder.
 */
export const RangeRequest_SortOrderSchema = /*@__PURE__*/ enumDesc(file_etcd_rpc, 1, 0);
/**
 * @generated from enum etcdserverpb.RangeRequest.SortTarget
 */
export const RangeRequest_SortTarget = {
    /**
     * @generated from enum value: KEY = 0;
     */
    KEY: 0,
    /**
     * @generated from enum value: VERSION = 1;
     */
    VERSION: 1,
    /**
     * @generated from enum value: CREATE = 2;
     */
    CREATE: 2,
    /**
     * @generated from enum value: MOD = 3;
     */
    MOD: 3,
    /**
     * @generated from enum value: VALUE = 4;
     */
    VALUE: 4,
};
/**
 * Describes the enum etcdserverpb.RangeRequest.SortTarget.
 */
export const RangeRequest_SortTargetSchema = /*@__PURE__*/ enumDesc(file_etcd_rpc, 1, 1);
/**
 * Describes the message etcdserverpb.RangeResponse.
 * Use `create(RangeResponseSchema)` to create a new message.
 */
export const RangeResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 2);
/**
 * Describes the message etcdserverpb.PutRequest.
 * Use `create(PutRequestSchema)` to create a new message.
 */
export const PutRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 3);
/**
 * Describes the message etcdserverpb.PutResponse.
 * Use `create(PutResponseSchema)` to create a new message.
 */
export const PutResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 4);
/**
 * Describes the message etcdserverpb.DeleteRangeRequest.
 * Use `create(DeleteRangeRequestSchema)` to create a new message.
 */
export const DeleteRangeRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 5);
/**
 * Describes the message etcdserverpb.DeleteRangeResponse.
 * Use `create(DeleteRangeResponseSchema)` to create a new message.
 */
export const DeleteRangeResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 6);
/**
 * Describes the message etcdserverpb.RequestOp.
 * Use `create(RequestOpSchema)` to create a new message.
 */
export const RequestOpSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 7);
/**
 * Describes the message etcdserverpb.ResponseOp.
 * Use `create(ResponseOpSchema)` to create a new message.
 */
export const ResponseOpSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 8);
/**
 * Describes the message etcdserverpb.Compare.
 * Use `create(CompareSchema)` to create a new message.
 */
export const CompareSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 9);
/**
 * @generated from enum etcdserverpb.Compare.CompareResult
 */
export const Compare_CompareResult = {
    /**
     * @generated from enum value: EQUAL = 0;
     */
    EQUAL: 0,
    /**
     * @generated from enum value: GREATER = 1;
     */
    GREATER: 1,
    /**
     * @generated from enum value: LESS = 2;
     */
    LESS: 2,
    /**
     * @generated from enum value: NOT_EQUAL = 3;
     */
    NOT_EQUAL: 3,
};
/**
 * Describes the enum etcdserverpb.Compare.CompareResult.
 */
export const Compare_CompareResultSchema = /*@__PURE__*/ enumDesc(file_etcd_rpc, 9, 0);
/**
 * @generated from enum etcdserverpb.Compare.CompareTarget
 */
export const Compare_CompareTarget = {
    /**
     * @generated from enum value: VERSION = 0;
     */
    VERSION: 0,
    /**
     * @generated from enum value: CREATE = 1;
     */
    CREATE: 1,
    /**
     * @generated from enum value: MOD = 2;
     */
    MOD: 2,
    /**
     * @generated from enum value: VALUE = 3;
     */
    VALUE: 3,
    /**
     * @generated from enum value: LEASE = 4;
     */
    LEASE: 4,
};
/**
 * Describes the enum etcdserverpb.Compare.CompareTarget.
 */
export const Compare_CompareTargetSchema = /*@__PURE__*/ enumDesc(file_etcd_rpc, 9, 1);
/**
 * Describes the message etcdserverpb.TxnRequest.
 * Use `create(TxnRequestSchema)` to create a new message.
 */
export const TxnRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 10);
/**
 * Describes the message etcdserverpb.TxnResponse.
 * Use `create(TxnResponseSchema)` to create a new message.
 */
export const TxnResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 11);
/**
 * Describes the message etcdserverpb.CompactionRequest.
 * Use `create(CompactionRequestSchema)` to create a new message.
 */
export const CompactionRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 12);
/**
 * Describes the message etcdserverpb.CompactionResponse.
 * Use `create(CompactionResponseSchema)` to create a new message.
 */
export const CompactionResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 13);
/**
 * Describes the message etcdserverpb.WatchRequest.
 * Use `create(WatchRequestSchema)` to create a new message.
 */
export const WatchRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 14);
/**
 * Describes the message etcdserverpb.WatchCreateRequest.
 * Use `create(WatchCreateRequestSchema)` to create a new message.
 */
export const WatchCreateRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 15);
/**
 * @generated from enum etcdserverpb.WatchCreateRequest.FilterType
 */
export const WatchCreateRequest_FilterType = {
    /**
     * @generated from enum value: NOPUT = 0;
     */
    NOPUT: 0,
    /**
     * @generated from enum value: NODELETE = 1;
     */
    NODELETE: 1,
};
/**
 * Describes the enum etcdserverpb.WatchCreateRequest.FilterType.
 */
export const WatchCreateRequest_FilterTypeSchema = /*@__PURE__*/ enumDesc(file_etcd_rpc, 15, 0);
/**
 * Describes the message etcdserverpb.WatchCancelRequest.
 * Use `create(WatchCancelRequestSchema)` to create a new message.
 */
export const WatchCancelRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 16);
/**
 * Describes the message etcdserverpb.WatchProgressRequest.
 * Use `create(WatchProgressRequestSchema)` to create a new message.
 */
export const WatchProgressRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 17);
/**
 * Describes the message etcdserverpb.WatchResponse.
 * Use `create(WatchResponseSchema)` to create a new message.
 */
export const WatchResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 18);
/**
 * Describes the message etcdserverpb.LeaseGrantRequest.
 * Use `create(LeaseGrantRequestSchema)` to create a new message.
 */
export const LeaseGrantRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 19);
/**
 * Describes the message etcdserverpb.LeaseGrantResponse.
 * Use `create(LeaseGrantResponseSchema)` to create a new message.
 */
export const LeaseGrantResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 20);
/**
 * Describes the message etcdserverpb.LeaseRevokeRequest.
 * Use `create(LeaseRevokeRequestSchema)` to create a new message.
 */
export const LeaseRevokeRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 21);
/**
 * Describes the message etcdserverpb.LeaseRevokeResponse.
 * Use `create(LeaseRevokeResponseSchema)` to create a new message.
 */
export const LeaseRevokeResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 22);
/**
 * Describes the message etcdserverpb.LeaseKeepAliveRequest.
 * Use `create(LeaseKeepAliveRequestSchema)` to create a new message.
 */
export const LeaseKeepAliveRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 23);
/**
 * Describes the message etcdserverpb.LeaseKeepAliveResponse.
 * Use `create(LeaseKeepAliveResponseSchema)` to create a new message.
 */
export const LeaseKeepAliveResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 24);
/**
 * Describes the message etcdserverpb.LeaseTimeToLiveRequest.
 * Use `create(LeaseTimeToLiveRequestSchema)` to create a new message.
 */
export const LeaseTimeToLiveRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 25);
/**
 * Describes the message etcdserverpb.LeaseTimeToLiveResponse.
 * Use `create(LeaseTimeToLiveResponseSchema)` to create a new message.
 */
export const LeaseTimeToLiveResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 26);
/**
 * Describes the message etcdserverpb.LeaseLeasesRequest.
 * Use `create(LeaseLeasesRequestSchema)` to create a new message.
 */
export const LeaseLeasesRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 27);
/**
 * Describes the message etcdserverpb.LeaseStatus.
 * Use `create(LeaseStatusSchema)` to create a new message.
 */
export const LeaseStatusSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 28);
/**
 * Describes the message etcdserverpb.LeaseLeasesResponse.
 * Use `create(LeaseLeasesResponseSchema)` to create a new message.
 */
export const LeaseLeasesResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_rpc, 29);
/**
 * @generated from service etcdserverpb.KV
 */
export const KV = /*@__PURE__*/ serviceDesc(file_etcd_rpc, 0);
/**
 * @generated from service etcdserverpb.Watch
 */
export const Watch = /*@__PURE__*/ serviceDesc(file_etcd_rpc, 1);
/**
 * @generated from service etcdserverpb.Lease
 */
export const Lease = /*@__PURE__*/ serviceDesc(file_etcd_rpc, 2);
