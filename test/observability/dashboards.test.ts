import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { filesCatalogue } from "@leasehold/files/inner/metrics/catalogue.js";
import { catalogue } from "leasehold/inner/metrics/catalogue.js";
import { freePorts } from "../free-ports.js";
import { dist } from "../support/built.js";
import { isPrometheusMissing, Scraped } from "./support.js";

/** Each query of each dashboard is sent to a real Prometheus that scrapes a cluster under faults. */

const folder = fileURLToPath(new URL("../../deploy/grafana", import.meta.url));

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const boardOf = (name: string): Dashboard =>
  JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")) as Dashboard;

/** Fills in the variables, as Grafana does. */
const filledIn = (expr: string) => expr.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "20s");

/** The queries of a dashboard that return no number. */
async function withoutNumbers(scraped: Scraped, name: string): Promise<string[]> {
  const asked = boardOf(name).panels.flatMap(({ title, targets }) =>
    targets.map(async ({ expr }) =>
      (await scraped.hasNumbers(filledIn(expr))) ? [] : [`${title}: ${expr}`],
    ),
  );
  return (await Promise.all(asked)).flat();
}

/** Repeats the work, ignoring failures. */
function again(work: () => Promise<unknown>): { end(): Promise<void> } {
  const over = new AbortController();
  const loop = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await work().catch(() => undefined);
      await sleep(200);
    }
  };
  const ended = loop();
  return {
    end: () => {
      over.abort();
      return ended;
    },
  };
}

const local = (port: number | undefined): string => `127.0.0.1:${port}`;

/** A program that acquires and releases leases in a loop, and serves its metrics. */
const contender = (farm: readonly string[], port: number) => `
  import { open } from ${JSON.stringify(join(dist, "index.js"))};
  import { createMetrics } from ${JSON.stringify(join(dist, "entry/metrics.js"))};
  const metrics = createMetrics();
  metrics.observeProcess();
  await metrics.serve("${local(port)}");
  const leases = await open(...${JSON.stringify(farm)}, { timeout: "60s" });
  metrics.observe(leases);
  for (;;) await leases.using("jobs/a", () => new Promise((resolve) => setTimeout(resolve, 4_000)));
`;

const ids = ["a", "b", "c"] as const;

test("the dashboards query only existing metrics", () => {
  const known = new Set(
    [...Object.entries(catalogue), ...Object.entries(filesCatalogue)].flatMap(([name, { kind, unit }]) => {
      const full = unit === "" ? name : `${name}_${unit}`;
      if (kind === "histogram") return [`${full}_bucket`, `${full}_sum`, `${full}_count`];
      return [kind === "counter" ? `${full}_total` : full];
    }),
  );
  const unknown = readdirSync(folder).flatMap((file) => {
    const asked = readFileSync(join(folder, file), "utf8").match(/\bleasehold_(?!core_)[a-z_]+/g) ?? [];
    return asked.filter((name) => !known.has(name));
  });
  expect(unknown).toEqual([]);
});

test.skipIf(isPrometheusMissing)(
  "peers: every panel has numbers while holders are killed",
  async () => {
    await using scraped = new Scraped();
    const [prometheus = 0, port, , , first = 0] = await freePorts(9);
    // Three members and two workers. A worker that holds a lease is killed from time to time.
    scraped.leasehold(
      ["up", "--port", String(port), "--metrics-port", String(first)],
      ["--members", "3", "--workers", "2", "--resources", "1"],
    );
    scraped.scrape(
      local(prometheus),
      Array.from({ length: 5 }, (_, at) => local(first + at)),
    );
    expect(await withoutNumbers(scraped, "peers")).toEqual([]);
    expect(await scraped.settled('sum(leasehold_member_ready{state="ready"})', 3)).toBe(3);
  },
  600_000,
);

