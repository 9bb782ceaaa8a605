import { create } from "@bufbuild/protobuf";
import type { World } from "../common/ports.js";
import {
  Cluster,
  Maintenance,
  type Member,
  MemberListRequestSchema,
  StatusRequestSchema,
} from "./gen/etcd/cluster_pb.js";
import { Diagnosis, type ReportResponse, ReportRequestSchema } from "./gen/leasehold/own_pb.js";
import { LeaseholdError } from "../lease/errors.js";
import type {
  AnsweringServer,
  ClockReading,
  CoreReport,
  OwnReport,
  ServerReport,
  SilentServer,
} from "./core-report.js";
import { grpcConnections, type TlsSource } from "./connection/grpc-connection.js";
import { Servers } from "./servers.js";

/** Connections and limits of the requests. */
interface Asking {
  readonly tls: TlsSource | undefined;
  readonly timeoutMs: number;
  readonly world: World;
}

interface Answer {
  readonly report: ServerReport;
  readonly members: readonly Member[];
  readonly clock?: ClockReading;
}

/** Asks every server at these addresses for its state, and also the servers that they name. */
export async function serverReports(
  endpoints: readonly string[],
  tls: TlsSource | undefined,
  timeoutMs: number,
  world: World,
): Promise<CoreReport> {
  const asking = { tls, timeoutMs, world };
  const asked = await Promise.all(endpoints.map((endpoint) => ask(endpoint, asking)));
  const known = new Set(asked.flatMap(({ report }) => (report.reachable ? [report.id] : [])));
  const others = new Map<string, string>();
  const members = asked.map((each) => each.members).find((each) => each.length > 0) ?? [];
  for (const { ID, clientURLs } of members) {
    const address = clientURLs.map(addressOf).find((each) => each !== undefined);
    const isAsked = known.has(hex(ID)) || address === undefined || endpoints.includes(address);
    if (!isAsked) others.set(hex(ID), address);
  }
  const more = await Promise.all([...others.values()].map((each) => ask(each, asking)));
  const answers = [...asked, ...more];
  return {
    servers: withLag(answers.map(({ report }) => (report.reachable ? report : named(report, members)))),
    size: members.length === 0 ? endpoints.length : members.filter(({ isLearner }) => !isLearner).length,
    clocks: new Map(
      answers.flatMap(({ clock, report }) =>
        clock === undefined || !report.reachable ? [] : [[report.id, clock] as const],
      ),
    ),
  };
}

async function ask(address: string, { tls, timeoutMs, world }: Asking): Promise<Answer> {
  // Servers without a leader answer as well.
  const connect = grpcConnections(tls, { wantsLeader: false });
  const servers = new Servers([address], { connect }, world);
  const nowMs = () => world.clock.monotonicMs();
  const limits = { timeoutMs };
  try {
    const { members } = await servers.ask(Cluster.method.memberList, create(MemberListRequestSchema), limits);
    const begunMs = nowMs();
    const status = await servers.ask(Maintenance.method.status, create(StatusRequestSchema), limits);
    const roundTripMs = nowMs() - begunMs;
    const askedMs = nowMs();
    const own = await ownReport(servers, timeoutMs);
    const answeredMs = nowMs();
    const id = status.header?.memberId ?? 0n;
    const report = {
      address,
      reachable: true,
      id: hex(id),
      name: members.find(({ ID }) => ID === id)?.name ?? "",
      version: status.version,
      isLeader: status.leader === id,
      isLearner: status.isLearner,
      leader: status.leader === 0n ? "" : hex(status.leader),
      term: status.raftTerm,
      logIndex: status.raftIndex,
      appliedIndex: status.raftAppliedIndex,
      lag: 0n,
      dataBytes: status.dbSize,
      alarms: status.errors.filter((each) => /alarm:/.test(each)).map((each) => each.trim()),
      roundTripMs,
      ...(own !== undefined && { own: reportOf(own) }),
    } as const;
    const clock = own && { thereMs: own.steadyMs, askedMs, answeredMs };
    return { report, members, ...(clock && { clock }) };
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return { report: { address, reachable: false, reason: reasonOf(error, timeoutMs) }, members: [] };
  } finally {
    servers.close();
  }
}

/** Returns the report that only servers of Leasehold have. */
async function ownReport(servers: Servers, timeoutMs: number): Promise<ReportResponse | undefined> {
  try {
    return await servers.ask(Diagnosis.method.report, create(ReportRequestSchema), { timeoutMs });
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === "UNSUPPORTED") return undefined;
    throw error;
  }
}

function reportOf(own: ReportResponse): OwnReport {
  const { electionMs, heartbeatMs, leaseholdVersion, quotaBytes, stateBytes, syncs } = own;
  const { samples = 0, p50Ms = 0, p99Ms = 0, longestMs = 0 } = syncs ?? {};
  return {
    leaseholdVersion,
    uptimeMs: Number(own.uptimeMs),
    commitIndex: own.commitIndex,
    stateBytes,
    quotaBytes,
    heartbeatMs,
    electionMs,
    syncs: { samples, p50Ms, p99Ms, longestMs },
    followers: own.followers.map(({ getsSnapshot, heard, id, matchIndex, silentMs }) => ({
      id: hex(id),
      heard,
      ...(silentMs !== undefined && { silentMs: Number(silentMs) }),
      getsSnapshot,
      matchIndex,
    })),
    certificates: own.certificates.map(({ authority, expiresMs, file, towards }) => ({
      towards,
      file,
      expiresMs: Number(expiresMs),
      authority,
    })),
  };
}

/** Adds each server's lag. The leader knows the commit index; other servers may be behind. */
function withLag(servers: readonly ServerReport[]): ServerReport[] {
  const committed = (each: AnsweringServer) => each.own?.commitIndex ?? each.logIndex;
  const most = servers.reduce((found, each) => {
    const index = each.reachable ? committed(each) : 0n;
    return index > found ? index : found;
  }, 0n);
  return servers.map((each) =>
    each.reachable ? { ...each, lag: most > each.appliedIndex ? most - each.appliedIndex : 0n } : each,
  );
}

/** Adds the identity known to the other servers. */
function named(report: SilentServer, members: readonly Member[]): SilentServer {
  const member = members.find(({ clientURLs }) =>
    clientURLs.some((url) => addressOf(url) === report.address),
  );
  if (member === undefined) return report;
  return { ...report, id: hex(member.ID), name: member.name, isLearner: member.isLearner };
}

/** The reason without gRPC's framing. */
function reasonOf(error: LeaseholdError, timeoutMs: number): string {
  const why = /\((.*)\)$/s.exec(error.message)?.[1] ?? error.message;
  if (/ECONNREFUSED/.test(why)) return "connection refused";
  if (/EHOSTUNREACH|ENETUNREACH/.test(why)) return "no route to that host";
  if (/ENOTFOUND|EAI_AGAIN|Name resolution/.test(why)) return "its name cannot be resolved";
  if (/Deadline exceeded|no answer from the core within/.test(why))
    return `no answer within ${timeoutMs / 1_000} s`;
  return why;
}

/** Returns `host:port` of a URL named by a server. */
function addressOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

function hex(id: bigint): string {
  return id.toString(16);
}
