// Code of a server. By default Vite does not bundle packages.
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  ssr: { noExternal: mode === "bundled" ? true : [] },
  build: {
    ssr: true,
    outDir: mode === "bundled" ? "out/vite-bundled" : "out/vite",
    rollupOptions:
      mode === "bundled"
        ? {
            // The thread's file is a separate entry and lies beside the chunks.
            input: { app: "app.mjs", "lease-worker": "leasehold/lease-worker" },
            output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" },
          }
        : { input: "app.mjs" },
  },
}));
