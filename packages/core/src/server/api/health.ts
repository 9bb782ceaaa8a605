import { create } from "@bufbuild/protobuf";
import {
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as Status,
  HealthCheckResponseSchema,
} from "leasehold/etcd/gen/etcd/health_pb.js";
import type { CoreHost } from "../../host/host.js";
import type { Handlers, StreamHandler, UnaryHandler } from "../wire/rpc/call.js";
import type { Streams } from "./calls/streams.js";

const statusNotFound = 5;

/** Interval at which `Watch` checks for a leader, ms. */
const lookMs = 250;

/** gRPC's health service. The server, whose service name is empty, is serving while it knows a leader. */
export function healthHandlers(host: CoreHost, streams: Streams): Handlers {
  const statusOf = (request: unknown) => {
    if ((request as HealthCheckRequest).service !== "") return Status.SERVICE_UNKNOWN;
    return host.status().leader === 0n ? Status.NOT_SERVING : Status.SERVING;
  };
  return {
    Check: ((call, callback) => {
      const status = statusOf(call.request);
      if (status === Status.SERVICE_UNKNOWN) callback({ code: statusNotFound, details: "unknown service" });
      else callback(null, create(HealthCheckResponseSchema, { status }));
    }) satisfies UnaryHandler,
    Watch: ((call) => {
      if (!streams.admit(call)) return;
      let sent: Status | undefined;
      const look = () => {
        const status = statusOf(call.request);
        if (status !== sent) call.write(create(HealthCheckResponseSchema, { status }));
        sent = status;
      };
      const looking = setInterval(look, lookMs);
      call.whenOver(() => clearInterval(looking));
      look();
    }) satisfies StreamHandler,
  };
}
