import { parentPort, workerData } from "node:worker_threads";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import type { WorkerSetting } from "#shadow/job/job-pool.ts";
import { PackedWorkload } from "#shadow/recorded/packed-workload.ts";
import { evaluate, type Ground } from "./evaluation.ts";

/** One evaluation, in a thread of its own that may be ended at any time. */
const given = workerData as WorkerSetting & { readonly ground: Ground; readonly candidate: Candidate };
const setting: Setting = { ...given.setting, workload: new PackedWorkload(given.columns) };
parentPort?.postMessage(evaluate(setting, given.ground, given.candidate));
