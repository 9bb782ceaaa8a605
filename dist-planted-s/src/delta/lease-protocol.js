export const noFloor = { epoch: 0n, number: 0n };
