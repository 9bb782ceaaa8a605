import { events } from "./live.js";
import { go } from "./place.js";
import { timeOfDay } from "./words.js";

const shownMax = 300;

/** The events, newest first. */
export function EventList() {
  const newest = events.value.slice(-shownMax).toReversed();
  if (newest.length === 0)
    return <p class="empty">Nothing has happened since this console began to watch.</p>;
  return (
    <section aria-label="Events" class="events">
      <ol>
        {newest.map(({ number, atMs, kind, text, name }) => (
          <li key={number} class={kind}>
            <time>{timeOfDay(atMs)}</time>
            <span class="kind">{kind.replace("-", " ")}</span>
            <span>
              {name !== undefined && (
                <button type="button" class="link" onClick={() => go({ name })}>
                  {name}
                </button>
              )}
              {name !== undefined && ": "}
              {text}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
