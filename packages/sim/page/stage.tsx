import type { Flight, NodeState, Recording } from "../src/theatre/recording.js";

const height = 430;
const cardWidth = 176;
const cardHeight = 104;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Members above, participants below. */
function pointsOf(nodes: readonly NodeState[], width: number): readonly Point[] {
  const row = (of: readonly NodeState[], y: number) =>
    new Map(of.map((node, at) => [node, { x: (width * (2 * at + 1)) / (2 * of.length), y }]));
  const members = nodes.filter(({ isMember }) => isMember);
  const others = nodes.filter(({ isMember }) => !isMember);
  // Where members are also the programs, half of them move to the lower row.
  const half = others.length > 0 ? members.length : Math.ceil(members.length / 2);
  const below = [...others, ...members.slice(half)];
  const all = new Map([...row(members.slice(0, half), 70), ...row(below, height - 70)]);
  return nodes.map((node) => all.get(node)!);
}

interface StageProps {
  /** In units of the drawing: on a phone there are fewer of them, so that letters stay large. */
  readonly width: number;
  readonly recording: Recording;
  readonly nodes: readonly NodeState[];
  readonly cuts: readonly (readonly [from: number, to: number])[];
  readonly atMs: number;
  readonly resource: string;
  readonly rankOf: (token: number) => number;
}

/** The nodes, what each holds or guards, and the messages between them. */
export function Stage({ width, recording, nodes, cuts, atMs, resource, rankOf }: StageProps) {
  const points = pointsOf(nodes, width);
  const inFlight = recording.flights.filter(
    (flight) => flight.sentMs <= atMs && atMs <= flight.arrivesMs && flight.resource === resource,
  );
  const scale = Math.min(1, width / (Math.max(1, mostInRow(nodes)) * (cardWidth + 12)));
  return (
    <svg
      class="stage"
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label="Members, programs and messages"
    >
      {cuts.map(([from, to]) => (
        <line
          key={`${from}-${to}`}
          class="cut"
          x1={points[from]!.x}
          y1={points[from]!.y}
          x2={points[to]!.x}
          y2={points[to]!.y}
        />
      ))}
      {inFlight.map((flight) => (
        <Wire key={keyOf(flight)} from={points[flight.from]!} to={points[flight.to]!} />
      ))}
      {nodes.map((node, at) => (
        <Card
          key={node.name}
          node={node}
          at={points[at]!}
          atMs={atMs}
          resource={resource}
          scale={scale}
          rankOf={rankOf}
        />
      ))}
      {inFlight.map((flight) => (
        <Message key={keyOf(flight)} flight={flight} points={points} atMs={atMs} />
      ))}
    </svg>
  );
}

const keyOf = ({ from, to, sentMs, kind }: Flight): string => `${from}-${to}-${sentMs}-${kind}`;

function mostInRow(nodes: readonly NodeState[]): number {
  const members = nodes.filter(({ isMember }) => isMember).length;
  const others = nodes.length - members;
  return others > 0 ? Math.max(members, others) : Math.ceil(members / 2);
}

function Wire({ from, to }: { readonly from: Point; readonly to: Point }) {
  return <line class="wire" x1={from.x} y1={from.y} x2={to.x} y2={to.y} />;
}

interface MessageProps {
  readonly flight: Flight;
  readonly points: readonly Point[];
  readonly atMs: number;
}

function Message({ flight, points, atMs }: MessageProps) {
  const { from, to, kind, sentMs, arrivesMs, isLost, isRefusal } = flight;
  const share = arrivesMs === sentMs ? 1 : (atMs - sentMs) / (arrivesMs - sentMs);
  // A message travels between the edges of the cards. A lost one stops on the way.
  const way = 0.18 + (isLost ? 0.3 : 0.64) * share;
  const x = points[from]!.x + (points[to]!.x - points[from]!.x) * way;
  const y = points[from]!.y + (points[to]!.y - points[from]!.y) * way;
  const half = 5 + 4.2 * kind.length;
  return (
    <g
      class={`message ${isLost ? "lost" : isRefusal ? "no" : toneOf(kind)}`}
      transform={`translate(${x} ${y})`}
    >
      <rect x={-half} y="-11" width={2 * half} height="22" rx="11" />
      <text y="4.5">{isLost ? "lost" : kind}</text>
    </g>
  );
}

