import { closeSync, openSync } from "node:fs";
import { LeaseholdError } from "../lease/errors.js";

/** The packages that clients of etcd's API need. */
export const grpcPackages = "@grpc/grpc-js @bufbuild/protobuf";

/**
 * Loads an optional package, which only users of one feature install. `import` gets its name as a value that
 * bundlers cannot resolve, so a missing package doesn't break a build. The package is therefore never part of
 * a bundle, and is resolved from the bundle's location (`docs/bundlers.md`).
 *
 * @param names one package, or several with spaces between them
 * @param load imports code of Leasehold that imports them by name, where a bundle may have both
 *
 * Rejects with a `LeaseholdError` `UNSUPPORTED` that says what to install; with the error of the system when
 * this process has no descriptor left to load it with.
 */
export async function loadPackage<Module>(
  names: string,
  forWhat: string,
  load = () => import(/* webpackIgnore: true */ /* @vite-ignore */ names) as Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (isShortage(error)) throw error;
    assertDescriptors();
    const why = error instanceof Error ? error.message : String(error);
    throw new LeaseholdError(
      "UNSUPPORTED",
      `${forWhat} needs a package that cannot be loaded: npm install ${names} (${why})`,
    );
  }
}

/**
 * Throws the system's error if this process can open no more files: Node would then report the package as
 * missing.
 */
function assertDescriptors(): void {
  try {
    closeSync(openSync(process.execPath, "r"));
  } catch (error) {
    if (isShortage(error)) throw error;
  }
}

function isShortage(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EMFILE" || code === "ENFILE";
}
