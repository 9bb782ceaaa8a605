import {
  type DescMessage,
  type DescService,
  fromBinary,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { ServiceDefinition } from "@grpc/grpc-js";

/** A service of a .proto file in the form that clients of grpc-js need. */
export function serviceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map(({ name, methodKind, input, output }) => [
      name,
      {
        path: `/${service.typeName}/${name}`,
        requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
        responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
        requestSerialize: serialize(input),
        requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
        responseSerialize: serialize(output),
        responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
      },
    ]),
  );
}

function serialize<Schema extends DescMessage>(schema: Schema): (message: unknown) => Buffer {
  return (message) => Buffer.from(toBinary(schema, message as MessageShape<Schema>));
}
