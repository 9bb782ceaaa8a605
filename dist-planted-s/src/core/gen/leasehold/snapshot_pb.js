// The state machine's content, as a sequence of pieces.
import { fileDesc, messageDesc } from "@bufbuild/protobuf/codegenv2";
/**
 * Describes the file leasehold/snapshot.proto.
 */
export const file_leasehold_snapshot = /*@__PURE__*/ fileDesc("ChhsZWFzZWhvbGQvc25hcHNob3QucHJvdG8SDmxlYXNlaG9sZC5jb3JlIvEBCg1TbmFwc2hvdFBpZWNlEiwKBGhlYWQYASABKAsyHC5sZWFzZWhvbGQuY29yZS5TbmFwc2hvdEhlYWRIABIuCgVsZWFzZRgCIAEoCzIdLmxlYXNlaG9sZC5jb3JlLlNuYXBzaG90TGVhc2VIABIyCgdoaXN0b3J5GAMgASgLMh8ubGVhc2Vob2xkLmNvcmUuU25hcHNob3RIaXN0b3J5SAASEAoGcGllY2VzGAQgASgESAASNAoJY29udGludWVkGAUgASgLMh8ubGVhc2Vob2xkLmNvcmUuU25hcHNob3RIaXN0b3J5SABCBgoEYm9keSJ4CgxTbmFwc2hvdEhlYWQSDwoHY2x1c3RlchgBIAEoBBIQCghyZXZpc2lvbhgCIAEoAxIRCgljb21wYWN0ZWQYAyABKAMSHAoUY2x1c3Rlcl9taWxsaXNlY29uZHMYBCABKAQSFAoMc3BhY2VfYWxhcm1zGAUgAygEIlIKDVNuYXBzaG90TGVhc2USCgoCaWQYASABKAMSCwoDdHRsGAIgASgDEgwKBG5hbWUYAyABKAkSEQoEbGVmdBgEIAEoBEgAiAEBQgcKBV9sZWZ0IlEKD1NuYXBzaG90SGlzdG9yeRILCgNrZXkYASABKAwSMQoIdmVyc2lvbnMYAiADKAsyHy5sZWFzZWhvbGQuY29yZS5TbmFwc2hvdFZlcnNpb24icAoPU25hcHNob3RWZXJzaW9uEhAKCG1vZGlmaWVkGAEgASgDEgsKA3N1YhgCIAEoAxIPCgdjcmVhdGVkGAMgASgDEg8KB3ZlcnNpb24YBCABKAMSDQoFdmFsdWUYBSABKAwSDQoFbGVhc2UYBiABKANiBnByb3RvMw");
/**
 * Describes the message leasehold.core.SnapshotPiece.
 * Use `create(SnapshotPieceSchema)` to create a new message.
 */
export const SnapshotPieceSchema = /*@__PURE__*/ messageDesc(file_leasehold_snapshot, 0);
/**
 * Describes the message leasehold.core.SnapshotHead.
 * Use `create(SnapshotHeadSchema)` to create a new message.
 */
export const SnapshotHeadSchema = /*@__PURE__*/ messageDesc(file_leasehold_snapshot, 1);
/**
 * Describes the message leasehold.core.SnapshotLease.
 * Use `create(SnapshotLeaseSchema)` to create a new message.
 */
export const SnapshotLeaseSchema = /*@__PURE__*/ messageDesc(file_leasehold_snapshot, 2);
/**
 * Describes the message leasehold.core.SnapshotHistory.
 * Use `create(SnapshotHistorySchema)` to create a new message.
 */
export const SnapshotHistorySchema = /*@__PURE__*/ messageDesc(file_leasehold_snapshot, 3);
/**
 * Describes the message leasehold.core.SnapshotVersion.
 * Use `create(SnapshotVersionSchema)` to create a new message.
 */
export const SnapshotVersionSchema = /*@__PURE__*/ messageDesc(file_leasehold_snapshot, 4);
