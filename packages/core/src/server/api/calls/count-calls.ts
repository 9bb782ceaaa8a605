import type { DescMethod } from "@bufbuild/protobuf";
import { type Counters, MethodCounts } from "../../metrics/counters.js";
import type { Answer, ServerStream, StreamHandler, UnaryCall, UnaryHandler } from "../../wire/rpc/call.js";

const types = {
  unary: "unary",
  server_streaming: "server_stream",
  client_streaming: "client_stream",
  bidi_streaming: "bidi_stream",
} as const;

/** Wraps a handler, and counts its calls and their results. */
export function counted(
  method: DescMethod,
  handler: StreamHandler | UnaryHandler,
  counters: Counters,
): StreamHandler | UnaryHandler {
  const type = types[method.methodKind];
  const counts = new MethodCounts(
    `grpc_method="${method.name}",grpc_service="${method.parent.typeName}",grpc_type="${type}"`,
  );
  counters.methods.push(counts);
  return (call: ServerStream | UnaryCall, callback?: Answer) => {
    counts.started += 1;
    const begunMs = performance.now();
    call.whenOver(() => counts.handled(call.code, performance.now() - begunMs));
    (handler as (call: unknown, callback: unknown) => void)(call, callback);
  };
}
