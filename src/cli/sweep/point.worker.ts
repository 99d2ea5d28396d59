import { workerData } from "piscina";
import { runPoint } from "./run-point.ts";
import type { SweepCommandName, SweepPoint } from "./sweep-file.ts";

const { command } = workerData as { readonly command: SweepCommandName };

export default function runInThread(point: SweepPoint): Promise<string> {
  return runPoint(command, point);
}
