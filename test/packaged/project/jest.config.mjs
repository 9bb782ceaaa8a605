// No transform, as the tests are plain JavaScript.
export default {
  testMatch: ["<rootDir>/jest/*.mjs", "<rootDir>/jest/*.cjs"],
  moduleFileExtensions: ["js", "mjs", "cjs", "json"],
  transform: {},
};
