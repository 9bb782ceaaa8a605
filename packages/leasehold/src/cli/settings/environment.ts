import { configVariable } from "./apply.js";
import { settingKeys, variableOf } from "./table.js";

/** A local cluster is a demonstration on loopback without credentials, whatever the environment contains. */
export function environmentWithoutSettings(): NodeJS.ProcessEnv {
  const ours = new Set([configVariable, ...settingKeys.map(variableOf)]);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.has(name)));
}
