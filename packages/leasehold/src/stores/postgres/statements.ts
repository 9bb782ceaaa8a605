/**
 * The statements of a store in one schema. Each is a separate transaction, without prepared names or session
 * settings, because a pooler may run each on a different connection.
 */
export interface Statements {
  readonly makeSchema: string;
  readonly makeTable: string;
  /** $1: a marker to create. */
  readonly makeMarker: string;
  /** $1: a marker, $2: its replacement, written if the marker is unchanged. */
  readonly replaceMarker: string;
  /** $1: register. Returns `id` and `content`. */
  readonly read: string;
  /** $1: register, $2: next, $3: id. Inserts a row if there is none. */
  readonly create: string;
  /** $1: register, $2: next, $3: id, $4: expected. */
  readonly replace: string;
  /** $1: prefix, $2: limit. Returns rows of `id`, `register` and `content`, or one with `register` null. */
  readonly list: string;
}

/** The statements of a store. The row with the empty name has the marker. */
export function statementsIn(schema: string): Statements {
  const table = `"${schema}"."registers"`;
  /**
   * The marker and the timeline: a standby that takes over, which may lack the last writes, and a backup that
   * is rolled forward both begin a new timeline. If a crash of the machine may lose writes (the marker begins
   * with `m`), also the server's start time.
   */
  const id =
    "convert_from(content, 'UTF8') || '@' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || " +
    "case when get_byte(content, 0) = ascii('m') then '@' || extract(epoch from pg_postmaster_start_time()) else '' end";
  const currentId = `(select ${id} from ${table} where register = '')`;
  /**
   * Applies to this transaction, which waits for the disk at its end whatever the default of the user or
   * server is.
   */
  const durable = "durable as materialized (select set_config('synchronous_commit', 'on', true))";
  return {
    makeSchema: `create schema if not exists "${schema}"`,
    makeTable: `create table if not exists ${table} (register text collate "C" primary key, content bytea not null)`,
    makeMarker: `with ${durable} insert into ${table} select '', convert_to($1, 'UTF8') from durable on conflict do nothing`,
    replaceMarker:
      `with ${durable} update ${table} set content = convert_to($2, 'UTF8') from durable ` +
      `where register = '' and content = convert_to($1, 'UTF8')`,
    read: `select ${currentId} as id, (select content from ${table} where register = $1) as content`,
    // The marker's row stays locked until the end, so nobody can empty the table between its check and the
    // write.
    create:
      `with ${durable}, marker as materialized (select ${id} as id from ${table} where register = '' for key share) ` +
      `insert into ${table} select $1, $2 from durable, marker where marker.id = $3 on conflict do nothing`,
    // A row with the expected content has not been lost. If others write it concurrently, it is checked again
    // after that.
    replace:
      `with ${durable} update ${table} set content = $2 from durable ` +
      `where register = $1 and content = $4 and ${currentId} = $3`,
    list:
      `select m.id, r.register, r.content from (select ${currentId} as id) m left join lateral ` +
      `(select register, content from ${table} where register <> '' and starts_with(register, $1) limit $2) r on true`,
  };
}

/** The server's facts. $1: the schema. */
export const askServer =
  "select current_setting('server_version') as version, current_setting('server_encoding') as encoding, " +
  "pg_is_in_recovery() as standby, current_setting('transaction_read_only') as readonly, " +
  "current_setting('fsync') as fsync, current_setting('full_page_writes') as pages, " +
  "to_regnamespace($1) is not null as schema, " +
  "(select relpersistence::text from pg_class where oid = to_regclass($1 || '.registers')) as persistence, " +
  "(select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) from pg_attribute " +
  "where attrelid = to_regclass($1 || '.registers') and attnum > 0 and not attisdropped) as columns";

/** The columns of Leasehold's table, as `askServer` returns them. */
export const registersColumns = "register text, content bytea";
