/** How many of `count` make a majority: the least number of which any two sets have a member in common. */
export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}
