// The list of charts: the question of each, and its rows. Nothing is drawn here.
import { dotChart, dotPanels, lineChart, linePanels } from "./forms.mjs";
import { said, systems } from "./style.mjs";

const known = (rows) => rows.filter(({ system }) => system in systems);
const valueOf = (rows, system) => rows.find((row) => row.system === system)?.median;

/** The conclusion to draw from these rows: "Leasehold: 60,000 a second; 3.8 × Redlock, …". */
function beside(rows, unit) {
  const own = valueOf(rows, "leasehold");
  if (own === undefined) return "";
  const parts = Object.entries(others)
    .filter(([system]) => valueOf(rows, system) > 0)
    .map(([system, name]) => `${said(own / valueOf(rows, system))} × ${name}`);
  return `Leasehold: ${said(own)} ${unit}; ${parts.join(", ")}.`;
}
const others = {
  redlock: "Redlock",
  etcd: "etcd",
  zookeeper: "ZooKeeper",
  "bare exchange": "the bare exchange of the same frames",
};
const whiskers = "Points are medians; whiskers reach from the least to the greatest round.";

function acquisitions(measured) {
  const rows = known(measured.pick({ figure: "acquire rate", inFlight: 512 }));
  return {
    rows,
    spec: () =>
      dotChart({
        title: "How many leases can one client take in a second?",
        subtitle: [beside(rows, "a second"), whiskers],
        unit: "acquisitions per second, 512 in flight (log scale)",
        series: [{ rows }],
      }),
  };
}

function latency(measured) {
  const median = known(measured.pick({ figure: "acquire time, median", inFlight: 1 }));
  const late = known(measured.pick({ figure: "acquire time, 99th percentile", inFlight: 1 }));
  return {
    rows: [...median, ...late],
    spec: () =>
      dotChart({
        title: "How long does one acquisition take when nothing else happens?",
        subtitle: [beside(median, "µs at the median"), whiskers],
        unit: "time of one acquisition in µs, one at a time (log scale)",
        series: [
          { label: "median", rows: median },
          { label: "99 % are within", rows: late, filled: false },
        ],
      }),
  };
}

function cpu(measured) {
  const of = (who) => known(measured.pick({ figure: `acquire CPU, ${who}`, inFlight: 512 }));
  const [client, servers, all] = [of("client"), of("servers"), of("all processes")];
  const unit = "µs of CPU (log scale)";
  return {
    rows: [...client, ...servers, ...all],
    spec: () =>
      dotPanels({
        title: "How much processor time does one acquisition cost?",
        subtitle: [beside(all, "µs in all processes together"), `512 in flight. ${whiskers}`],
        sameScale: true,
        panels: [
          { question: "The client", unit, series: [{ rows: client }] },
          { question: "All servers or members", unit, series: [{ rows: servers }] },
          { question: "All processes together", unit, series: [{ rows: all }] },
        ],
      }),
  };
}

function memory(measured) {
  const client = known(measured.pick({ figure: "held lease, client" }));
  const member = known(measured.pick({ figure: "held lease, member" }));
  const unit = "bytes for each lease held (log scale)";
  return {
    rows: [...client, ...member],
    spec: () =>
      dotPanels({
        title: "How much memory does a held lease take?",
        subtitle: [beside(client, "bytes at the client"), whiskers],
        sameScale: true,
        panels: [
          { question: "At the client", unit, series: [{ rows: client }] },
          { question: "At each server or member", unit, series: [{ rows: member }] },
        ],
      }),
  };
}

function failover(measured) {
  const gap = known(measured.pick({ figure: "failover gap" }));
  const handOver = known(measured.pick({ figure: "hand-over" }));
  return {
    rows: [...gap, ...handOver],
    spec: () =>
      dotPanels({
        title: "How long does nobody get a lease?",
        subtitle: [whiskers],
        panels: [
          {
            question: "One of three servers is killed",
            unit: "longest gap, ms (log scale)",
            series: [{ rows: gap }],
          },
          {
            question: "Release to the next who waits",
            unit: "ms (log scale)",
            series: [{ rows: handOver }],
          },
        ],
      }),
  };
}

/** A series for each system of the rows, over one of their parameters. */
const seriesOver = (rows, parameter, more = () => ({})) =>
  [...new Set(rows.map(({ system }) => system))].map((system) => ({
    system,
    points: rows.filter((row) => row.system === system).map((row) => ({ x: row[parameter], row })),
    ...more(system),
  }));

function nodes(measured) {
  const panel = (figure) => known(measured.pick({ figure }));
  const [rate, cpuRows, messages] = [
    panel("pairs rate over nodes"),
    panel("pair CPU over nodes"),
    panel("pair messages over nodes"),
  ];
  const x = { title: "nodes", values: [3, 10, 20, 30] };
  return {
    rows: [...rate, ...cpuRows, ...messages],
    spec: () =>
      linePanels({
        title: "What does an acquisition cost when there are more nodes?",
        subtitle: [
          "Each node takes leases of its own and gives them back; each lease lies on three of the nodes. ZooKeeper has three " +
            "servers, and the nodes are its clients. All processes share two cores: what a lease costs says more than how many.",
        ],
        panels: [
          {
            question: "Throughput",
            series: seriesOver(rate, "nodes"),
            x,
            y: { title: "leases per second (log scale)", log: true },
          },
          {
            question: "Processor time",
            series: seriesOver(cpuRows, "nodes"),
            x,
            y: { title: "µs of CPU per lease (log scale)", log: true },
          },
          {
            question: "Messages",
            series: seriesOver(messages, "nodes"),
            x,
            y: { title: "messages per lease", log: false },
          },
        ],
      }),
  };
}

