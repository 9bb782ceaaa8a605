/** What an observer may ask beside the protocol. Anything new is not for observers until it stands here. */
export const observerCalls: ReadonlySet<string> = new Set([
  "status",
  "list",
  "explain",
  "watch",
  "unwatch",
  "label",
]);
