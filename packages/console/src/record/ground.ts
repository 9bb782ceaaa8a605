import type { MemberReport, MemberView } from "leasehold";
import type { CoreReport, GroundStatus, ServerReport } from "leasehold/cli";
import { majorityOf } from "leasehold/common";
import type { GroundView, PartView } from "./messages.js";

/** The state of a ground in words. */
export function groundView(status: GroundStatus): GroundView {
  switch (status.kind) {
    case "members":
      return membersView(status.reports);
    case "stores":
      return storesView(status.stores);
    case "servers":
      return serversView(status.report, status.isAble);
    case "memory":
      return { kind: "memory", isAble: true, summary: "leases in the memory of this process", parts: [] };
  }
}

const seconds = (ms: number): string => `${Math.ceil(ms / 1000)} s`;
const megabytes = (bytes: number): string => `${Math.round(bytes / 1_000_000)} MB`;

function membersView(reports: readonly MemberReport[]): GroundView {
  const parts = [...reports].sort((a, b) => (a.id < b.id ? -1 : 1)).map(memberPart);
  const ready = parts.filter(({ state }) => state === "ready").length;
  const [first] = reports.flatMap((report) => (report.reachable ? [report.status] : []));
  return {
    kind: "members",
    isAble: ready >= majorityOf(reports.length),
    summary: `${ready} of ${reports.length} members ready`,
    parts,
    ...(first !== undefined && { maxClockSkewMs: first.maxClockSkewMs }),
  };
}

function memberPart(report: MemberReport): PartView {
  const { id, address } = report;
  if (!report.reachable)
    return { id, address, state: "silent", text: `no answer: ${report.reason}`, facts: [] };
  const { status } = report;
  const words = {
    ready: "ready",
    recovering: `waits out leases that it may have forgotten, votes in ${seconds(status.readyInMs)}`,
    "clock-fault": "its clock contradicts the others'",
    twin: "another process runs as this member",
    learner: "learns and has no vote",
  } as const;
  const isBad = status.state === "clock-fault" || status.state === "twin";
  return {
    id,
    address,
    state: status.state === "ready" ? "ready" : isBad ? "bad" : "waiting",
    text: status.notice === undefined ? words[status.state] : `${words[status.state]}; ${status.notice}`,
    facts: [
      ["resources kept", String(status.resources)],
      ["waiters", String(status.waiters)],
      ["clients", String(status.clients)],
      ["view", String(status.view)],
      ["memory", megabytes(status.rssBytes)],
    ],
    peers: status.peers.map(({ id: peer, connected, roundTripMs, skewMs, skewErrorMs }) => ({
      id: peer,
      isConnected: connected,
      ...(roundTripMs !== undefined && { roundTripMs }),
      ...(skewMs !== undefined && { skewMs }),
      ...(skewErrorMs !== undefined && { skewErrorMs }),
    })),
  };
}

function storesView(stores: readonly MemberView[]): GroundView {
  const parts = stores.map(({ address, state, reason, readyInMs = 0 }): PartView => {
    if (state === "ready") return { id: address, address, state: "ready", text: "ready", facts: [] };
    if (state === "recovering")
      return { id: address, address, state: "waiting", text: `counts in ${seconds(readyInMs)}`, facts: [] };
    const text = reason === undefined ? "no answer" : `no answer: ${reason}`;
    return { id: address, address, state: "silent", text, facts: [] };
  });
  const ready = parts.filter(({ state }) => state === "ready").length;
  return {
    kind: "stores",
    isAble: ready >= majorityOf(parts.length),
    summary: `${ready} of ${parts.length} stores ready`,
    parts,
  };
}

function serversView({ servers }: CoreReport, isAble: boolean): GroundView {
  const parts = servers.map(serverPart);
  const answering = servers.filter(({ reachable }) => reachable).length;
  const leader = servers.find((server) => server.reachable && server.isLeader);
  const led = leader === undefined || !isAble ? "no leader" : `${leader.name ?? leader.id} leads`;
  return {
    kind: "servers",
    isAble,
    summary: `${answering} of ${servers.length} servers answer, ${led}`,
    parts,
  };
}

function serverPart(server: ServerReport): PartView {
  const { address } = server;
  const id = [server.name, server.id, address].find((each) => each !== undefined && each !== "")!;
  if (!server.reachable)
    return { id, address, state: "silent", text: `no answer: ${server.reason}`, facts: [] };
  const role = server.isLeader ? "leads" : server.isLearner ? "learns and has no vote" : "follows";
  const alarms = server.alarms.length === 0 ? "" : `; ${server.alarms.join(", ")}`;
  return {
    id,
    address,
    state: server.alarms.length > 0 ? "bad" : server.isLearner ? "waiting" : "ready",
    text: `${role}${alarms}`,
    facts: [
      ["term", String(server.term)],
      ["applied", String(server.appliedIndex)],
      ["lag", String(server.lag)],
      ["data", megabytes(Number(server.dataBytes))],
      ["version", server.version],
      ["round trip", `${server.roundTripMs.toFixed(1)} ms`],
    ],
  };
}
