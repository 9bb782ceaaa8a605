import {
  type DescMessage,
  type DescService,
  type MessageShape,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import {
  DeleteRangeRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
} from "../../gen/etcd/rpc_pb.js";
import { CampaignRequestSchema, ProclaimRequestSchema } from "../../gen/etcd/v3election_pb.js";
import { CoreError } from "../../state/errors.js";
import { Encoded } from "./encode.js";
import { isOversized } from "./txn-size.js";

/** A service of a .proto file as grpc-js wants it. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map(({ name, methodKind, input, output }) => [
      name,
      {
        path: `/${service.typeName}/${name}`,
        requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
        responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
        ...requestCodec(input),
        ...responseCodec(output),
      },
    ]),
  );
}

type RequestCodec = Pick<MethodDefinition<unknown, unknown>, "requestSerialize" | "requestDeserialize">;
type ResponseCodec = Pick<MethodDefinition<unknown, unknown>, "responseSerialize" | "responseDeserialize">;

function requestCodec(schema: DescMessage): RequestCodec {
  return { requestSerialize: serialize(schema), requestDeserialize: (bytes) => readRequest(schema, bytes) };
}

/** Others have no content of their own, and a list in them would be decoded as a whole. */
const withContent: ReadonlySet<DescMessage> = new Set([
  CampaignRequestSchema,
  DeleteRangeRequestSchema,
  ProclaimRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
]);
const withoutContentBytesMax = 64 * 1024;

/**
 * What this version does not know of a request is left out: it would only stand in the log. What is too large
 * comes as the refusal that it gets, and has cost nothing.
 */
function readRequest(schema: DescMessage, bytes: Buffer): unknown {
  if (!withContent.has(schema) && bytes.length > withoutContentBytesMax)
    return new CoreError("requestTooLarge");
  if (schema === TxnRequestSchema && isOversized(bytes)) return new CoreError("tooManyOperations");
  return fromBinary(schema, bytes, { readUnknownFields: false });
}

function responseCodec(schema: DescMessage): ResponseCodec {
  return { responseSerialize: serialize(schema), responseDeserialize: (bytes) => fromBinary(schema, bytes) };
}

function serialize<Schema extends DescMessage>(schema: Schema): (message: unknown) => Buffer {
  return (message) => {
    if (message instanceof Encoded) return message.bytes;
    const bytes = toBinary(schema, message as MessageShape<Schema>);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  };
}
