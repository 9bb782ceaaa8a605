import type { DescMethod } from "@bufbuild/protobuf";
import { type Counters, MethodCounts } from "../../metrics/counters.js";
import type { Answer, ServerStream, StreamHandler, UnaryCall, UnaryHandler } from "../../wire/rpc/call.js";

const types = {
  unary: "unary",
  server_streaming: "server_stream",
  client_streaming: "client_stream",
  bidi_streaming: "bidi_stream",
} as const;

/** Observes each finished call, with its response if there is one. */
export interface Audit {
  over(method: string, call: ServerStream | UnaryCall, response: unknown): void;
}

/** Wraps a handler to count its calls and their results. */
export function counted(
  method: DescMethod,
  handler: StreamHandler | UnaryHandler,
  counters: Counters,
  audit?: Audit,
): StreamHandler | UnaryHandler {
  const type = types[method.methodKind];
  const counts = new MethodCounts(
    `grpc_method="${method.name}",grpc_service="${method.parent.typeName}",grpc_type="${type}"`,
  );
  counters.methods.push(counts);
  return (call: ServerStream | UnaryCall, callback?: Answer) => {
    counts.started += 1;
    const begunMs = performance.now();
    let response: unknown;
    call.whenOver(() => {
      counts.handled(call.code, performance.now() - begunMs);
      audit?.over(method.name, call, response);
    });
    const answer: Answer = (error, message) => {
      response = message;
      callback?.(error, message);
    };
    (handler as (call: unknown, callback: unknown) => void)(call, answer);
  };
}
