// The parts of etcd's Cluster and Maintenance services that tools ask before anything else: who is there, and how it is.
import { enumDesc, fileDesc, messageDesc, serviceDesc } from "@bufbuild/protobuf/codegenv2";
import { file_etcd_rpc } from "./rpc_pb.js";
/**
 * Describes the file etcd/cluster.proto.
 */
export const file_etcd_cluster = /*@__PURE__*/ fileDesc("ChJldGNkL2NsdXN0ZXIucHJvdG8SDGV0Y2RzZXJ2ZXJwYiJbCgZNZW1iZXISCgoCSUQYASABKAQSDAoEbmFtZRgCIAEoCRIQCghwZWVyVVJMcxgDIAMoCRISCgpjbGllbnRVUkxzGAQgAygJEhEKCWlzTGVhcm5lchgFIAEoCCIpChFNZW1iZXJMaXN0UmVxdWVzdBIUCgxsaW5lYXJpemFibGUYASABKAgiaQoSTWVtYmVyTGlzdFJlc3BvbnNlEiwKBmhlYWRlchgBIAEoCzIcLmV0Y2RzZXJ2ZXJwYi5SZXNwb25zZUhlYWRlchIlCgdtZW1iZXJzGAIgAygLMhQuZXRjZHNlcnZlcnBiLk1lbWJlciK2AQoMQWxhcm1SZXF1ZXN0EjYKBmFjdGlvbhgBIAEoDjImLmV0Y2RzZXJ2ZXJwYi5BbGFybVJlcXVlc3QuQWxhcm1BY3Rpb24SEAoIbWVtYmVySUQYAiABKAQSJgoFYWxhcm0YAyABKA4yFy5ldGNkc2VydmVycGIuQWxhcm1UeXBlIjQKC0FsYXJtQWN0aW9uEgcKA0dFVBAAEgwKCEFDVElWQVRFEAESDgoKREVBQ1RJVkFURRACIkcKC0FsYXJtTWVtYmVyEhAKCG1lbWJlcklEGAEgASgEEiYKBWFsYXJtGAIgASgOMhcuZXRjZHNlcnZlcnBiLkFsYXJtVHlwZSJoCg1BbGFybVJlc3BvbnNlEiwKBmhlYWRlchgBIAEoCzIcLmV0Y2RzZXJ2ZXJwYi5SZXNwb25zZUhlYWRlchIpCgZhbGFybXMYAiADKAsyGS5ldGNkc2VydmVycGIuQWxhcm1NZW1iZXIiDwoNU3RhdHVzUmVxdWVzdCLmAQoOU3RhdHVzUmVzcG9uc2USLAoGaGVhZGVyGAEgASgLMhwuZXRjZHNlcnZlcnBiLlJlc3BvbnNlSGVhZGVyEg8KB3ZlcnNpb24YAiABKAkSDgoGZGJTaXplGAMgASgDEg4KBmxlYWRlchgEIAEoBBIRCglyYWZ0SW5kZXgYBSABKAQSEAoIcmFmdFRlcm0YBiABKAQSGAoQcmFmdEFwcGxpZWRJbmRleBgHIAEoBBIOCgZlcnJvcnMYCCADKAkSEwoLZGJTaXplSW5Vc2UYCSABKAMSEQoJaXNMZWFybmVyGAogASgIKi8KCUFsYXJtVHlwZRIICgROT05FEAASCwoHTk9TUEFDRRABEgsKB0NPUlJVUFQQAjJaCgdDbHVzdGVyEk8KCk1lbWJlckxpc3QSHy5ldGNkc2VydmVycGIuTWVtYmVyTGlzdFJlcXVlc3QaIC5ldGNkc2VydmVycGIuTWVtYmVyTGlzdFJlc3BvbnNlMpQBCgtNYWludGVuYW5jZRJACgVBbGFybRIaLmV0Y2RzZXJ2ZXJwYi5BbGFybVJlcXVlc3QaGy5ldGNkc2VydmVycGIuQWxhcm1SZXNwb25zZRJDCgZTdGF0dXMSGy5ldGNkc2VydmVycGIuU3RhdHVzUmVxdWVzdBocLmV0Y2RzZXJ2ZXJwYi5TdGF0dXNSZXNwb25zZWIGcHJvdG8z", [file_etcd_rpc]);
/**
 * Describes the message etcdserverpb.Member.
 * Use `create(MemberSchema)` to create a new message.
 */
export const MemberSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 0);
/**
 * Describes the message etcdserverpb.MemberListRequest.
 * Use `create(MemberListRequestSchema)` to create a new message.
 */
export const MemberListRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 1);
/**
 * Describes the message etcdserverpb.MemberListResponse.
 * Use `create(MemberListResponseSchema)` to create a new message.
 */
export const MemberListResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 2);
/**
 * Describes the message etcdserverpb.AlarmRequest.
 * Use `create(AlarmRequestSchema)` to create a new message.
 */
export const AlarmRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 3);
/**
 * @generated from enum etcdserverpb.AlarmRequest.AlarmAction
 */
export const AlarmRequest_AlarmAction = {
    /**
     * @generated from enum value: GET = 0;
     */
    GET: 0,
    /**
     * @generated from enum value: ACTIVATE = 1;
     */
    ACTIVATE: 1,
    /**
     * @generated from enum value: DEACTIVATE = 2;
     */
    DEACTIVATE: 2,
};
/**
 * Describes the enum etcdserverpb.AlarmRequest.AlarmAction.
 */
export const AlarmRequest_AlarmActionSchema = /*@__PURE__*/ enumDesc(file_etcd_cluster, 3, 0);
/**
 * Describes the message etcdserverpb.AlarmMember.
 * Use `create(AlarmMemberSchema)` to create a new message.
 */
export const AlarmMemberSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 4);
/**
 * Describes the message etcdserverpb.AlarmResponse.
 * Use `create(AlarmResponseSchema)` to create a new message.
 */
export const AlarmResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 5);
/**
 * Describes the message etcdserverpb.StatusRequest.
 * Use `create(StatusRequestSchema)` to create a new message.
 */
export const StatusRequestSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 6);
/**
 * Describes the message etcdserverpb.StatusResponse.
 * Use `create(StatusResponseSchema)` to create a new message.
 */
export const StatusResponseSchema = /*@__PURE__*/ messageDesc(file_etcd_cluster, 7);
/**
 * @generated from enum etcdserverpb.AlarmType
 */
export const AlarmType = {
    /**
     * @generated from enum value: NONE = 0;
     */
    NONE: 0,
    /**
     * @generated from enum value: NOSPACE = 1;
     */
    NOSPACE: 1,
    /**
     * @generated from enum value: CORRUPT = 2;
     */
    CORRUPT: 2,
};
/**
 * Describes the enum etcdserverpb.AlarmType.
 */
export const AlarmTypeSchema = /*@__PURE__*/ enumDesc(file_etcd_cluster, 0);
/**
 * @generated from service etcdserverpb.Cluster
 */
export const Cluster = /*@__PURE__*/ serviceDesc(file_etcd_cluster, 0);
/**
 * @generated from service etcdserverpb.Maintenance
 */
export const Maintenance = /*@__PURE__*/ serviceDesc(file_etcd_cluster, 1);
