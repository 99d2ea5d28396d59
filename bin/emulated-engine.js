// The process of one emulated engine. As a command, it knows modules by their names before its code is loaded.
import { resolveKnownModules } from "./known-modules.js";

resolveKnownModules();
await import("../src/serve/endpoints/emulated-engine.worker.ts");
