import {
  type DescMessage,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  DeleteRangeRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
  WatchResponseSchema,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CampaignRequestSchema, ProclaimRequestSchema } from "leasehold/etcd/gen/etcd/v3election_pb.js";
import { CoreError } from "../../../state/errors.js";
import type { Counters } from "../../metrics/counters.js";
import type { Handlers, Method } from "../../wire/rpc/call.js";
import { type Audit, counted } from "./count-calls.js";
import { LongAnswer, watchEncoder } from "./encode.js";
import { isOversized } from "./txn-size.js";

/** The methods of a service in a .proto file that have handlers. */
export function methodsOf(
  service: DescService,
  handlers: Handlers,
  counters: Counters,
  audit?: Audit,
): (readonly [name: string, method: Method])[] {
  return service.methods.flatMap((described) => {
    const { input, methodKind: kind, name, output } = described;
    const handler = handlers[name];
    if (handler === undefined) return [];
    const decode = (bytes: Uint8Array) => readRequest(input, bytes);
    return [
      [
        name,
        { kind, handler: counted(described, handler, counters, audit), decode, encode: encoder(output) },
      ],
    ];
  });
}

/** Requests of other kinds have no content, but a list in one would be decoded completely. */
const withContent: ReadonlySet<DescMessage> = new Set([
  CampaignRequestSchema,
  DeleteRangeRequestSchema,
  ProclaimRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  TxnRequestSchema,
]);
const withoutContentBytesMax = 64 * 1024;

/** Whether a request of this kind may be large. */
export function hasContent(schema: DescMessage): boolean {
  return withContent.has(schema);
}

/**
 * Decodes a request. Unknown fields are dropped, since they would only take space in the log. An oversized
 * request becomes its refusal, without the cost of decoding.
 */
export function readRequest(schema: DescMessage, bytes: Uint8Array): unknown {
  if (!hasContent(schema) && bytes.length > withoutContentBytesMax) return new CoreError("requestTooLarge");
  if (schema === TxnRequestSchema && isOversized(bytes)) return new CoreError("tooManyOperations");
  return fromBinary(schema, bytes, { readUnknownFields: false });
}

function encoder<Schema extends DescMessage>(schema: Schema): Method["encode"] {
  const plain =
    schema.typeName === WatchResponseSchema.typeName
      ? (watchEncoder() as (message: unknown) => Uint8Array)
      : (message: unknown) => toBinary(schema, message as MessageShape<Schema>);
  return (message) => (message instanceof LongAnswer ? message : plain(message));
}
