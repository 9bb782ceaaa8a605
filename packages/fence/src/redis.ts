import { stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken } from "./token.js";

/** The part of a client of `@redis/client`, or of `redis`, that is used. */
export interface RedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/**
 * Adapts any other client: runs a script with `EVAL`. With ioredis: `redis.eval(script, keys.length, ...keys,
 * ...values)`.
 */
export type RedisEval = (script: string, keys: string[], values: string[]) => Promise<unknown>;

/**
 * The check and the write in Lua, for clients in other languages. `KEYS[1]` has the greatest token. The
 * arguments are the token and then the commands, each preceded by its number of words. The script returns 1
 * and the replies, or 0 and the greatest token.
 */
// Lua's numbers are doubles, so tokens are compared as text, by length first.
export const writeScript = `local greatest = redis.call('GET', KEYS[1]) or '0'
local token = ARGV[1]
if not string.match(greatest, '^%d+$') then
  return redis.error_reply('FENCE the key has something else than a token')
end
if #token < #greatest or (#token == #greatest and token < greatest) then return {0, greatest} end
if token ~= greatest then redis.call('SET', KEYS[1], token) end
local replies = {}
local at = 2
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, last))
  at = last + 1
end
return {1, replies}`;

const readScript = "return redis.call('GET', KEYS[1]) or '0'";

/**
 * Keys in Redis. A write is a list of commands that run in one script with the check, so no other command
 * comes in between. The commands run in order. If one fails, the rest do not run and the earlier ones stay,
 * since Redis does not roll back.
 *
 * The fence holds as long as Redis keeps what it has acknowledged. The last tokens may be lost together with
 * their writes after a failover to a replica that lags, or a restart without `appendfsync always`. An evicted
 * key is lost, too: `maxmemory-policy` must not be `allkeys-…`.
 */
export class RedisFence implements Fence<readonly (readonly string[])[]> {
  readonly #run: RedisEval;
  readonly #key: string;

  /**
   * @param key the key of the greatest token, stored without expiry. In a cluster it needs the same hash tag
   *   as the keys that are written
   */
  constructor(client: RedisClient | RedisEval, key: string) {
    this.#run =
      typeof client === "function"
        ? client
        : (script, keys, values) => client.eval(script, { keys, arguments: values });
    this.#key = key;
  }

  /**
   * @param commands such as `[["SET", "report", text], ["PUBLISH", "reports", "nightly"]]`
   * @returns the replies to the commands
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; the client's error for a failed command
   */
  async write(token: bigint, commands: readonly (readonly string[])[]): Promise<unknown[]> {
    checkToken(token);
    const words = commands.flatMap((command) => [String(command.length), ...command]);
    const [isWritten, replies] = listOf(await this.#run(writeScript, [this.#key], [String(token), ...words]));
    if (Number(isWritten) !== 1) throw stale(this.#key, token);
    return listOf(replies);
  }

  async claim(token: bigint): Promise<void> {
    await this.write(token, []);
  }

  async greatest(): Promise<bigint> {
    return BigInt(String(await this.#run(readScript, [this.#key], [])));
  }
}

function listOf(reply: unknown): unknown[] {
  if (!Array.isArray(reply)) throw new TypeError(`Redis has replied ${String(reply)} and not a list`);
  return reply;
}
