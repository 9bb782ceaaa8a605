import type { Leases } from "../lease/types.js";
import { open } from "../index.js";
import { type Settings, openOptions } from "./settings.js";
import { few } from "../lease/lists.js";

/** Opens the leases, uses them, and closes them whatever happened. */
export async function withLeases<T>(settings: Settings, use: (leases: Leases) => Promise<T>): Promise<T> {
  const leases = await open(...few(settings.endpoints), openOptions(settings));
  try {
    return await use(leases);
  } finally {
    await leases.close();
  }
}
