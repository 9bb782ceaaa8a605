import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { handleServerStreamingCall, handleUnaryCall, UntypedServiceImplementation } from "@grpc/grpc-js";
import { type Counters, MethodCounts } from "../common/counters.js";

const statusOk = 0;
const statusCancelled = 1;
const statusUnknown = 2;

type Handler = UntypedServiceImplementation[string];

const types = {
  unary: "unary",
  server_streaming: "server_stream",
  client_streaming: "client_stream",
  bidi_streaming: "bidi_stream",
} as const;

/** The same handlers; how often they were called, and how that ended, is counted. */
export function counted(
  service: DescService,
  handlers: UntypedServiceImplementation,
  counters: Counters,
): UntypedServiceImplementation {
  const found = service.methods.flatMap((method) => {
    const handler = handlers[method.name];
    return handler === undefined ? [] : [[method.name, countedOne(method, handler, counters)] as const];
  });
  return Object.fromEntries(found);
}

function countedOne(method: DescMethod, handler: Handler, counters: Counters): Handler {
  const type = types[method.methodKind];
  const counts = new MethodCounts(
    `grpc_method="${method.name}",grpc_service="${method.parent.typeName}",grpc_type="${type}"`,
  );
  counters.methods.push(counts);
  return method.methodKind === "unary"
    ? countedUnary(handler as handleUnaryCall<unknown, unknown>, counts)
    : countedStream(handler as handleServerStreamingCall<unknown, unknown>, counts);
}

function countedUnary(
  handler: handleUnaryCall<unknown, unknown>,
  counts: MethodCounts,
): handleUnaryCall<unknown, unknown> {
  return (call, callback) => {
    counts.started += 1;
    handler(call, (error, answer, trailer, flags) => {
      counts.handled(error ? (error.code ?? statusUnknown) : statusOk);
      callback(error, answer, trailer, flags);
    });
  };
}

/** Also of streams in both directions: they end in the same way. */
function countedStream(
  handler: handleServerStreamingCall<unknown, unknown>,
  counts: MethodCounts,
): handleServerStreamingCall<unknown, unknown> {
  return (call) => {
    counts.started += 1;
    let code: number | undefined;
    call.once("error", (error: { code?: unknown }) => {
      code = typeof error.code === "number" ? error.code : statusUnknown;
    });
    call.once("finish", () => (code ??= statusOk));
    call.once("cancelled", () => counts.handled(code ?? statusCancelled));
    handler(call);
  };
}
