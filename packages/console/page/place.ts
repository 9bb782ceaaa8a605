import { signal } from "@preact/signals";

/** The user's place, stored after the `#` of the address, so that links lead to the same place. */

export type View = "leases" | "ground" | "events";

export interface Place {
  readonly view: View;
  /** The lease whose details are shown; empty for none. */
  readonly name: string;
  /** The list contains only names with this prefix. */
  readonly prefix: string;
  /** The list begins after this name. */
  readonly after: string;
}

export const place = signal<Place>(read());

/** Changes parts of the place. */
export function go(change: Partial<Place>): void {
  const { view, name, prefix, after } = { ...place.value, ...change };
  const search = new URLSearchParams();
  if (prefix !== "") search.set("prefix", prefix);
  if (after !== "") search.set("after", after);
  if (name !== "") search.set("name", name);
  const text = search.toString();
  const hash = `#/${view}${text === "" ? "" : `?${text}`}`;
  if (hash === location.hash) return;
  // Typing a prefix replaces the history entry; one for each key would be useless.
  if (change.prefix === undefined) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  place.value = read();
}

addEventListener("popstate", () => {
  place.value = read();
});

function read(): Place {
  const [, view = "", search = ""] = /^#\/(\w*)(?:\?(.*))?$/.exec(location.hash) ?? [];
  const words = new URLSearchParams(search);
  return {
    view: view === "ground" || view === "events" ? view : "leases",
    name: words.get("name") ?? "",
    prefix: words.get("prefix") ?? "",
    after: words.get("after") ?? "",
  };
}
