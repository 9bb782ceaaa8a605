import { createHash } from "node:crypto";

/**
 * A store is one hash: a field for each register, and the marker in the field with the empty name. So any
 * event that removes the hash (an eviction, FLUSHALL, an expiry) also removes the marker, and no part can be
 * lost unnoticed.
 */
export interface Script {
  readonly text: string;
  readonly sha1: string;
}

function script(text: string): Script {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/**
 * `id` is the marker, created from ARGV[1] if there is none. If the server can lose data (the marker begins
 * with `m`), the run id is appended, because a restart may restore old contents together with the old marker.
 * `cell` is the field ARGV[2], or false.
 */
const head = `
local id = redis.call('HGET', KEYS[1], '')
if not id then
  id = ARGV[1]
  redis.call('HSET', KEYS[1], '', id)
end
if string.sub(id, 1, 1) == 'm' then
  id = id .. '@' .. string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
local cell = redis.call('HGET', KEYS[1], ARGV[2])
`;

/** ARGV: a marker to make, register. Returns id and content (or nil). */
export const readScript = script(`${head}return {id, cell}`);

/**
 * ARGV: a marker to make, register, id, `1` if there is an expected content, that content, next. Returns id,
 * content (or nil) and whether it wrote.
 */
export const replaceScript = script(`${head}
if id ~= ARGV[3] or cell ~= (ARGV[4] == '1' and ARGV[5]) then return {id, cell, 0} end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[6])
return {id, false, 1}`);

/** ARGV: a marker, its replacement. Replaces the marker if it is unchanged. */
export const replaceMarkerScript = script(`
if redis.call('HGET', KEYS[1], '') == ARGV[1] then redis.call('HSET', KEYS[1], '', ARGV[2]) end
return 0`);
