/**
 * What the waist and the protocols need from the world. There are two worlds: the real one (`src/host`) and
 * virtual time (`src/testing`, later the simulator); both run the same code above these interfaces.
 */
export {};
