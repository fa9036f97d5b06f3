// Draws one after the other in small slices, so that the page answers in between.

// The longest slice in milliseconds; a drawing that has begun is finished.
const SLICE = 10;

let waiting: (() => void)[] = [];
let isPosted = false;
const channel = new MessageChannel();
channel.port1.onmessage = runSlice;

// Draws soon; returns what takes it back.
export function schedule(draw: () => void): () => void {
  waiting.push(draw);
  post();
  return () => {
    waiting = waiting.filter((one) => one !== draw);
  };
}

function post(): void {
  if (isPosted || waiting.length === 0) return;
  isPosted = true;
  channel.port2.postMessage(null);
}

function runSlice(): void {
  isPosted = false;
  const begun = performance.now();
  while (waiting.length > 0 && performance.now() - begun < SLICE) waiting.shift()!();
  post();
}
