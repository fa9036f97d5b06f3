// The store and the controller, for every component.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Controller } from "../state/controller";
import type { AppState } from "../state/state";
import { useStore } from "../state/store";

export const AppContext = createContext<Controller | null>(null);

export function useApp(): Controller {
  const app = useContext(AppContext);
  if (!app) throw new Error("a component is outside the app");
  return app;
}

// Returns a part of the state; the component is rendered again when it changes.
export function useSelected<S>(select: (state: AppState) => S): S {
  return useStore(useApp().store, select);
}
