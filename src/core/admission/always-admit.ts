import { ADMIT, type AdmissionPolicy } from "./admission.ts";

/** Everything is admitted. */
export function alwaysAdmit(): AdmissionPolicy {
  return { name: "always-admit", decide: () => ADMIT, ended: () => {} };
}
