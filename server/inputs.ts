/** The files that the options of serve name. */
import { readFileSync } from 'node:fs';
import { describePolicyFault } from '../shared/config/policy.ts';
import { policyFromYaml } from '../shared/config/policy-file.ts';
import { STATIC_TOKENS_RULE, type StaticTokenConfig, staticTokensIn } from '../shared/config/static-tokens.ts';
import { defaultPolicy, type Policy } from '../shared/fleet/policy.ts';
import { StartError } from '../shared/host/start-error.ts';
import { isLoopback, type ServeOptions } from './options.ts';

/** Users in place of the generated ones, which are for programs on this machine. @throws StartError */
export function usersOf({ tokensFile, host }: ServeOptions): readonly StaticTokenConfig[] | undefined {
  if (tokensFile !== undefined) return tokensIn(tokensFile);
  return isLoopback(host) ? undefined : [];
}

/** @throws StartError that names the rule */
function tokensIn(file: string): readonly StaticTokenConfig[] {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new StartError(`--tokens: ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  const tokens = staticTokensIn(document);
  if (tokens === undefined || tokens.length === 0) throw new StartError(`--tokens: ${file} ${STATIC_TOKENS_RULE}`);
  return tokens;
}

/** @throws StartError with a line for each fault: file:line, field, value and rule */
export function policyOf(file: string | undefined): Policy {
  if (file === undefined) return defaultPolicy;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`--policy: ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  const parsed = policyFromYaml(text, file);
  if (parsed.kind === 'ok') return parsed.policy;
  throw new StartError(parsed.faults.map(describePolicyFault).join('\n'));
}
