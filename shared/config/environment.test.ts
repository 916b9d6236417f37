import { describe, expect, it } from 'vitest';
import { type HeartbeatEnvironment, loadHeartbeatConfig } from '../../functions/heartbeat/environment.ts';
import { defaultPolicy } from '../fleet/policy.ts';
import { ConfigError } from './config-error.ts';
import {
  type ApiEnvironment,
  apiConfig,
  type CloudNodeEnvironment,
  cloudNodeConfig,
  loadConfig,
  type MonitorEnvironment,
  monitorConfig,
  streamConfig,
} from './environment.ts';

const token = { sha256: 'ab'.repeat(32), user: 'admin', groups: ['system:masters'] };

const heartbeat: HeartbeatEnvironment = {
  CLUSTER_ID: 'edge',
  HEALTH_TABLE: 'edge-health',
  CONTROL_TABLE: 'edge-control',
  STATIC_TOKENS: JSON.stringify([token]),
  BEAT_TIMES: '{"default":[10,40],"cell":[60,180]}',
  POWERTOOLS_SERVICE_NAME: 'heartbeat',
  POWERTOOLS_METRICS_NAMESPACE: 'Nodekeeper',
  POWERTOOLS_LOG_LEVEL: 'WARN',
};
const { BEAT_TIMES: _, ...common } = heartbeat;
const api: ApiEnvironment = {
  ...common,
  POWERTOOLS_SERVICE_NAME: 'api',
  NODEKEEPER_POLICY: JSON.stringify(defaultPolicy),
  OBJECTS_TABLE: 'edge-objects',
  AUDIT_LOG_GROUP: 'audit',
  AUDIT_LOG_STREAM: 'api',
};

const faultsOf = (load: () => unknown): ConfigError['faults'] => {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  return [];
};

describe('config', () => {
  it('of heartbeat has what a beat needs, typed and frozen', () => {
    const config = loadHeartbeatConfig({ ...heartbeat, HOME: '/root' });
    expect(config).toEqual({
      clusterId: 'edge',
      tables: { health: 'edge-health', control: 'edge-control' },
      staticTokens: [token],
      beatTimes: { default: [10, 40], cell: [60, 180] },
    });
    for (const part of [config, config.tables, config.staticTokens]) expect(Object.isFrozen(part)).toBe(true);
  });

  it('of api and the controllers has all tables; the controllers know no tokens', () => {
    const tables = { health: 'edge-health', objects: 'edge-objects', control: 'edge-control' };
    expect(loadConfig(apiConfig, api)).toMatchObject({ tables, staticTokens: [token] });
    const monitor: MonitorEnvironment = {
      ...api,
      PROBE_URL: 'https://cluster',
      TICK_QUEUE_URL: 'https://sqs/ticks',
      PART_QUEUE_URL: 'https://sqs/parts',
      WAKE_FUNCTIONS: '{"evictor":"edge-evictor"}',
    };
    expect(loadConfig(monitorConfig, monitor)).toMatchObject({
      tickQueueUrl: 'https://sqs/ticks',
      partQueueUrl: 'https://sqs/parts',
      wakeFunctions: { evictor: 'edge-evictor' },
    });
    expect(faultsOf(() => loadConfig(monitorConfig, { ...monitor, WAKE_FUNCTIONS: '[]' }))).toHaveLength(1);
    for (const schema of [streamConfig, monitorConfig]) {
      expect(loadConfig(schema, monitor).tables).toEqual(tables);
      expect(loadConfig(schema, monitor)).not.toHaveProperty('staticTokens');
    }
  });

  it('of functions that call EC2 names the account, and the region that Lambda sets', () => {
    const environment: CloudNodeEnvironment = { ...api, ACCOUNT_ID: '123456789012' };
    expect(loadConfig(cloudNodeConfig, { ...environment, AWS_REGION: 'us-east-1' })).toMatchObject({
      accountId: '123456789012',
      region: 'us-east-1',
    });
    // Without either a silence of EC2 would mean nothing.
    expect(faultsOf(() => loadConfig(cloudNodeConfig, { ...api })).map(({ variable }) => variable)).toEqual([
      'ACCOUNT_ID',
      'AWS_REGION',
    ]);
  });

  it('with a forgotten variable does not compile where it is filled', () => {
    // @ts-expect-error OBJECTS_TABLE, CONTROL_TABLE and NODEKEEPER_POLICY are missing
    const forgotten: ApiEnvironment = heartbeat;
    expect(() => loadConfig(apiConfig, forgotten)).toThrow(ConfigError);
  });

  it('names every missing variable at once', () => {
    const faults = faultsOf(() => loadConfig(apiConfig, {}));
    expect(faults.map((fault) => fault.variable).sort()).toEqual(Object.keys(api).sort());
    for (const fault of faults.filter(({ variable }) => variable !== 'POWERTOOLS_LOG_LEVEL')) {
      expect(fault.rule).toBe('is missing');
    }
    expect(() => loadConfig(apiConfig, {})).toThrow(/CONTROL_TABLE is missing/);
  });

  it('reports each fault of the policy', () => {
    const policy = JSON.stringify({ ...defaultPolicy, watchMode: 'poll', nodeMonitorPeriodSeconds: 7 });
    expect(faultsOf(() => loadConfig(apiConfig, { ...api, NODEKEEPER_POLICY: policy }))).toEqual([
      {
        variable: 'NODEKEEPER_POLICY',
        rule: 'nodeMonitorPeriodSeconds 7 must be one of 5, 10, 15, 20, 30, 60 (seconds)',
      },
      { variable: 'NODEKEEPER_POLICY', rule: 'watchMode "poll" must be one of stream, longPoll' },
    ]);
  });

  it.each([
    ['NODEKEEPER_POLICY', '{', 'must be JSON'],
    ['CLUSTER_ID', '', 'must not be empty'],
    ['POWERTOOLS_LOG_LEVEL', 'LOUD', 'must be one of DEBUG, INFO, WARN, ERROR'],
  ])('refuses %s=%j', (variable, value, rule) => {
    expect(faultsOf(() => loadConfig(apiConfig, { ...api, [variable]: value }))).toEqual([{ variable, rule }]);
  });

  it('accepts an empty list of tokens', () => {
    expect(loadConfig(apiConfig, { ...api, STATIC_TOKENS: '[]' }).staticTokens).toEqual([]);
    expect(loadHeartbeatConfig({ ...heartbeat, STATIC_TOKENS: '[]' }).staticTokens).toEqual([]);
  });

  it.each([
    '',
    '{}',
    'x',
    JSON.stringify([{ ...token, sha256: 'AB'.repeat(32) }]),
    JSON.stringify([{ ...token, sha256: 'secret-itself' }]),
    JSON.stringify([{ ...token, user: '' }]),
    JSON.stringify([{ ...token, group: 'x' }]),
  ])('refuses the token list %j without repeating it', (value) => {
    const loaders = [
      () => loadConfig(apiConfig, { ...api, STATIC_TOKENS: value }),
      () => loadHeartbeatConfig({ ...heartbeat, STATIC_TOKENS: value }),
    ];
    for (const load of loaders) {
      const faults = faultsOf(load);
      expect(faults.map((fault) => fault.variable)).toEqual(['STATIC_TOKENS']);
      expect(JSON.stringify(faults)).not.toContain('secret-itself');
    }
  });
});
