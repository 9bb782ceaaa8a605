import { LeaseholdError } from "../../lease/errors.js";
import {
  assertFit,
  type OpenedStore,
  type OpenStore,
  type OpenStoreOptions,
  type ProbeFinding,
} from "../common/contract.js";
import { probeAtomic } from "../common/probe.js";
import { AtomicStore } from "../common/atomic-store.js";
import { agreeOnDurability, drawMarker } from "../common/marker.js";
import { openOverLink } from "../common/open-server.js";
import { parseRedisUrl, type RedisAddress } from "./address.js";
import { redisFailure } from "./failure.js";
import { RedisLink } from "./link.js";
import { RedisMedium } from "./medium.js";
import { readScript, replaceMarkerScript } from "./scripts.js";
import type { RedisFacts } from "./server-facts.js";

/** Opens a Redis server as a store: `redis://host:port/database?key=leasehold`. */
export const openRedisStore: OpenStore = async (url, options) => {
  const address = parseRedisUrl(url, options.environment ?? process.env);
  const link = await RedisLink.open(address);
  return openOverLink(
    link,
    options.signal,
    () => openOn(link, address, options),
    (error) => redisFailure(address.name, error),
  );
};

async function openOn(
  link: RedisLink,
  address: RedisAddress,
  { signal }: OpenStoreOptions,
): Promise<OpenedStore> {
  const facts = await link.facts();
  if (facts.role !== "master") {
    throw new LeaseholdError(
      "STORE_READ_ONLY",
      `${address.name} is a replica; give the address of its primary`,
    );
  }
  const [marker] = await link.run(readScript, [drawMarker(facts.durable), ""]);
  const durable = await agreeOnDurability(String(marker), facts.durable, (next) =>
    link.run(replaceMarkerScript, [String(marker), next]),
  );
  const store = new AtomicStore(new RedisMedium(address, link, durable));
  store.findings = assertFit(address.name, [
    ...describe(facts, durable),
    ...(await probeAtomic(store, signal)),
  ]);
  return store;
}

function describe(facts: RedisFacts, durable: boolean): ProbeFinding[] {
  const consequence = durable ? "acknowledged writes are durable" : "a restart counts as forgetting";
  return [
    { tried: "asked which Redis it is", seen: facts.version, ok: true },
    { tried: "asked how it persists", seen: `${facts.persistence}: ${consequence}`, ok: true },
  ];
}
