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
import { parsePostgresUrl, type PostgresAddress } from "./address.js";
import { postgresFailure, sqlStateOf } from "./failure.js";
import { PostgresLink } from "./link.js";
import { PostgresMedium } from "./medium.js";
import { askServer, registersColumns, statementsIn } from "./statements.js";

/**
 * The maximum number of retries of creating the table: a concurrent creation makes the statement fail once or
 * twice.
 */
const makeTableTriesMax = 5;

/** The errors for an existing schema, table or type, or their rows in the catalogue. */
const madeByAnother = new Set(["23505", "42710", "42P06", "42P07"]);

/** Opens one PostgreSQL server as a store: `postgres://user@host:port/database?schema=leasehold`. */
export const openPostgresStore: OpenStore = async (url, options) => {
  const address = parsePostgresUrl(url, options.environment ?? process.env);
  const link = await PostgresLink.open(address);
  return openOverLink(
    link,
    options.signal,
    () => openOn(link, address, options),
    (error) => postgresFailure(address.name, error),
  );
};

interface ServerRow {
  readonly version: string;
  readonly encoding: string;
  readonly standby: boolean;
  readonly readonly: string;
  readonly fsync: string;
  readonly pages: string;
  readonly schema: boolean;
  /** `null` if there is no table. */
  readonly persistence: string | null;
  readonly columns: string | null;
}

async function openOn(
  link: PostgresLink,
  address: PostgresAddress,
  { signal }: OpenStoreOptions,
): Promise<OpenedStore> {
  const { columns, persistence, ...server } = await ask(link, address);
  if (server.standby || server.readonly === "on") {
    const why = server.standby
      ? "is a standby; give the address of its primary"
      : "allows this user only to read";
    throw new LeaseholdError("STORE_READ_ONLY", `${address.name} ${why}`);
  }
  if (persistence === null) await makeTable(link, address, server.schema);
  else if (columns !== registersColumns) {
    const what = `${address.schema}.registers has the columns ${columns}`;
    throw new LeaseholdError("STORE_FOREIGN", `${address.name}: ${what}, and is not Leasehold's`);
  }
  const isDurable = server.fsync === "on" && server.pages === "on";
  const durable = await agreeOnMarker(link, address, isDurable);
  const settings = describe(address, await ask(link, address), durable);
  assertFit(address.name, settings);
  const store = new AtomicStore(new PostgresMedium(address, link, durable));
  store.findings = assertFit(address.name, [...settings, ...(await probeAtomic(store, signal))]);
  return store;
}

async function ask(link: PostgresLink, address: PostgresAddress): Promise<ServerRow> {
  const { rows } = await link.query(askServer, [address.schema]);
  return rows[0] as unknown as ServerRow;
}

/** Creates only what is missing: users often lack the permission to create schemas. */
async function makeTable(link: PostgresLink, address: PostgresAddress, hasSchema: boolean): Promise<void> {
  const { makeSchema, makeTable } = statementsIn(address.schema);
  for (const statement of hasSchema ? [makeTable] : [makeSchema, makeTable]) {
    for (let tries = 1; ; tries += 1) {
      try {
        await link.query(statement);
        break;
      } catch (error) {
        if (tries === makeTableTriesMax || !madeByAnother.has(sqlStateOf(error))) throw error;
      }
    }
  }
}

async function agreeOnMarker(
  link: PostgresLink,
  address: PostgresAddress,
  isDurable: boolean,
): Promise<boolean> {
  const { makeMarker, replaceMarker, read } = statementsIn(address.schema);
  await link.query(makeMarker, [drawMarker(isDurable)]);
  const { rows } = await link.query(read, [""]);
  const marker = String(rows[0]!["content"]);
  return agreeOnDurability(marker, isDurable, (next) => link.query(replaceMarker, [marker, next]));
}

function describe(address: PostgresAddress, server: ServerRow, durable: boolean): ProbeFinding[] {
  const consequence = durable ? "acknowledged writes are durable" : "a restart counts as forgetting";
  return [
    { tried: "asked which PostgreSQL it is", seen: server.version, ok: true },
    {
      tried: "asked how it writes",
      seen: `fsync ${server.fsync}, full_page_writes ${server.pages}: ${consequence}`,
      ok: true,
    },
    {
      tried: "asked for the encoding of names",
      seen: server.encoding,
      ok: server.encoding === "UTF8",
    },
    {
      tried: `asked whether ${address.schema}.registers survives a crash`,
      seen:
        server.persistence === "p"
          ? "it is an ordinary table"
          : "it is unlogged or temporary: a crash empties it",
      ok: server.persistence === "p",
    },
  ];
}
