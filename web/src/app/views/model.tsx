// What the model is made of, as a tree, and what its check found.

import { useMemo, useState } from "preact/hooks";

import { Unfold } from "../../components/chart";
import { Name } from "../../components/name";
import type { ReportData } from "../../documents";
import { matcher } from "../../numbers/pattern";
import { counted } from "../../numbers/words";
import { Model } from "../../report/sections/model";
import { Provenance } from "../../report/sections/provenance";
import type { Tree, TreeChannel, TreeSample } from "../engine/documents";
import { useSelected } from "../parts/context";
import { VirtualList } from "../parts/virtual";

export function ModelView({ data }: { data: ReportData }) {
  const tree = useSelected((state) => state.tree);
  return (
    <>
      {tree && <TreeSection tree={tree} />}
      <Model data={data} />
      <Provenance data={data} />
    </>
  );
}

function TreeSection({ tree }: { tree: Tree }) {
  const [filter, setFilter] = useState("");
  const matches = useMemo(() => matcher(filter), [filter]);
  const shown = useMemo(() => (filter.trim() === "" ? tree.channels : tree.channels.flatMap((channel) => narrowed(channel, matches))), [tree, filter, matches]);
  return (
    <section aria-labelledby="tree-title">
      <h2 id="tree-title">Channels, samples, systematics</h2>
      <div class="local">
        <label class="filter">Filter <input type="search" value={filter} placeholder="JES_* ttbar" autocomplete="off" spellcheck={false} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
        <span>{shown.length} of {tree.channels.length} channels</span>
      </div>
      <div class="tree">{shown.map((channel, i) => <Channel key={i} channel={channel} />)}</div>
    </section>
  );
}

// The parts of a channel with a name that matches; nothing if there are none.
function narrowed(channel: TreeChannel, matches: (name: string) => boolean): TreeChannel[] {
  if (matches(channel.name)) return [channel];
  const samples = channel.samples.flatMap((sample): TreeSample[] => {
    if (matches(sample.name)) return [sample];
    const modifiers = sample.modifiers.filter((modifier) => matches(modifier.name) || matches(modifier.type));
    return modifiers.length > 0 ? [{ ...sample, modifiers }] : [];
  });
  return samples.length > 0 ? [{ ...channel, samples }] : [];
}

function Channel({ channel }: { channel: TreeChannel }) {
  return (
    <Unfold summary={<><Name text={channel.name} /> <small>{counted(channel.n_bins, "bin")}, {counted(channel.samples.length, "sample")}</small></>}>
      {() => channel.samples.map((sample, i) => <Sample key={i} sample={sample} />)}
    </Unfold>
  );
}

function Sample({ sample }: { sample: TreeSample }) {
  const kinds = useMemo(() => [...new Set(sample.modifiers.map((modifier) => modifier.type))].map((type) => counted(sample.modifiers.filter((one) => one.type === type).length, type)).join(", "), [sample]);
  return (
    <Unfold summary={<><Name text={sample.name} /> <small>{kinds}</small></>}>
      {() => <VirtualList label="Modifiers" rows={sample.modifiers} row={24} most={12} render={({ name, type }) => <span class="modifier"><code>{type}</code> <Name text={name} /></span>} />}
    </Unfold>
  );
}
