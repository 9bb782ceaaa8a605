/** The costs of a held lease, as `npm run bench -- size` measured them. */
export const figures = {
  measured: "2026-11-23",
  machine: "2 cores of AMD EPYC, Node v20.20.2",
  networkMeasured: "2026-11-28",
  networkMachine: "2 cores of AMD EPYC, Node v20.20.2",
  flease: {
    serverBytes: 122.1,
    clientBytes: 412.9,
    serverUs: 5.41,
    clientUs: 5.313,
    processBytes: 63303680,
    wireBytes: 300,
  },
  core: {
    serverBytes: 5347,
    clientBytes: 1757,
    serverUs: 167.8,
    clientUs: 361.7,
    processBytes: 86949888,
    wireBytes: 531,
  },
  delta: {
    cellBytes: 1651,
  },
} as const;
