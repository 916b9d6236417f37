import { describePolicyFault, type ParsedPolicy } from '../../shared/config/policy.ts';
import { policyFromYaml } from '../../shared/config/policy-file.ts';
import type { PolicyFault } from '../../shared/config/policy-rules.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { readInputFile } from './input-file.ts';

/** The policy cannot be deployed. `message` has one line per fault: `file:line field value rule`. */
export class InvalidPolicyError extends Error {
  override readonly name = 'InvalidPolicyError';
  readonly code = 'policy-invalid';
  readonly faults: readonly PolicyFault[];
  constructor(faults: readonly PolicyFault[]) {
    super(faults.map(describePolicyFault).join('\n'));
    this.faults = faults;
  }
}

/** @throws InvalidPolicyError with every fault */
export function requirePolicy(parsed: ParsedPolicy): Policy {
  if (parsed.kind === 'ok') return parsed.policy;
  throw new InvalidPolicyError(parsed.faults);
}

/** @throws InvalidPolicyError with every fault; the file system's error when the file cannot be read */
export function readPolicyFile(path: string): Policy {
  const { text, name } = readInputFile(path);
  return requirePolicy(policyFromYaml(text, name));
}
