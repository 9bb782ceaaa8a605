// Loaded before a server (`--import`): its steady clock runs faster than real time.
const now = performance.now.bind(performance);
performance.now = () => now() * Number(process.env.TEST_CLOCK_RATE);
