/**
 * What the heartbeat reads from its environment. Written out by hand: the schema library of environment.ts would be a
 * tenth of this bundle, which is loaded for the most frequent request there is. It needs no policy.
 */
import { ConfigError, type ConfigFault } from './config-error.ts';

/** What cdk/ fills; a forgotten variable is a compile error there. */
export type HeartbeatEnvironment = {
  HEALTH_TABLE: string;
  CONTROL_TABLE: string;
  CLUSTER_ID: string;
  STATIC_TOKENS: string;
  POWERTOOLS_SERVICE_NAME: string;
  POWERTOOLS_METRICS_NAMESPACE: string;
  POWERTOOLS_LOG_LEVEL: 'DEBUG' | 'INFO' | 'WARN' | 'ERROR';
};

export interface HeartbeatConfig {
  readonly clusterId: string;
  /** Of control only the keys of nodes and probes are read. */
  readonly tables: { readonly health: string; readonly control: string };
  readonly staticTokens: readonly {
    readonly sha256: string;
    readonly user: string;
    readonly groups: readonly string[];
  }[];
}

const TOKENS_RULE = 'must be a JSON list of {sha256: 64 lower-case hex digits, user, groups: [text]}';

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
  if (staticTokens === undefined) faults.push({ variable: 'STATIC_TOKENS', rule: TOKENS_RULE });
  if (faults.length > 0 || staticTokens === undefined) throw new ConfigError(faults);
  return Object.freeze({
    clusterId,
    tables: Object.freeze({ health, control }),
    staticTokens: Object.freeze(staticTokens),
  });
}

function staticTokensOf(json: string): HeartbeatConfig['staticTokens'] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  return Array.isArray(value) && value.every(isStaticToken) ? value : undefined;
}

function isStaticToken(value: unknown): value is HeartbeatConfig['staticTokens'][number] {
  if (typeof value !== 'object' || value === null) return false;
  const { sha256, user, groups, ...unknown } = value as Record<string, unknown>;
  return (
    Object.keys(unknown).length === 0 &&
    typeof sha256 === 'string' &&
    /^[0-9a-f]{64}$/.test(sha256) &&
    typeof user === 'string' &&
    user !== '' &&
    Array.isArray(groups) &&
    groups.every((group) => typeof group === 'string' && group !== '')
  );
}
