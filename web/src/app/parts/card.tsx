// A figure of the overview in its frame, and the states of a result that is computed apart.

import type { ComponentChildren } from "preact";

import { Message } from "../../components/name";
import type { Failure } from "../engine/protocol";
import type { Part, ViewName } from "../state/state";
import { useApp } from "./context";

interface CardProps {
  title: ComponentChildren;
  // The view that shows all of it.
  more?: ViewName;
  wide?: boolean;
  children: ComponentChildren;
}

export function Card({ title, more, wide, children }: CardProps) {
  const app = useApp();
  return (
    <div class={wide ? "card wide" : "card"}>
      <div class="card-head">
        <h3>{title}</h3>
        {more && <button type="button" class="link" onClick={() => app.store.set({ view: more })}>All</button>}
      </div>
      {children}
    </div>
  );
}

export function FailureNote({ failure, what }: { failure: Failure; what?: string }) {
  return (
    <div class="failure" role="alert">
      {what && <p class="what"><Message text={what} /></p>}
      {failure.message.split("\n").map((line, i) => <p key={i}><Message text={line} /></p>)}
      {failure.hint && <p class="hint"><b>Hint:</b> <Message text={failure.hint} /></p>}
    </div>
  );
}

interface PartProps<T> {
  part: Part<T>;
  // What is computed, such as `the ranking`.
  what: string;
  run: () => void;
  cancel: () => void;
  children: (value: T) => ComponentChildren;
}

// Shows a result, dimmed while it is of other settings.
export function PartFrame<T>({ part, what, run, cancel, children }: PartProps<T>) {
  return (
    <div class={part.stale && part.value ? "part stale" : "part"} aria-busy={part.running}>
      <PartStatus part={part} what={what} run={run} cancel={cancel} />
      {part.failure && <FailureNote failure={part.failure} />}
      {part.value && <div class="part-body">{children(part.value)}</div>}
    </div>
  );
}

function PartStatus<T>({ part, what, run, cancel }: Omit<PartProps<T>, "children">) {
  if (part.running) {
    const [done, total] = part.progress ?? [0, 0];
    return (
      <div class="status" role="status">
        <progress aria-label={`Computing ${what}`} {...(total > 0 ? { value: done, max: total } : {})} />
        <span>{total > 0 ? `${done} of ${total}` : `Computing ${what} …`}</span>
        <button type="button" onClick={cancel}>Cancel</button>
      </div>
    );
  }
  if (part.value && !part.stale) return null;
  return (
    <div class="status" role="status">
      <span>{part.value ? "These numbers are of other settings." : `No result of ${what} yet.`}</span>
      <button type="button" onClick={run}>Compute {what}</button>
    </div>
  );
}
