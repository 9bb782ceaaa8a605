// A server's code. Vite leaves packages outside of it, unless it is told not to.
import { defineConfig } from "vite";

export default defineConfig(({ mode }) => ({
  ssr: { noExternal: mode === "bundled" ? true : [] },
  build: {
    ssr: true,
    outDir: mode === "bundled" ? "out/vite-bundled" : "out/vite",
    rollupOptions:
      mode === "bundled"
        ? {
            // The file of the thread is an entry of its own, and lies beside the chunks.
            input: { app: "app.mjs", "lease-worker": "leasehold/lease-worker" },
            output: { entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" },
          }
        : { input: "app.mjs" },
  },
}));
