import { ADMIT, type AdmissionPolicy } from "./admission.ts";

/** Everything is admitted. */
export function alwaysAdmit(): AdmissionPolicy {
  return {
    name: "always-admit",
    holds: false,
    continues: false,
    check: () => ADMIT,
    admitted: () => {},
    ended: () => {},
    uses: () => [],
  };
}
