import { fromBinary, toBinary, } from "@bufbuild/protobuf";
import { TxnRequestSchema } from "../../gen/etcd/rpc_pb.js";
import { CoreError } from "../../state/errors.js";
import { Encoded } from "./encode.js";
import { isOversized } from "./txn-size.js";
/** A service of a .proto file as grpc-js wants it. */
export function serviceDefinition(service) {
    return Object.fromEntries(service.methods.map(({ name, methodKind, input, output }) => [
        name,
        {
            path: `/${service.typeName}/${name}`,
            requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
            responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
            ...requestCodec(input),
            ...responseCodec(output),
        },
    ]));
}
function requestCodec(schema) {
    return { requestSerialize: serialize(schema), requestDeserialize: (bytes) => readRequest(schema, bytes) };
}
/**
 * What this version does not know of a request is left out: it would only stand in the log. A transaction that is too large comes
 * as the refusal that it gets, and has cost nothing.
 */
function readRequest(schema, bytes) {
    if (schema === TxnRequestSchema && isOversized(bytes))
        return new CoreError("tooManyOperations");
    return fromBinary(schema, bytes, { readUnknownFields: false });
}
function responseCodec(schema) {
    return { responseSerialize: serialize(schema), responseDeserialize: (bytes) => fromBinary(schema, bytes) };
}
function serialize(schema) {
    return (message) => {
        if (message instanceof Encoded)
            return message.bytes;
        const bytes = toBinary(schema, message);
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    };
}
