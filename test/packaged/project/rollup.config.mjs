import { nodeResolve } from "@rollup/plugin-node-resolve";

const plugins = [nodeResolve({ preferBuiltins: true })];
const onLog = (level, log) => {
  if (level === "warn") throw new Error(log.message);
};
const single = (format, file) => ({
  input: "app.mjs",
  external: /^node:/,
  plugins,
  onLog,
  output: { format, file, inlineDynamicImports: true },
});

export default [
  {
    // The thread's file is a separate entry and lies beside the chunks.
    input: { app: "app.mjs", "lease-worker": "leasehold/lease-worker" },
    external: /^node:/,
    plugins,
    onLog,
    output: {
      dir: "out/rollup",
      format: "es",
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
    },
  },
  single("es", "out/rollup-single/app.mjs"),
  single("cjs", "out/rollup-cjs/app.cjs"),
];
