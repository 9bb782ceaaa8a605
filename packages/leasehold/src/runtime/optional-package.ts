import { LeaseholdError } from "../lease/errors.js";

/** What a client of etcd's API needs. */
export const grpcPackages = "@grpc/grpc-js @bufbuild/protobuf";

/**
 * Loads a package that only those have to install who use what needs it. Its name reaches `import` as a value
 * that no bundler can look up: one that is not installed must not break a build. So it is never part of a
 * bundle, and is looked up from where the bundle lies (`docs/bundlers.md`).
 *
 * @param names one package, or several with spaces between them
 * @param load imports code of ours that imports them by name, where a bundle may have both
 *
 * Rejects with a `LeaseholdError` `UNSUPPORTED` that says what to install.
 */
export async function loadPackage<Module>(
  names: string,
  forWhat: string,
  load = () => import(/* webpackIgnore: true */ /* @vite-ignore */ names) as Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new LeaseholdError(
      "UNSUPPORTED",
      `${forWhat} needs what cannot be loaded: npm install ${names} (${why})`,
    );
  }
}
