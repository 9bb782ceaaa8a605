/** Browsers have shared memory for isolated pages only. Here is one thread, so that common memory does as well. */
export function shareMemory(): void {
  if (!("SharedArrayBuffer" in globalThis)) Object.assign(globalThis, { SharedArrayBuffer: ArrayBuffer });
}
