/** What an event loop does for so long after a report is in no report: the profiler begins anew, which delays the rest. */
export const FORGOTTEN_MILLIS = 500;
