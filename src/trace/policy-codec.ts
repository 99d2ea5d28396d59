import type { PolicyChanged } from "#core/input.ts";
import { decodeAdmission } from "./admission-codec.ts";
import { type Fields, expected } from "./fields.ts";
import { decodeProfiles } from "./profile-codec.ts";

/** The inside of a JSON object. */
export function encodePolicy({ version, source, defaultProfile, profiles, admission }: PolicyChanged): string {
  return JSON.stringify({ version, source, defaultProfile, profiles, admission }).slice(1, -1);
}

export function decodePolicy(at: number, fields: Fields): PolicyChanged {
  const profiles = decodeProfiles(fields.object("profiles"));
  const defaultProfile = fields.string("defaultProfile");
  if (!Object.hasOwn(profiles, defaultProfile)) {
    throw expected(fields.pathOf("defaultProfile"), "the name of one of its profiles", defaultProfile);
  }
  return {
    kind: "policy-changed",
    at,
    version: fields.integer("version", 1),
    source: fields.string("source"),
    defaultProfile,
    profiles,
    ...(fields.has("admission") && { admission: decodeAdmission(fields.object("admission")) }),
  };
}
