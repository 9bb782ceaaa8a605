// A stored key, and what happened to it: the types of etcd's v3 API that every service shares.
import { enumDesc, fileDesc, messageDesc } from "@bufbuild/protobuf/codegenv2";
/**
 * Describes the file etcd/kv.proto.
 */
export const file_etcd_kv = /*@__PURE__*/ fileDesc("Cg1ldGNkL2t2LnByb3RvEgZtdmNjcGIidQoIS2V5VmFsdWUSCwoDa2V5GAEgASgMEhcKD2NyZWF0ZV9yZXZpc2lvbhgCIAEoAxIUCgxtb2RfcmV2aXNpb24YAyABKAMSDwoHdmVyc2lvbhgEIAEoAxINCgV2YWx1ZRgFIAEoDBINCgVsZWFzZRgGIAEoAyKRAQoFRXZlbnQSJQoEdHlwZRgBIAEoDjIXLm12Y2NwYi5FdmVudC5FdmVudFR5cGUSHAoCa3YYAiABKAsyEC5tdmNjcGIuS2V5VmFsdWUSIQoHcHJldl9rdhgDIAEoCzIQLm12Y2NwYi5LZXlWYWx1ZSIgCglFdmVudFR5cGUSBwoDUFVUEAASCgoGREVMRVRFEAFiBnByb3RvMw");
/**
 * Describes the message mvccpb.KeyValue.
 * Use `create(KeyValueSchema)` to create a new message.
 */
export const KeyValueSchema = /*@__PURE__*/ messageDesc(file_etcd_kv, 0);
/**
 * Describes the message mvccpb.Event.
 * Use `create(EventSchema)` to create a new message.
 */
export const EventSchema = /*@__PURE__*/ messageDesc(file_etcd_kv, 1);
/**
 * @generated from enum mvccpb.Event.EventType
 */
export const Event_EventType = {
    /**
     * @generated from enum value: PUT = 0;
     */
    PUT: 0,
    /**
     * @generated from enum value: DELETE = 1;
     */
    DELETE: 1,
};
/**
 * Describes the enum mvccpb.Event.EventType.
 */
export const Event_EventTypeSchema = /*@__PURE__*/ enumDesc(file_etcd_kv, 1, 0);