const toneOf = (kind: string): string => (kind === "PROMISE" || kind === "ACK" ? "yes" : "ask");

interface CardProps {
  readonly node: NodeState;
  readonly at: Point;
  readonly atMs: number;
  readonly resource: string;
  readonly scale: number;
  readonly rankOf: (token: number) => number;
}

const lifeWords = {
  down: "crashed",
  frozen: "frozen",
  waiting: "silent",
  running: "",
} as const;

function Card({ node, at, atMs, resource, scale, rankOf }: CardProps) {
  const { name, isMember, life, clockMs } = node;
  const claim = claimOf(node, resource, atMs, rankOf);
  const part = isMember && claim.leftMs === 0 ? guardOf(node, resource, atMs) : claim;
  const clock = `clock ${clockMs >= 0 ? "+" : "\u2212"}${Math.abs(clockMs)} ms`;
  const barWidth = cardWidth - 24;
  return (
    <g transform={`translate(${at.x} ${at.y}) scale(${scale})`}>
      <g class={`card ${life} ${part.tone}`} transform={`translate(${-cardWidth / 2} ${-cardHeight / 2})`}>
        <rect class="box" width={cardWidth} height={cardHeight} rx={isMember ? 8 : 22} />
        <text class="name" x="12" y="24">
          {name}
        </text>
        <text class="life" x={cardWidth - 12} y="24">
          {lifeWords[life] === "" ? (isMember ? "member" : "program") : lifeWords[life]}
        </text>
        <text class="what" x="12" y="50">
          {part.text}
        </text>
        <rect class="rail" x="12" y="60" width={barWidth} height="8" rx="4" />
        {part.share > 0 && (
          <rect class="left" x="12" y="60" width={barWidth * part.share} height="8" rx="4" />
        )}
        <text class="clock" x="12" y="90">
          {clock}
        </text>
        {part.leftMs > 0 && (
          <text class="seconds" x={cardWidth - 12} y="90">
            {(part.leftMs / 1_000).toFixed(1)} s left
          </text>
        )}
      </g>
    </g>
  );
}

interface Part {
  readonly text: string;
  readonly leftMs: number;
  readonly share: number;
  readonly tone: string;
}

/** The longest time that a bar shows. */
const wholeMs = 3_600;

const none: Part = { text: "", leftMs: 0, share: 0, tone: "" };

function guardOf({ entries, life }: NodeState, resource: string, atMs: number): Part {
  if (life === "down") return none;
  const entry = entries.find((each) => each.resource === resource);
  if (entry === undefined) return { ...none, text: life === "waiting" ? "answers nobody" : "guards nobody" };
  const leftMs = entry.guardsUntilMs - atMs;
  if (entry.holder === "" || entry.isReleased || leftMs <= 0)
    return {
      ...none,
      text: entry.holder === "" ? "has promised a ballot" : `${entry.holder}'s lease is over`,
    };
  return {
    text: `guards ${entry.holder}`,
    leftMs,
    share: Math.min(1, leftMs / wholeMs),
    tone: toneOfHolder(entry.holder),
  };
}

function claimOf(
  { claims, life, name }: NodeState,
  resource: string,
  atMs: number,
  rankOf: (token: number) => number,
): Part {
  if (life === "down") return none;
  const claim = claims.find((each) => each.resource === resource);
  if (claim === undefined) return { ...none, text: "wants nothing" };
  const leftMs = claim.untilMs - atMs;
  if (claim.isHeld && leftMs > 0) {
    const text = `HOLDS it, token ${rankOf(claim.token)}`;
    return { text, leftMs, share: Math.min(1, leftMs / wholeMs), tone: toneOfHolder(name) };
  }
  const asks = { asking: "asks", writing: "asks", renewing: "asks", holding: "", over: "" }[claim.doing];
  const votes = asks === "" ? "" : `: ${claim.yes} of the ${claim.needed} it needs`;
  return { ...none, text: asks === "" ? "holds nothing" : `asks${votes}` };
}

/** Each holder has a colour. Members have the colour of the holder that they guard. */
export function toneOfHolder(name: string): string {
  const letter =
    name === "A" ? 0 : name === "B" ? 1 : [...name].reduce((sum, each) => sum + each.codePointAt(0)!, 0);
  return `lane-${letter % 6}`;
}
