import { LeaseholdError } from "../lease/errors.js";

/**
 * Loads a package that only those have to install who use the kind of store.
 *
 * Rejects with a `LeaseholdError` `UNSUPPORTED` that says what to install.
 */
export async function loadPackage<Module>(
  name: string,
  forWhat: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new LeaseholdError(
      "UNSUPPORTED",
      `${forWhat} needs the package ${name}, which cannot be loaded: npm install ${name} (${why})`,
    );
  }
}