function openFiles(measured) {
  const kept = known(measured.pick({ figure: "leases kept alive" }));
  const derived = known(measured.pick({ figure: "leases kept alive, derived" }));
  return {
    rows: [...kept, ...derived],
    spec: () =>
      lineChart({
        title: "How many files can be open at once, each under a lease?",
        subtitle: [
          "A lease must be renewed before its timeout, so twice the timeout keeps twice as many alive.",
          "ZooKeeper renews sessions, not nodes: how many one session holds does not depend on the timeout.",
        ],
        x: {
          title: "timeout of the lease or session in seconds (log scale)",
          log: true,
          values: [1, 2, 5, 10, 20, 30],
        },
        y: { title: "leases kept alive, none lost (log scale)", log: true },
        series: [
          ...seriesOver(kept, "ttlSeconds"),
          ...seriesOver(derived, "ttlSeconds", () => ({ label: "by the rate of renewals", dashed: true })),
        ],
        labelPx: 150,
      }),
  };
}

function messages(measured) {
  const rows = known(measured.pick({ figure: "messages a node" }));
  const series = [
    { system: "leasehold", role: "each node", label: "a node of Leasehold" },
    { system: "zookeeper", role: "leader", label: "ZooKeeper's leader" },
    { system: "zookeeper", role: "follower", label: "a follower" },
  ];
  return {
    rows,
    spec: () =>
      lineChart({
        title: "How many messages does the busiest node handle?",
        subtitle: [
          "Thirty nodes take leases and give them back, so many a second. In Leasehold the messages spread over all nodes; in " +
            "ZooKeeper they meet at three servers. Sent and received together, by the programs' own counters.",
        ],
        x: {
          title: "leases taken and given back per second, all nodes together (log scale)",
          log: true,
          values: offered,
        },
        y: { title: "messages per second at one node (log scale)", log: true },
        series: series.map(({ role, ...one }) => ({
          ...one,
          points: rows
            .filter((row) => row.system === one.system && row.role === role)
            .map((row) => ({ x: row.pairsPerSecond, row })),
        })),
        labelPx: 165,
      }),
  };
}
const offered = [250, 500, 1_000, 2_000, 4_000, 8_000];

function busyDisks(measured) {
  const of = (diskBusy) => known(measured.pick({ figure: "pairs rate, disks", diskBusy }));
  const [quiet, busy] = [of(false), of(true)];
  const kept = (system) => said((100 * valueOf(busy, system)) / valueOf(quiet, system));
  const unit = "leases per second (log scale)";
  const inFlight = quiet[0]?.inFlight;
  const shares = quiet.map(({ system }) => `${systems[system].name} ${kept(system)} %`);
  return {
    rows: [...quiet, ...busy],
    spec: () =>
      dotPanels({
        title: "What is left of the throughput while the disks are busy?",
        subtitle: [
          `${shares.join(", ")}. Leases taken and given back, ${inFlight} in flight; four processes write to the same disk and sync ` +
            `it. ${whiskers}`,
        ],
        sameScale: true,
        panels: [
          { question: "The disk is idle", unit, series: [{ rows: quiet }] },
          { question: "The disk is busy", unit, series: [{ rows: busy }] },
        ],
      }),
  };
}

function core(measured) {
  const of = (figure) =>
    [
      { inFlight: 1, asked: "leader" },
      { inFlight: 512, asked: "all" },
    ].flatMap((which) => known(measured.pick({ figure: `core ${figure} rate`, ...which })));
  const [put, read, create] = [of("put"), of("read"), of("create")];
  const unit = "requests per second (log scale)";
  const series = (rows) =>
    [1, 512].map((inFlight) => ({
      label: inFlight === 1 ? "one at a time" : "512",
      rows: rows.filter((row) => row.inFlight === inFlight),
      filled: inFlight !== 1,
    }));
  return {
    rows: [...put, ...read, ...create],
    spec: () =>
      dotPanels({
        title: "How many requests does a consistent core answer?",
        subtitle: [
          "Three servers each on one disk, one request at a time (of the leader) and 512 in flight (of all three), from one " +
            "program on etcd's Go client. " +
            `Servers and load share two cores. ${whiskers}`,
        ],
        sameScale: true,
        panels: [
          { question: "Put a key", unit, series: series(put) },
          { question: "Get one, linearizable", unit, series: series(read) },
          { question: "Create one with a lease", unit, series: series(create) },
        ],
      }),
  };
}

/** A chart's name is also the name of its file; `of` selects its rows and how to show them. */
export const charts = [
  { name: "acquisitions", of: acquisitions },
  { name: "latency", of: latency },
  { name: "cpu", of: cpu },
  { name: "memory", of: memory },
  { name: "failover", of: failover },
  { name: "nodes", of: nodes },
  { name: "open-files", of: openFiles },
  { name: "messages", of: messages },
  { name: "busy-disks", of: busyDisks },
  { name: "core", of: core },
];
