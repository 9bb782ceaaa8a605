/** The register that every store has under this name tells the store's marker and which stores belong to its farm. */
export const farmRegister = "leasehold.farm";
