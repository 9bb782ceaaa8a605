import {
  type DescMessage,
  type DescService,
  type MessageShape,
  fromBinary,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

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
  return { requestSerialize: serialize(schema), requestDeserialize: (bytes) => fromBinary(schema, bytes) };
}

function responseCodec(schema: DescMessage): ResponseCodec {
  return { responseSerialize: serialize(schema), responseDeserialize: (bytes) => fromBinary(schema, bytes) };
}

function serialize<Schema extends DescMessage>(schema: Schema): (message: unknown) => Buffer {
  return (message) => {
    const bytes = toBinary(schema, message as MessageShape<Schema>);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  };
}
