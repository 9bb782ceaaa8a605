/** Facts about a Redis server when the connection was made. */
export interface RedisFacts {
  readonly version: string;
  readonly runId: string;
  readonly role: string;
  /**
   * True if acknowledged writes survive a power loss, and no replica that lacks some of them can replace the
   * server.
   */
  readonly durable: boolean;
  /** Its persistence settings, for messages. */
  readonly persistence: string;
}

type Command = (words: readonly string[]) => Promise<unknown>;

export async function askRedisFacts(command: Command): Promise<RedisFacts> {
  const info = String(await command(["INFO"]));
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "";
  const settings = await askPersistence(command);
  const replicas = Number(field("connected_slaves"));
  // The third setting suspends the second one's syncs while the server rewrites its file or saves.
  const syncsAlways = settings?.appendfsync === "always" && settings["no-appendfsync-on-rewrite"] === "no";
  return {
    version: field("redis_version"),
    runId: field("run_id"),
    role: field("role"),
    durable: settings?.appendonly === "yes" && syncsAlways && replicas === 0,
    persistence:
      settings === undefined
        ? "its persistence is unknown"
        : [...asked.map((name) => `${name} ${settings[name]}`), `${replicas} replicas`].join(", "),
  };
}

const asked = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite"] as const;

/** `undefined` if CONFIG is not allowed: the server then counts as one that may lose data. */
async function askPersistence(
  command: Command,
): Promise<Readonly<Record<(typeof asked)[number], string>> | undefined> {
  try {
    const get = async (name: string) => String(((await command(["CONFIG", "GET", name])) as unknown[])[1]);
    return {
      appendonly: await get("appendonly"),
      appendfsync: await get("appendfsync"),
      "no-appendfsync-on-rewrite": await get("no-appendfsync-on-rewrite"),
    };
  } catch {
    return undefined;
  }
}
