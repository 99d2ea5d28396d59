/** What the path of a profile may lead to, for help and messages. */
export const PROFILE_FILES = "a profile file, llm-d's EndpointPickerConfig or a policy bundle of BLIS";
