// A value that components follow.

import { useEffect, useRef, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(change: Partial<T>): void {
    this.value = { ...this.value, ...change };
    for (const listener of this.listeners) listener();
  }

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

// Returns what `select` takes from a store; the component is rendered again when that changes.
export function useStore<T, S>(store: Store<T>, select: (value: T) => S): S {
  const selected = select(store.get());
  const last = useRef({ select, selected });
  last.current = { select, selected };
  const [, render] = useState(0);
  useEffect(() => {
    const check = () => {
      const { select: pick, selected: before } = last.current;
      if (!Object.is(pick(store.get()), before)) render((n) => n + 1);
    };
    check();
    return store.follow(check);
  }, [store]);
  return selected;
}
