// The key to the colours of a stack of samples.

import { Name } from "./name";

export function Legend({ order, colours }: { order: readonly string[]; colours: ReadonlyMap<string, string> }) {
  return (
    <ul class="legend" aria-label="Samples">
      {[...order].reverse().map((sample, i) => <li key={i}><span class="key" style={{ background: colours.get(sample) }} aria-hidden="true" /><Name text={sample} /></li>)}
      <li><span class="key hatched" aria-hidden="true" />uncertainty</li>
      <li><span class="key point" aria-hidden="true" />data</li>
    </ul>
  );
}
