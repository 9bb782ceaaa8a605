import type { Lane } from "./lanes.js";
import { toneOfHolder } from "./stage.js";

const nameWidth = 92;
const laneHeight = 22;

interface TimelineProps {
  /** In units of the drawing. */
  readonly width: number;
  readonly lanes: readonly Lane[];
  readonly fromMs: number;
  readonly toMs: number;
  readonly atMs: number;
  readonly rankOf: (token: number) => number;
  readonly go: (atMs: number) => void;
}

/** Who held the resource, and what each member guarded, along one time axis. Clicking moves to that time. */
export function Timeline({ width, lanes, fromMs, toMs, atMs, rankOf, go }: TimelineProps) {
  const height = lanes.length * laneHeight + 20;
  const xOf = (ms: number): number =>
    nameWidth + ((width - nameWidth - 8) * (Math.min(toMs, Math.max(fromMs, ms)) - fromMs)) / (toMs - fromMs);
  const press = (event: MouseEvent): void => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    const share = (x - nameWidth) / (width - nameWidth - 8);
    go(fromMs + Math.min(1, Math.max(0, share)) * (toMs - fromMs));
  };
  const seconds = Array.from({ length: Math.floor((toMs - fromMs) / 1_000) + 1 }, (_, at) => at);
  const every = Math.max(1, Math.ceil((seconds.length * 68) / width));
  return (
    <svg
      class="lanes"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label="Who held the lease, and what each member guarded, over time"
      onClick={press}
    >
      {seconds
        .filter((each) => each % every === 0)
        .map((each) => (
          <g key={each}>
            <line
              class="grid"
              x1={xOf(fromMs + 1_000 * each)}
              x2={xOf(fromMs + 1_000 * each)}
              y1="0"
              y2={height - 16}
            />
            <text class="grid" x={xOf(fromMs + 1_000 * each)} y={height - 4}>
              {each} s
            </text>
          </g>
        ))}
      {lanes.map(({ name, does, spans }, at) => (
        <g key={name + does} transform={`translate(0 ${at * laneHeight})`}>
          <text class="name" x={nameWidth - 10} y="15">
            {name} {does}
          </text>
          {spans.map((span) => (
            <g key={span.fromMs} class={`span ${does} ${toneOfHolder(span.holder)}`}>
              <rect
                x={xOf(span.fromMs)}
                y={does === "guards" ? 6 : 2}
                width={Math.max(0, xOf(span.toMs) - xOf(span.fromMs))}
                height={does === "guards" ? 9 : 17}
                rx="3"
              />
              {does === "holds" && xOf(span.toMs) - xOf(span.fromMs) > 70 && (
                <text x={xOf(span.fromMs) + 6} y="14.5">
                  token {rankOf(span.token)}
                </text>
              )}
            </g>
          ))}
        </g>
      ))}
      <line class="now" x1={xOf(atMs)} x2={xOf(atMs)} y1="0" y2={height - 16} />
    </svg>
  );
}
