/** For an algorithm that has to know the time before it asks. */
export const lookAtClocks = { kind: "delay", delayMs: 0 };
