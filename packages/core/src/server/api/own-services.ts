import type { DescService } from "@bufbuild/protobuf";
import { Diagnosis, NamedLeases } from "leasehold/etcd/gen/leasehold/own_pb.js";
import type { AuthHandlers } from "./auth.js";
import type { UnaryHandlers } from "./calls/header.js";
import type { DiagnosisHandlers } from "./diagnosis.js";
import { namedLeaseHandlers } from "./named-leases.js";

/** What there is beside etcd's services (`own.proto`). */
export function ownServices(diagnosis: DiagnosisHandlers) {
  return (auth: AuthHandlers): [DescService, UnaryHandlers][] => [
    [NamedLeases, namedLeaseHandlers(auth)],
    [Diagnosis, diagnosis.handlers()],
  ];
}
