/**
 * Environment variables of the heartbeat. They are validated without the schema library of environment.ts, which would
 * be a tenth of this bundle, and the heartbeat is the most frequent request. Of the policy it needs two times per
 * profile.
 */

import { ConfigError, type ConfigFault } from '../../shared/config/config-error.ts';
import { STATIC_TOKENS_RULE, type StaticTokenConfig, staticTokensIn } from '../../shared/config/static-tokens.ts';
import type { BeatTimes } from '../../shared/fleet/nodes/node-profile.ts';

/** Filled by cdk/, where a missing variable is a compile error. */
export type HeartbeatEnvironment = {
  HEALTH_TABLE: string;
  CONTROL_TABLE: string;
  CLUSTER_ID: string;
  STATIC_TOKENS: string;
  /** JSON of BeatTimes. */
  BEAT_TIMES: string;
  POWERTOOLS_SERVICE_NAME: string;
  POWERTOOLS_METRICS_NAMESPACE: string;
  POWERTOOLS_LOG_LEVEL: 'DEBUG' | 'INFO' | 'WARN' | 'ERROR';
};

export interface HeartbeatConfig {
  readonly clusterId: string;
  /** From control only the keys of nodes and probes are read. */
  readonly tables: { readonly health: string; readonly control: string };
  readonly staticTokens: readonly StaticTokenConfig[];
  readonly beatTimes: BeatTimes;
}

const BEAT_TIMES_RULE = 'must be a JSON object of interval and duration, in whole seconds, by profile';

/** @throws ConfigError with every fault */
export function loadHeartbeatConfig(environment: Readonly<Record<string, string | undefined>>): HeartbeatConfig {
  const faults: ConfigFault[] = [];
  const text = (variable: keyof HeartbeatEnvironment): string => {
    const value = environment[variable];
    if (value === undefined) faults.push({ variable, rule: 'is missing' });
    else if (value === '') faults.push({ variable, rule: 'must not be empty' });
    return value ?? '';
  };
  const clusterId = text('CLUSTER_ID');
  const health = text('HEALTH_TABLE');
  const control = text('CONTROL_TABLE');
  const tokensText = text('STATIC_TOKENS');
  const staticTokens = tokensText === '' ? [] : staticTokensOf(tokensText);
  if (staticTokens === undefined) faults.push({ variable: 'STATIC_TOKENS', rule: STATIC_TOKENS_RULE });
  const beatTimes = beatTimesIn(text('BEAT_TIMES'));
  if (beatTimes === undefined) faults.push({ variable: 'BEAT_TIMES', rule: BEAT_TIMES_RULE });
  if (faults.length > 0 || staticTokens === undefined || beatTimes === undefined) throw new ConfigError(faults);
  return Object.freeze({
    clusterId,
    tables: Object.freeze({ health, control }),
    staticTokens,
    beatTimes,
  });
}

/** An absent variable is a fault of its own, and no fault of the JSON. */
function beatTimesIn(json: string): BeatTimes | undefined {
  if (json === '') return {};
  try {
    const times = JSON.parse(json) as unknown;
    if (typeof times !== 'object' || times === null || Array.isArray(times)) return undefined;
    const isPair = (value: unknown): boolean =>
      Array.isArray(value) && value.length === 2 && value.every((each) => Number.isInteger(each) && each > 0);
    return Object.values(times).every(isPair) ? (times as BeatTimes) : undefined;
  } catch {
    return undefined;
  }
}

function staticTokensOf(json: string): readonly StaticTokenConfig[] | undefined {
  try {
    return staticTokensIn(JSON.parse(json));
  } catch {
    return undefined;
  }
}
