/** The rights of users to the leases below a prefix. */
export const actions = ["see", "read-lock", "hold", "break", "administer"] as const;
export type Action = (typeof actions)[number];

/** Each right includes the rights listed for it. */
const includes: Readonly<Record<Action, readonly Action[]>> = {
  administer: ["administer", "break", "hold", "read-lock", "see"],
  break: ["break", "see"],
  hold: ["hold", "read-lock", "see"],
  "read-lock": ["read-lock", "see"],
  see: ["see"],
};

export interface Rule {
  readonly prefix: string;
  readonly may: readonly Action[];
}

/** The rights of one user. An action that no rule allows is refused. */
export class Rights {
  readonly #rules: readonly { readonly prefix: string; readonly may: ReadonlySet<Action> }[];

  constructor(rules: readonly Rule[]) {
    this.#rules = rules.map(({ prefix, may }) => ({
      prefix,
      may: new Set(may.flatMap((action) => includes[action])),
    }));
  }

  may(action: Action, resource: string): boolean {
    return this.#rules.some(({ prefix, may }) => may.has(action) && resource.startsWith(prefix));
  }
}

/** All rights, for the single user of a gateway without users. */
export const everything = new Rights([{ prefix: "", may: ["administer"] }]);
