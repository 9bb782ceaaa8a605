/** The invariants of section 5, and the two of liveness that a timed run can check. */
export const invariants = [
  "I1",
  "I2",
  "I3",
  "I4",
  "I5",
  "I6",
  "I7",
  "I8",
  "I9",
  "I10",
  "I11",
  "I12",
  "I13",
  "I14",
  "I15",
  "I16",
  "L1",
  "L2",
] as const;
export type Invariant = (typeof invariants)[number];
