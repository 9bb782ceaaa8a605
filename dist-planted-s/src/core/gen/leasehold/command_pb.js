// What stands in the replicated log: the commands of the state machine.
import { fileDesc, messageDesc } from "@bufbuild/protobuf/codegenv2";
import { file_etcd_rpc } from "../etcd/rpc_pb.js";
/**
 * Describes the file leasehold/command.proto.
 */
export const file_leasehold_command = /*@__PURE__*/ fileDesc("ChdsZWFzZWhvbGQvY29tbWFuZC5wcm90bxIObGVhc2Vob2xkLmNvcmUi7AQKB0NvbW1hbmQSEAoIcHJvcG9zZXIYASABKAQSDwoHcmVxdWVzdBgCIAEoBBInCgNwdXQYAyABKAsyGC5ldGNkc2VydmVycGIuUHV0UmVxdWVzdEgAEjgKDGRlbGV0ZV9yYW5nZRgEIAEoCzIgLmV0Y2RzZXJ2ZXJwYi5EZWxldGVSYW5nZVJlcXVlc3RIABInCgN0eG4YBSABKAsyGC5ldGNkc2VydmVycGIuVHhuUmVxdWVzdEgAEjIKB2NvbXBhY3QYBiABKAsyHy5ldGNkc2VydmVycGIuQ29tcGFjdGlvblJlcXVlc3RIABI2CgtsZWFzZV9ncmFudBgHIAEoCzIfLmV0Y2RzZXJ2ZXJwYi5MZWFzZUdyYW50UmVxdWVzdEgAEjgKDGxlYXNlX3Jldm9rZRgIIAEoCzIgLmV0Y2RzZXJ2ZXJwYi5MZWFzZVJldm9rZVJlcXVlc3RIABIzCgxsZWFzZV9leHBpcmUYCSABKAsyGy5sZWFzZWhvbGQuY29yZS5MZWFzZUV4cGlyZUgAEjcKDnJlZ2lzdGVyX2xlYXNlGAogASgLMh0ubGVhc2Vob2xkLmNvcmUuUmVnaXN0ZXJMZWFzZUgAEjMKDGNsdXN0ZXJfdGltZRgLIAEoCzIbLmxlYXNlaG9sZC5jb3JlLkNsdXN0ZXJUaW1lSAASLgoJYm9vdHN0cmFwGAwgASgLMhkubGVhc2Vob2xkLmNvcmUuQm9vdHN0cmFwSAASMQoLc3BhY2VfYWxhcm0YDSABKAsyGi5sZWFzZWhvbGQuY29yZS5TcGFjZUFsYXJtSABCBgoEYm9keSI3CgtMZWFzZUV4cGlyZRILCgNpZHMYASADKAMSDAoEdGVybRgCIAEoBBINCgVhcGFydBgDIAEoCCIqCg1SZWdpc3RlckxlYXNlEgwKBG5hbWUYASABKAkSCwoDdHRsGAIgASgDIksKC0NsdXN0ZXJUaW1lEhQKDG1pbGxpc2Vjb25kcxgBIAEoBBImCgRsZWZ0GAIgAygLMhgubGVhc2Vob2xkLmNvcmUuVGltZUxlZnQiLAoIVGltZUxlZnQSCgoCaWQYASABKAMSFAoMbWlsbGlzZWNvbmRzGAIgASgEIiwKClNwYWNlQWxhcm0SDgoGbWVtYmVyGAEgASgEEg4KBnJhaXNlZBgCIAEoCCIcCglCb290c3RyYXASDwoHY2x1c3RlchgBIAEoBGIGcHJvdG8z", [file_etcd_rpc]);
/**
 * Describes the message leasehold.core.Command.
 * Use `create(CommandSchema)` to create a new message.
 */
export const CommandSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 0);
/**
 * Describes the message leasehold.core.LeaseExpire.
 * Use `create(LeaseExpireSchema)` to create a new message.
 */
export const LeaseExpireSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 1);
/**
 * Describes the message leasehold.core.RegisterLease.
 * Use `create(RegisterLeaseSchema)` to create a new message.
 */
export const RegisterLeaseSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 2);
/**
 * Describes the message leasehold.core.ClusterTime.
 * Use `create(ClusterTimeSchema)` to create a new message.
 */
export const ClusterTimeSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 3);
/**
 * Describes the message leasehold.core.TimeLeft.
 * Use `create(TimeLeftSchema)` to create a new message.
 */
export const TimeLeftSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 4);
/**
 * Describes the message leasehold.core.SpaceAlarm.
 * Use `create(SpaceAlarmSchema)` to create a new message.
 */
export const SpaceAlarmSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 5);
/**
 * Describes the message leasehold.core.Bootstrap.
 * Use `create(BootstrapSchema)` to create a new message.
 */
export const BootstrapSchema = /*@__PURE__*/ messageDesc(file_leasehold_command, 6);
