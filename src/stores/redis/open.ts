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
import { untilAborted } from "../common/until-aborted.js";
import { parseRedisUrl, type RedisAddress } from "./address.js";
import { redisFailure } from "./failure.js";
import { RedisLink } from "./link.js";
import { drawMarker, RedisMedium } from "./medium.js";
import { readScript, replaceMarkerScript } from "./scripts.js";
import type { RedisFacts } from "./server-facts.js";

/** Opens one Redis as a store: `redis://host:port/database?key=leasehold`. */
export const openRedisStore: OpenStore = async (url, options) => {
  const address = parseRedisUrl(url, options.environment ?? process.env);
  const link = await RedisLink.open(address);
  try {
    return await untilAborted(openOn(link, address, options), options.signal);
  } catch (error) {
    link.close();
    options.signal?.throwIfAborted();
    throw redisFailure(address.name, error);
  }
};

async function openOn(
  link: RedisLink,
  address: RedisAddress,
  { signal }: OpenStoreOptions,
): Promise<OpenedStore> {
  signal?.throwIfAborted();
  const facts = await link.facts();
  if (facts.role !== "master") {
    throw new LeaseholdError(
      "STORE_READ_ONLY",
      `${address.name} is a replica; give the address of its primary`,
    );
  }
  const durable = await agreeOnMarker(link, facts.durable);
  const store = new AtomicStore(new RedisMedium(address, link, durable));
  store.findings = assertFit(address.name, [
    ...describe(facts, durable),
    ...(await probeAtomic(store, signal)),
  ]);
  return store;
}

/**
 * Whether the store counts as durable: its marker says so, for everybody, and the settings still do. Where
 * they no longer do, it may have forgotten already: it gets another marker.
 */
async function agreeOnMarker(link: RedisLink, isDurable: boolean): Promise<boolean> {
  const [id] = await link.run(readScript, [drawMarker(isDurable), ""]);
  const marker = String(id);
  if (!marker.startsWith("d")) return false;
  if (!isDurable) await link.run(replaceMarkerScript, [marker, drawMarker(false)]);
  return isDurable;
}

function describe(facts: RedisFacts, durable: boolean): ProbeFinding[] {
  const consequence = durable ? "it keeps what it has acknowledged" : "a restart counts as forgetting";
  return [
    { tried: "asked which Redis it is", seen: facts.version, ok: true },
    { tried: "asked how it persists", seen: `${facts.persistence}: ${consequence}`, ok: true },
  ];
}
