import type { GroundView, PartView } from "../src/record/messages.js";
import { ground, start } from "./live.js";

/** Members, stores or servers: the state of each, and what members know of their peers. */
export function Ground() {
  const state = ground.value;
  if (state === undefined) return <p class="empty">Asking …</p>;
  if (state.kind === "memory") return <p class="empty">These leases are in the memory of one process.</p>;
  return (
    <section class="ground" aria-label="Ground">
      <p class="hint">{start.value?.endpoints}</p>
      <ul class="parts">
        {state.parts.map((part) => (
          <Part key={part.id} part={part} />
        ))}
      </ul>
      <Matrix state={state} />
    </section>
  );
}

function Part({ part: { id, address, state, text, facts } }: { readonly part: PartView }) {
  return (
    <li class={`part ${state}`}>
      <h2>{id}</h2>
      {address !== id && <p class="address">{address}</p>}
      <p class="says">{text}</p>
      <dl>
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
    </li>
  );
}

function Matrix({ state: { parts, maxClockSkewMs } }: { readonly state: GroundView }) {
  if (parts.every(({ peers }) => peers === undefined)) return null;
  return (
    <>
      <h2>Clocks and round trips</h2>
      <p class="hint">
        Each row is how one member sees the others: the other's clock minus its own, and the shortest round
        trip.
        {maxClockSkewMs !== undefined && ` Clocks may be at most ${maxClockSkewMs} ms apart.`}
      </p>
      <div class="wide">
        <table class="matrix">
          <thead>
            <tr>
              <td />
              {parts.map(({ id }) => (
                <th key={id} scope="col">
                  {id}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {parts.map((row) => (
              <tr key={row.id}>
                <th scope="row">{row.id}</th>
                {parts.map(({ id }) => (
                  <Cell key={id} row={row} id={id} boundMs={maxClockSkewMs} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface CellProps {
  readonly row: PartView;
  readonly id: string;
  readonly boundMs: number | undefined;
}

function Cell({ row, id, boundMs }: CellProps) {
  if (row.id === id) return <td class="self">·</td>;
  const peer = row.peers?.find((each) => each.id === id);
  if (peer === undefined) return <td>?</td>;
  if (!peer.isConnected) return <td class="cut">cut</td>;
  const { skewMs, skewErrorMs = 0, roundTripMs } = peer;
  // Only if certain: a slow answer says little about a clock.
  const isFar = boundMs !== undefined && skewMs !== undefined && Math.abs(skewMs) - skewErrorMs > boundMs;
  return (
    <td class={isFar ? "far" : ""}>
      {skewMs === undefined ? "?" : `${skewMs >= 0 ? "+" : "−"}${Math.abs(skewMs).toFixed(1)} ms`}
      <small>{roundTripMs === undefined ? "" : `${roundTripMs.toFixed(1)} ms`}</small>
    </td>
  );
}
