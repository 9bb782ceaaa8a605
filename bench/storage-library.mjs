/** The built package, or the one that `LEASEHOLD_DIST` names. */
export function library() {
  const built = process.env["LEASEHOLD_DIST"];
  return import(built === undefined ? "leasehold" : `${built}/index.js`);
}
