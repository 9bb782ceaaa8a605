/**
 * The signals that ask a command to end. They are held from the first moment on, as loading a command takes
 * longer than a script may wait before it changes its mind, and then told to the command that listens. It
 * imports nothing, so that nothing is before it.
 */
type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGUSR1" | "SIGUSR2";

/** Not SIGUSR1: it starts Node's debugger, and would end the process instead once it had been held. */
const HELD: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];

const held: Signal[] = [];

function hold(signal: Signal): void {
  held.push(signal);
}

/** What a signal does to a process that does not listen. */
function die(signal: NodeJS.Signals): void {
  process.off(signal, die);
  process.kill(process.pid, signal);
}

/** The first thing that this program does. */
export function holdSignals(): void {
  for (const signal of HELD) process.on(signal, hold as NodeJS.SignalsListener);
}

/**
 * Tells the listener of these signals, first of those that were held. Whatever else was held is no longer:
 * what it does to a process that does not listen, it does now.
 *
 * @returns stops listening.
 */
export function listenToSignals<Listened extends Signal>(
  signals: readonly Listened[],
  listener: (signal: Listened) => void,
): () => void {
  const listeners = signals.map((signal) => [signal, () => listener(signal)] as const);
  for (const [signal, tell] of listeners) process.on(signal, tell);
  const rest = HELD.filter((signal) => !listeners.some(([listened]) => listened === signal));
  for (const signal of rest) process.on(signal, die);
  for (const signal of HELD) process.off(signal, hold as NodeJS.SignalsListener);
  // Node hears of a signal when it polls. One that has arrived and was not heard yet would be lost with its
  // listener.
  setImmediate(() =>
    setImmediate(() => {
      for (const signal of rest) process.off(signal, die);
    }),
  );
  for (const signal of held.splice(0)) {
    const tell = listeners.find(([listened]) => listened === signal)?.[1];
    if (tell === undefined) die(signal);
    else tell();
  }
  return () => {
    for (const [signal, tell] of listeners) process.off(signal, tell);
  };
}

/** For a command that does not look after signals. */
export function letSignalsGo(): void {
  listenToSignals([], () => undefined);
}
