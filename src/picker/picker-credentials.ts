import type { SecureContextOptions } from "node:tls";
import { ServerCredentials } from "@grpc/grpc-js";

/** A certificate with its key, and who is notified when others take their place. */
export interface PickerTls {
  readonly context: SecureContextOptions;
  readonly listen: (changed: (context: SecureContextOptions) => void) => void;
}

/** TLS whose certificate may change: new connections get the new one, those that are open go on. */
export class PickerCredentials extends ServerCredentials {
  constructor({ context, listen }: PickerTls) {
    super({}, context);
    listen((changed) => this.updateSecureContextOptions(changed));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