test.skipIf(isPrometheusMissing)(
  "core: every panel has numbers after the leader was killed",
  async () => {
    await using scraped = new Scraped();
    const ports = await freePorts(7);
    const cluster = ids.map((id, at) => `${id}=http://${local(ports[3 + at])}`).join(",");
    const servers = ids.map((id, at) => {
      const [client, peer] = [`http://${local(ports[at])}`, `http://${local(ports[3 + at])}`];
      return scraped.leasehold(
        ["core", "--name", id, "--data-dir", join(scraped.folder, id), "--initial-cluster", cluster],
        ["--listen-client-urls", client, "--advertise-client-urls", client],
        ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      );
    });
    scraped.scrape(local(ports[6]), ports.slice(0, 3).map(local));
    expect(await scraped.settled("sum(etcd_server_is_leader)", 1)).toBe(1);
    const leader = await scraped.values("etcd_server_is_leader");
    servers[leader.indexOf(1)]!.kill("SIGKILL");
    const put = () =>
      Promise.allSettled(
        ports.slice(0, 3).map((port) =>
          fetch(`http://${local(port)}/v3/kv/put`, {
            method: "POST",
            body: '{"key":"YQ==","value":"YQ=="}',
          }),
        ),
      );
    const worker = again(put);
    try {
      expect(await scraped.settled("sum(etcd_server_has_leader)", 2)).toBe(2);
      expect(await withoutNumbers(scraped, "core")).toEqual([]);
    } finally {
      await worker.end();
    }
  },
  600_000,
);

test.skipIf(isPrometheusMissing)(
  "stores: every panel has numbers when one of three is gone",
  async () => {
    await using scraped = new Scraped();
    const [prometheus = 0, ...ports] = await freePorts(3);
    const stores = ids.map((id) => join(scraped.folder, id));
    for (const store of stores) mkdirSync(store);
    const farm = stores.map((path) => `delta+file://${path}?ttlMax=3s&maxStoreLatency=200ms`);
    for (const port of ports)
      scraped.start(process.execPath, "--input-type=module", "-e", contender(farm, port));
    scraped.scrape(local(prometheus), ports.map(local));
    expect(await scraped.settled('sum(leasehold_acquisitions_total{outcome="acquired"}) > bool 1', 1)).toBe(
      1,
    );
    rmSync(stores[2]!, { recursive: true });
    const failed = 'leasehold_store_operation_duration_seconds_count{store=~".*/c",outcome!~"ok|conflict"}';
    expect(await scraped.settled(`sum(${failed}) > bool 0`, 1)).toBe(1);
    expect(await withoutNumbers(scraped, "stores")).toEqual([]);
  },
  600_000,
);

test.skipIf(isPrometheusMissing)(
  "files: every panel has numbers while a node is gone, and the loss of the majority is shown",
  async () => {
    await using scraped = new Scraped();
    const ports = await freePorts(13);
    const lists = ids.flatMap((id, at) => {
      const [node, member] = [local(ports[at]), local(ports[3 + at])];
      return ["--node", `${id}=${node}`, "--member", `${id}=${member}`];
    });
    const nodes = ids.map((id, at) =>
      scraped.leasehold(
        ["files", "serve", "--id", id, "--dir", join(scraped.folder, id), ...lists],
        ["--http", local(ports[6 + at]), "--metrics-address", local(ports[9 + at])],
        ["--ttl-max", "3s", "--max-clock-skew", "100ms"],
      ),
    );
    scraped.scrape(local(ports[12]), ports.slice(9, 12).map(local));
    expect(await scraped.settled('sum(leasehold_files_state{state="serving"})', 3)).toBe(3);
    const url = (path: string) => `http://${local(ports[6])}/${path}`;
    const work = async (): Promise<void> => {
      await fetch(url("a"), { method: "PUT", body: "x".repeat(50_000) });
      for (const path of ["a", "missing"]) await (await fetch(url(path))).arrayBuffer();
    };
    const worker = again(work);
    try {
      expect(
        await scraped.settled(
          'sum(rate(leasehold_files_request_duration_seconds_count{outcome="ok"}[20s])) > bool 0',
          1,
        ),
      ).toBe(1);
      nodes[2]!.kill("SIGKILL");
      expect(await scraped.settled('min(leasehold_files_peer_reachable{peer="c"})', 0)).toBe(0);
      expect(await withoutNumbers(scraped, "files")).toEqual([]);
      expect(await scraped.settled("sum(leasehold_files_majority)", 2)).toBe(2);
      nodes[1]!.kill("SIGKILL");
      expect(await scraped.settled("sum(leasehold_files_majority)", 0)).toBe(0);
    } finally {
      await worker.end();
    }
  },
  600_000,
);
