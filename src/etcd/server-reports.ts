import { create } from "@bufbuild/protobuf";
import type { World } from "../common/ports.js";
import {
  Cluster,
  Maintenance,
  type Member,
  MemberListRequestSchema,
  StatusRequestSchema,
} from "../core/gen/etcd/cluster_pb.js";
import { LeaseholdError } from "../lease/errors.js";
import type { CoreReport, ServerReport } from "./core-report.js";
import { Servers, type TlsTexts } from "./servers.js";

/** Asks every server at these addresses how it is, and those that they name. */
export async function serverReports(
  endpoints: readonly string[],
  tls: TlsTexts | undefined,
  timeoutMs: number,
  world: World,
): Promise<CoreReport> {
  const asked = await Promise.all(endpoints.map((endpoint) => ask(endpoint, tls, timeoutMs, world)));
  const known = new Set(asked.flatMap(({ report }) => (report.reachable ? [report.id] : [])));
  const others = new Map<string, string>();
  const members = asked.map((each) => each.members).find((each) => each.length > 0);
  for (const { ID, clientURLs } of members ?? []) {
    const address = clientURLs.map(addressOf).find((each) => each !== undefined);
    const isAsked = known.has(hex(ID)) || address === undefined || endpoints.includes(address);
    if (!isAsked) others.set(hex(ID), address);
  }
  const more = await Promise.all([...others.values()].map((each) => ask(each, tls, timeoutMs, world)));
  const servers = [...asked, ...more].map(({ report }) => report);
  return { servers, size: members?.filter(({ isLearner }) => !isLearner).length ?? endpoints.length };
}

async function ask(
  address: string,
  tls: TlsTexts | undefined,
  timeoutMs: number,
  world: World,
): Promise<{ readonly report: ServerReport; readonly members: readonly Member[] }> {
  const servers = new Servers([address], { tls }, world);
  try {
    const { members } = await servers.ask(Cluster.method.memberList, create(MemberListRequestSchema), {
      timeoutMs,
    });
    const begun = world.clock.monotonicMs();
    const status = await servers.ask(Maintenance.method.status, create(StatusRequestSchema), { timeoutMs });
    const roundTripMs = world.clock.monotonicMs() - begun;
    const id = status.header?.memberId ?? 0n;
    const report = {
      address,
      reachable: true,
      id: hex(id),
      name: members.find(({ ID }) => ID === id)?.name ?? "",
      version: status.version,
      isLeader: status.leader === id,
      leader: status.leader === 0n ? "" : hex(status.leader),
      term: status.raftTerm,
      logIndex: status.raftIndex,
      appliedIndex: status.raftAppliedIndex,
      dataBytes: status.dbSize,
      roundTripMs,
    } as const;
    return { report, members };
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const reason = /\((.*)\)$/.exec(error.message)?.[1] ?? error.message;
    return { report: { address, reachable: false, reason }, members: [] };
  } finally {
    servers.close();
  }
}

/** `host:port` of a URL that a server names. */
function addressOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

function hex(id: bigint): string {
  return id.toString(16);
}
