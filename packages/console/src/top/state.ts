/** What the user of `leasehold top` looks at, and how each key changes it. */

export const views = ["leases", "holders", "ground", "events"] as const;
export type View = (typeof views)[number];

export const orders = ["name", "holder", "time left", "held for"] as const;
export type Order = (typeof orders)[number];

export interface TopState {
  readonly view: View;
  readonly order: Order;
  readonly isReversed: boolean;
  /** A part of a lease's name, holder or label. Without capitals it matches either case. */
  readonly filter: string;
  /** Whether keys are typed into the filter. */
  readonly isTyping: boolean;
  /** The cursor's row: a lease's name, or a holder. */
  readonly chosen: string | undefined;
  /** Whether the details of the chosen lease replace the list. */
  readonly isOpen: boolean;
  readonly isHelp: boolean;
}

export const firstState: TopState = {
  view: "leases",
  order: "name",
  isReversed: false,
  filter: "",
  isTyping: false,
  chosen: undefined,
  isOpen: false,
  isHelp: false,
};

const filterMax = 256;

/** What the keys act on: the rows of the view in order, and how many of them the screen shows. */
export interface Listed {
  readonly rows: readonly string[];
  readonly page: number;
}

/** @param key a character, or the name of a key such as `up`: see `Terminal` */
export function press(state: TopState, key: string, listed: Listed): TopState {
  if (state.isTyping) return typed(state, key, listed);
  if (state.isHelp) return { ...state, isHelp: false };
  const view = views[Number(key) - 1];
  if (view !== undefined) return { ...state, view, chosen: undefined, isOpen: false };
  switch (key) {
    case "?":
    case "h":
      return { ...state, isHelp: true };
    case "/":
      return { ...state, isTyping: true, isOpen: false };
    case "escape":
      return state.isOpen ? { ...state, isOpen: false } : { ...state, filter: "" };
    case "tab":
    case "right":
      return turned(state, 1);
    case "left":
      return turned(state, -1);
    case "s":
      return { ...state, order: orders[(orders.indexOf(state.order) + 1) % orders.length] ?? "name" };
    case "r":
      return { ...state, isReversed: !state.isReversed };
    case "return":
      return entered(state, listed);
    default:
      return { ...state, chosen: moved(state.chosen, key, listed) };
  }
}

function typed(state: TopState, key: string, listed: Listed): TopState {
  if (key === "escape") return { ...state, isTyping: false, filter: "" };
  if (key === "return") return { ...state, isTyping: false };
  if (key === "backspace") return { ...state, filter: [...state.filter].slice(0, -1).join("") };
  if ([...key].length > 1) return { ...state, chosen: moved(state.chosen, key, listed) };
  return { ...state, filter: (state.filter + key).slice(0, filterMax) };
}

function turned(state: TopState, by: number): TopState {
  const view = views[(views.indexOf(state.view) + by + views.length) % views.length] ?? "leases";
  return { ...state, view, chosen: undefined, isOpen: false };
}

/** Enter leads from a holder to its leases, and from a lease to its details. */
function entered(state: TopState, { rows }: Listed): TopState {
  const chosen = state.chosen ?? rows[0];
  if (chosen === undefined) return state;
  if (state.view === "holders") return { ...state, view: "leases", filter: chosen, chosen: undefined };
  return state.view === "leases" ? { ...state, chosen, isOpen: !state.isOpen } : state;
}

function moved(chosen: string | undefined, key: string, { rows, page }: Listed): string | undefined {
  const steps: Readonly<Record<string, number>> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    pageup: -page,
    pagedown: page,
    home: -rows.length,
    g: -rows.length,
    end: rows.length,
    G: rows.length,
  };
  const by = steps[key];
  if (by === undefined || rows.length === 0) return chosen;
  const at = chosen === undefined ? 0 : Math.max(0, rows.indexOf(chosen));
  return rows[Math.min(rows.length - 1, Math.max(0, at + by))];
}
