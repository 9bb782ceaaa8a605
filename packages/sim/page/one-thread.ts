/**
 * Browsers provide shared memory only to isolated pages. This page has one thread, so ordinary memory
 * suffices.
 */
export function shareMemory(): void {
  if (!("SharedArrayBuffer" in globalThis)) Object.assign(globalThis, { SharedArrayBuffer: ArrayBuffer });
}
