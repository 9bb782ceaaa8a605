// The script of the frame: it starts the worker, passes messages on, and ends a worker that is caught in a loop.
const source = document.getElementById("worker").textContent;
const silentSecondsMax = 4;
let worker;
let silentSeconds = 0;

function start() {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  worker = new Worker(address);
  URL.revokeObjectURL(address);
  silentSeconds = 0;
  worker.addEventListener("message", ({ data }) => {
    silentSeconds = 0;
    parent.postMessage({ programs: data }, "*");
  });
}

addEventListener("message", ({ source: from, data }) => {
  if (from === parent) worker.postMessage(data);
});
setInterval(() => {
  if (++silentSeconds < silentSecondsMax) return;
  worker.terminate();
  parent.postMessage({ stuck: true }, "*");
  start();
}, 1_000);
start();
