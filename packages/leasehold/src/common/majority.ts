/** The smallest size, out of `count` members, at which any two sets have a member in common. */
export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}
