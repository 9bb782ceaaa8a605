/**
 * Signals that end a command. They are held from the start and later passed to the command's listener,
 * because a script may send one before the command is loaded. This module imports nothing, so nothing runs
 * before it.
 */
type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGUSR1" | "SIGUSR2";

/** SIGUSR1 is excluded: it starts Node's debugger, and would end the process once it had been held. */
const HELD: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];

const held: Signal[] = [];

function hold(signal: Signal): void {
  held.push(signal);
}

/** The default action of a signal. */
function die(signal: NodeJS.Signals): void {
  process.off(signal, die);
  process.kill(process.pid, signal);
}

/** Called before everything else in this program. */
export function holdSignals(): void {
  for (const signal of HELD) process.on(signal, hold as NodeJS.SignalsListener);
}

/**
 * Passes these signals to the listener, beginning with the held ones. Other held signals take their default
 * action now.
 *
 * @returns stops listening.
 */
export function listenToSignals<Listened extends Signal>(
  signals: readonly Listened[],
  listener: (signal: Listened) => void,
): () => void {
  const listeners = signals.map((signal) => [signal, () => listener(signal)] as const);
  for (const [signal, notify] of listeners) process.on(signal, notify);
  const rest = HELD.filter((signal) => !listeners.some(([listened]) => listened === signal));
  for (const signal of rest) process.on(signal, die);
  for (const signal of HELD) process.off(signal, hold as NodeJS.SignalsListener);
  // Node receives signals when it polls; a pending one would be lost if its listener were removed now.
  setImmediate(() =>
    setImmediate(() => {
      for (const signal of rest) process.off(signal, die);
    }),
  );
  for (const signal of held.splice(0)) {
    const notify = listeners.find(([listened]) => listened === signal)?.[1];
    if (notify === undefined) die(signal);
    else notify();
  }
  return () => {
    for (const [signal, notify] of listeners) process.off(signal, notify);
  };
}

/** For commands that do not handle signals. */
export function letSignalsGo(): void {
  listenToSignals([], () => undefined);
}
