import { workerData } from "piscina";
import type { Setting } from "../candidate/candidate.ts";
import { type Job, type JobResults, perform } from "./job.ts";
import type { WorkerSetting } from "./job-pool.ts";
import { PackedWorkload } from "../recorded/packed-workload.ts";

/** The setting comes once per thread, the jobs one by one. */
const given = workerData as WorkerSetting;
const setting: Setting = { ...given.setting, workload: new PackedWorkload(given.columns) };

export default function done(job: Job): JobResults[Job["kind"]] {
  return perform(setting, job);
}
