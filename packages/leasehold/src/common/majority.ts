/** The smallest number of `count` such that any two sets of it have a member in common. */
export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}
