import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Recording } from "../src/theatre/recording.js";
import { featureNames, recordRun } from "../src/theatre/runs.js";
import { type Scene, recordScene, scenes } from "../src/theatre/scenes.js";
import { lanesOf, ranks } from "./lanes.js";
import { shareMemory } from "./one-thread.js";
import { type Place, placeOf } from "./place.js";
import { type Position, afterMs, toMain, toStep, toTime } from "./player.js";
import { Stage } from "./stage.js";
import { Timeline } from "./timeline.js";

const speeds = [0.25, 0.5, 1, 2, 4, 16];

/** Inside a page of the documentation, which has its own heading and menu. */
const isEmbedded = new URLSearchParams(location.search).has("embedded");

function Theatre() {
  const [place, setPlace] = useState<Place>(() => placeOf(location.hash));
  const [recording, setRecording] = useState<Recording>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const moved = (): void => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const scene = place.kind === "scene" ? (scenes.find(({ id }) => id === place.id) ?? scenes[0]) : undefined;
  useEffect(() => {
    let isOld = false;
    setRecording(undefined);
    setFailure(place.kind === "wrong" ? place.text : undefined);
    if (place.kind === "wrong") return undefined;
    // The page first says that it is working, because a long run takes a second.
    const timer = setTimeout(() => {
      const run = scene === undefined && place.kind === "run" ? recordRun(place) : recordScene(scene!);
      run.then(
        (made) => isOld || setRecording(made),
        (error: unknown) => isOld || setFailure(String(error)),
      );
    }, 20);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [place]);
  // A page has only one `main`.
  const Main = isEmbedded ? "div" : "main";
  return (
    <>
      {!isEmbedded && (
        <header>
          <h1>Leasehold theatre</h1>
          <p class="hint">
            The simulator runs the product's own protocol code, here in the browser, on virtual time.
          </p>
        </header>
      )}
      {!isEmbedded && <Menu scene={scene} />}
      <Main>
        {failure !== undefined && <p class="notice bad">{failure}</p>}
        {recording === undefined && failure === undefined && <p class="hint">The run is made …</p>}
        {recording !== undefined && (
          <Play key={recording.traceHash} recording={recording} scene={scene} place={place} />
        )}
      </Main>
      {!isEmbedded && <RunForm place={place} />}
    </>
  );
}

function Menu({ scene }: { readonly scene: Scene | undefined }) {
  return (
    <nav aria-label="Scenes">
      <ul>
        {scenes.map(({ id, title }) => (
          <li key={id}>
            <a href={`#/scene/${id}`} aria-current={id === scene?.id ? "page" : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** Leads to the run of a seed. */
function RunForm({ place }: { readonly place: Place }) {
  const run = place.kind === "run" ? place : { seed: 9, mode: undefined, without: [] };
  const show = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const words = new URLSearchParams();
    for (const name of ["seed", "mode", "without"]) {
      const value = form.get(name);
      if (typeof value === "string" && value !== "") words.set(name, value);
    }
    location.hash = `#/run?${words}`;
  };
  return (
    <aside aria-label="A run of the simulator">
      <form onSubmit={show}>
        <h2>A run of the simulator</h2>
        <label>
          Seed <input name="seed" inputMode="numeric" pattern="[0-9]+" required value={String(run.seed)} />
        </label>
        <label>
          Clocks{" "}
          <select name="mode">
            <option value="">by the seed</option>
            {[..."abcdefg"].map((mode) => (
              <option key={mode} selected={run.mode === mode}>
                {mode}
              </option>
            ))}
          </select>
        </label>
        <label>
          Without <input name="without" list="features" value={run.without.join(",")} />
        </label>
        <datalist id="features">
          {featureNames.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <button type="submit">Show it</button>
      </form>
    </aside>
  );
}

interface PlayProps {
  readonly recording: Recording;
  readonly scene: Scene | undefined;
  readonly place: Place;
}

function Play({ recording, scene, place }: PlayProps) {
  const { steps, resources, firstStep, violation, maxClockSkewMs } = recording;
  const [position, setPosition] = useState<Position>(() => toStep(recording, firstStep));
  const width = useDrawingWidth();
  const [isPlaying, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(1);
  const [resource, setResource] = useState(resources[0] ?? "");
  const lanes = useMemo(() => lanesOf(recording, resource), [recording, resource]);
  const rank = useMemo(() => ranks(lanes), [lanes]);
  const rankOf = (token: number): number => rank.get(token) ?? 0;
  const fromMs = steps[firstStep]?.atMs ?? 0;
  const toMs = Math.max(fromMs + 1, steps.at(-1)?.atMs ?? 0);
  usePlay(isPlaying, (passedMs) => {
    setPosition((now) => {
      const next = afterMs(recording, now, passedMs, speed);
      if (next < toMs) return toTime(recording, next);
      setPlaying(false);
      return toStep(recording, steps.length - 1);
    });
  });
  const go = (to: Position): void => {
    setPlaying(false);
    setPosition(to);
  };
  const isAtEnd = position.step === steps.length - 1;
  const play = (): void => {
    if (isAtEnd) setPosition(toStep(recording, firstStep));
    setPlaying(!isPlaying);
  };
  const actions: Readonly<Record<string, () => void>> = {
    " ": play,
    ArrowRight: () => go(toStep(recording, position.step + 1)),
    ArrowLeft: () => go(toStep(recording, position.step - 1)),
    n: () => go(toMain(recording, position.step, 1)),
    p: () => go(toMain(recording, position.step, -1)),
    Home: () => go(toStep(recording, firstStep)),
    End: () => go(toStep(recording, steps.length - 1)),
  };
  useKeys(actions);
  const step = steps[position.step];
  if (step === undefined) return <p class="hint">Nothing happens in this run.</p>;
  const isBroken = violation !== undefined && position.atMs >= violation.atMs;
  const title = scene?.title ?? `Seed ${recording.seed}, clocks ${recording.mode}`;
  return (
    <>
      <h2 class="title">{title}</h2>
      <p class="watch">{scene?.watch ?? runWords(recording, place)}</p>
      {resources.length > 1 && (
        <label class="resource">
          Resource{" "}
          <select value={resource} onChange={(event) => setResource(event.currentTarget.value)}>
            {resources.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      <Stage
        width={width}
        recording={recording}
        nodes={step.nodes}
        cuts={step.cuts}
        atMs={position.atMs}
        resource={resource}
        rankOf={rankOf}
      />
      <p class="says" aria-live={isPlaying ? "off" : "polite"}>
        {step.text}
      </p>
      <div class="controls" role="group" aria-label="Play">
        <button type="button" onClick={actions["Home"]} aria-label="To the beginning">
          |◀
        </button>
        <button type="button" onClick={actions["p"]} aria-label="The event before">
          ◀◀
        </button>
        <button type="button" onClick={actions["ArrowLeft"]} aria-label="One step back">
          ◀
        </button>
        <button type="button" class="play" onClick={play}>
          {isPlaying ? "Pause" : isAtEnd ? "Again" : "Play"}
        </button>
        <button type="button" onClick={actions["ArrowRight"]} aria-label="One step on">
          ▶
        </button>
        <button type="button" onClick={actions["n"]} aria-label="The next event">
          ▶▶
        </button>
        <input
          type="range"
          aria-label="Time"
          min={fromMs}
          max={toMs}
          step="1"
          value={position.atMs}
          onInput={(event) => go(toTime(recording, Number(event.currentTarget.value)))}
        />
        <span class="time">{((position.atMs - fromMs) / 1_000).toFixed(3)} s</span>
        <label>
          Speed{" "}
          <select value={String(speed)} onChange={(event) => setSpeed(Number(event.currentTarget.value))}>
            {speeds.map((each) => (
              <option key={each} value={String(each)}>
                {each}×
              </option>
            ))}
          </select>
        </label>
      </div>
      <p class={isBroken ? "invariant broken" : "invariant"} role="status">
        {isBroken
          ? `${violation.invariant} is broken: ${violation.text}`
          : "Exclusion holds: at most one program holds the lease."}
      </p>
      <Timeline
        width={width}
        lanes={lanes}
        fromMs={fromMs}
        toMs={toMs}
        atMs={position.atMs}
        rankOf={rankOf}
        go={(atMs) => go(toTime(recording, atMs))}
      />
      {scene !== undefined && <p class="moral">{scene.moral}</p>}
      <p class="hint">
        Clocks may differ by {maxClockSkewMs} ms. Time passes slowly while messages are under way. Keys: space
        plays, ← → step, n and p go to the next event and the one before, Home and End. Trace{" "}
        {recording.traceHash}.
      </p>
    </>
  );
}

function runWords({ violation, stepsDropped }: Recording, place: Place): string {
  const kept = stepsDropped > 0 ? ` The first ${stepsDropped} steps were not kept.` : "";
  const without =
    place.kind === "run" && place.without.length > 0 ? ` Without ${place.without.join(", ")}.` : "";
  const end = violation === undefined ? "No invariant broke." : `It ends as ${violation.invariant} breaks.`;
  return `A random bad day: crashes, cuts, lost messages and wild clocks. ${end}${without}${kept}`;
}

/** Calls with the time since the last frame, while it plays. */
function usePlay(isPlaying: boolean, frame: (passedMs: number) => void): void {
  const latest = useRef(frame);
  latest.current = frame;
  useEffect(() => {
    if (!isPlaying) return undefined;
    let before = performance.now();
    let request = requestAnimationFrame(function next(now) {
      // When a hidden tab is shown again, playback continues where it was.
      latest.current(Math.min(100, Math.max(0, now - before)));
      before = now;
      request = requestAnimationFrame(next);
    });
    return () => cancelAnimationFrame(request);
  }, [isPlaying]);
}

/** Units of the drawings: as many as leave letters readable. */
function useDrawingWidth(): number {
  const widthNow = (): number => (innerWidth < 560 ? 460 : innerWidth < 900 ? 640 : 960);
  const [width, setWidth] = useState(widthNow);
  useEffect(() => {
    const resized = (): void => setWidth(widthNow());
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, []);
  return width;
}

function useKeys(actions: Readonly<Record<string, () => void>>): void {
  const latest = useRef(actions);
  latest.current = actions;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const isTyping = (event.target as Element).matches("input, select, a, button:not(.play)");
      const act = latest.current[event.key];
      if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTyping && (event.key === " " || (event.target as Element).matches("input, select"))) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

shareMemory();
if (isEmbedded) document.documentElement.dataset["embedded"] = "";
render(<Theatre />, document.querySelector("#theatre")!);
