// Starts the app: its engine, its state from the address, and the page.

import { render } from "preact";

import { App } from "./app";
import { Engine } from "./engine/engine";
import { makeWorker } from "./engine/start";
import { AppContext } from "./parts/context";
import { followAddress, followFiles } from "./state/address";
import { Controller } from "./state/controller";
import { initialState } from "./state/state";
import { Store } from "./state/store";

const store = new Store(initialState());
const engine = new Engine(makeWorker(), navigator.hardwareConcurrency || 2);
const app = new Controller(store, engine);
const root = document.getElementById("app")!;
engine.warmUp();
followAddress(app);
followFiles(app);
root.replaceChildren();
render(<AppContext.Provider value={app}><App /></AppContext.Provider>, root);

// A page that was opened from a disk has no service worker, and needs none.
if ("serviceWorker" in navigator && location.protocol !== "file:") {
  navigator.serviceWorker.register("service-worker.js").catch((error: unknown) => console.warn("the page cannot be kept for offline use:", error));
}
