import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { familyHead, promFloat } from "./exposition.ts";

const GC = ["collected", "uncollectable"] as const;
const GENERATIONS = ["0", "1", "2"];

/** The families of Python's client about its own process: of this process where they have a meaning here. */
export function renderProcess(startedAtSeconds: number): string {
  const residentBytes = process.memoryUsage.rss();
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  const gc = GC.map((word) => {
    const name = `python_gc_objects_${word}_total`;
    const help = word === "collected" ? "Objects collected during gc" : "Uncollectable objects found during GC";
    return familyHead(name, "counter", help) + generations(name);
  });
  const collections = "python_gc_collections_total";
  const gauge = (name: string, help: string, value: number) => sample(name, "gauge", help, value);
  return [
    ...gc,
    familyHead(collections, "counter", "Number of times this generation was collected") + generations(collections),
    familyHead("python_info", "gauge", "Python platform information"),
    'python_info{implementation="CPython",major="3",minor="11",patchlevel="7",version="3.11.7"} 1.0\n',
    gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", residentBytes),
    gauge("process_resident_memory_bytes", "Resident memory size in bytes.", residentBytes),
    gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", startedAtSeconds),
    sample(
      "process_cpu_seconds_total",
      "counter",
      "Total user and system CPU time spent in seconds.",
      (userCPUTime + systemCPUTime) / MICROS_PER_SECOND,
    ),
    gauge("process_open_fds", "Number of open file descriptors.", process.getActiveResourcesInfo().length),
    gauge("process_max_fds", "Maximum number of open file descriptors.", 65_536),
  ].join("");
}

function generations(name: string): string {
  return GENERATIONS.map((generation) => `${name}{generation="${generation}"} 0.0\n`).join("");
}

function sample(name: string, type: "gauge" | "counter", help: string, value: number): string {
  return `${familyHead(name, type, help)}${name} ${promFloat(value)}\n`;
}
