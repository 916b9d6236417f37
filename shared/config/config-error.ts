/** One variable that is missing or wrong. Values are not repeated: they may be secret. */
export interface ConfigFault {
  readonly variable: string;
  readonly rule: string;
}

/** The environment does not fit the schema. Lists every fault, because a deployment should need one correction. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly code = 'config-invalid';
  readonly faults: readonly ConfigFault[];
  constructor(faults: readonly ConfigFault[]) {
    super(`environment: ${faults.map((fault) => `${fault.variable} ${fault.rule}`).join('; ')}`);
    this.faults = faults;
  }
}
