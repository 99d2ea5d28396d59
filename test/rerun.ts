import { eachAlone, type TestProcess } from "./processes.ts";

/** More than this that fail are no matter of chance. */
const RERUN_PROCESSES_MAX = 5;
const FAILED_TEST = /^test at (\S+\.ts):\d+:\d+$/gm;

interface Failed extends TestProcess {
  readonly output: string;
}

/**
 * What to run once more after everything else ended, one process at a time: what failed beside two other processes on two
 * cores and passes alone was short of time, and is reported by name so that it gets mended. A test that fails for another
 * reason fails again, since properties are tried on the same cases in every run. Nothing where too much failed.
 */
export function processesToRerun(failed: readonly Failed[]): TestProcess[] {
  const processes = failed.flatMap(({ files, isShared, output }) => {
    const named = [...new Set([...output.matchAll(FAILED_TEST)].map(([, file]) => file!))];
    // A failure in a suite that many files share names that suite's file, and a process that was killed names none.
    const isKnown = named.length > 0 && named.every((file) => files.includes(file));
    return isKnown ? eachAlone(named) : [{ files, isShared }];
  });
  return processes.length > RERUN_PROCESSES_MAX ? [] : processes;
}
