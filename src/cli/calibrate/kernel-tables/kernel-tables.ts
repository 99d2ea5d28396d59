import { ConfigError } from "#config/config-error.ts";
import { AI_CONFIGURATOR } from "./ai-configurator.ts";
import { fileIn } from "./csv-table.ts";
import type { KernelForm, KernelTables, KernelTarget } from "./kernel-form.ts";
import { SERVING_SIM } from "./serving-sim.ts";
import { VIDUR } from "./vidur.ts";

const FORMS: readonly KernelForm[] = [SERVING_SIM, VIDUR, AI_CONFIGURATOR];

/** Of whichever form the folders hold together. Throws ConfigError. */
export function readKernelTables(folders: readonly string[], target: KernelTarget): KernelTables {
  const form = FORMS.find(({ mark }) => fileIn(folders, mark) !== undefined);
  if (form !== undefined) return form.read(folders, target);
  throw new ConfigError([
    `--from-kernels: ${folders.join(", ")}: expected ${kernelForms()}; got none of ` +
      FORMS.map(({ mark }) => mark[0]).join(", "),
  ]);
}

/** Every form with its files. */
export function kernelForms(): string {
  return FORMS.map(({ name, files }) => `${name}'s ${files}`).join("; or ");
}
