// Builds both kinds of bundle. `target` excludes Node's own modules from the bundle.
import webpack from "webpack";

const optimization = { minimize: false };
const common = { mode: "production", target: "node20", entry: "./app.mjs", optimization };
const configurations = [
  {
    ...common,
    experiments: { outputModule: true },
    output: { path: `${process.cwd()}/out/webpack-esm`, filename: "app.mjs", module: true },
  },
  { ...common, output: { path: `${process.cwd()}/out/webpack-cjs`, filename: "app.cjs" } },
];
for (const configuration of configurations) {
  const stats = await new Promise((resolve, reject) =>
    webpack(configuration, (error, built) => (error === null ? resolve(built) : reject(error))),
  );
  if (stats.hasErrors() || stats.hasWarnings())
    throw new Error(stats.toString({ preset: "errors-warnings" }));
}
