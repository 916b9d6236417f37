import { describe, expect, it } from 'vitest';
import { defaultPolicy, type Policy } from '../fleet/policy.ts';
import { describePolicyFault, type ParsedPolicy, parsePolicy, policyFields } from './policy.ts';
import type { PolicyFault } from './policy-rules.ts';

const faultsOf = (parsed: ParsedPolicy): readonly PolicyFault[] => (parsed.kind === 'faults' ? parsed.faults : []);
const faultyFields = (input: unknown): readonly string[] => faultsOf(parsePolicy(input)).map((fault) => fault.field);
const accepts = (input: Partial<Policy>) => expect(faultsOf(parsePolicy(input))).toEqual([]);

describe('a policy', () => {
  it('of nothing is the default policy, frozen', () => {
    const parsed = parsePolicy({});
    expect(parsed).toEqual({ kind: 'ok', policy: defaultPolicy });
    if (parsed.kind !== 'ok') return;
    expect(Object.isFrozen(parsed.policy)).toBe(true);
    expect(Object.isFrozen(parsed.policy.clusterCIDRs)).toBe(true);
  });

  it('knows every field of the type', () => {
    expect([...policyFields].sort()).toEqual(Object.keys(defaultPolicy).sort());
  });

  it('survives JSON, as functions receive it', () => {
    const parsed = parsePolicy(JSON.parse(JSON.stringify(defaultPolicy)));
    expect(parsed).toEqual({ kind: 'ok', policy: defaultPolicy });
  });

  it.each([null, undefined, 5, 'text', ['a']])('is a map, not %j', (input) => {
    expect(parsePolicy(input)).toEqual({
      kind: 'faults',
      faults: [{ field: '', value: input, rule: 'must be a map of policy fields' }],
    });
  });

  it('reports all faults at once: unknown fields, ranges and relations', () => {
    const input = {
      nodeMonitorPeriodSecond: 10,
      unhealthyZoneThreshold: 0,
      watchMode: 'poll',
      leaseDurationSeconds: 29,
    };
    expect(faultyFields(input)).toEqual([
      'nodeMonitorPeriodSecond',
      'unhealthyZoneThreshold',
      'watchMode',
      'leaseDurationSeconds',
    ]);
  });

  it.each([
    ['nodeMonitorPeriodSecond', 'nodeMonitorPeriodSeconds'],
    ['evictionRatePerSecond', 'nodeEvictionRatePerSecond'],
    ['podEvictionTimeout', 'podEvictionTimeoutSeconds'],
    ['clusterCidrs', 'clusterCIDRs'],
  ])('refuses the unknown field %s and names %s', (given, nearest) => {
    const [fault] = faultsOf(parsePolicy({ [given]: 1 }));
    expect(fault).toEqual({ field: given, value: 1, rule: `is no policy field; the nearest is ${nearest}` });
  });

  it('refuses names that every object inherits', () => {
    expect(faultyFields(JSON.parse('{"constructor": 1, "__proto__": 2}'))).toEqual(['constructor', '__proto__']);
  });

  it.each<[keyof Policy, readonly unknown[], readonly unknown[]]>([
    ['nodeMonitorPeriodSeconds', [5, 10, 15, 20], [0, 1, 7, 25, 61, '5', Number.NaN]],
    ['witnessGraceSeconds', [0, 1, 8, 40], [-1, 1.5, 41, null]],
    ['nodeStartupGracePeriodSeconds', [5, 60, 3_600], [0, -1, 1.5, Number.POSITIVE_INFINITY, null]],
    ['nodeEvictionRatePerSecond', [0, 0.01, 1, 1_000], [-0.1, 1_001, '0.1', Number.NaN]],
    ['secondaryNodeEvictionRatePerSecond', [0, 0.01], [-1]],
    ['largeClusterSizeThreshold', [0, 50], [-1, 0.5]],
    ['unhealthyZoneThreshold', [0.01, 0.55, 1], [0, 1.01, -1, '0.5']],
    ['podEvictionTimeoutSeconds', [0, 300], [-1, 0.5]],
    ['fullDisruption', ['normal', 'hold'], ['never', true]],
    ['ingestGate', ['on', 'off'], [true, false, 'yes']],
    ['tickGate', ['on', 'off'], [true]],
    ['automaticOutOfService', ['off', 'stopped', 'terminated'], ['on', false]],
    ['automaticOutOfServiceAfterSeconds', [0, 300], [-1]],
    ['cloudYoungInstanceSeconds', [0, 300], [-1]],
    ['forceDetachTimeoutSeconds', [0, 360], [-1]],
    ['disableForceDetachOnTimeout', [true, false], ['false', 0]],
    ['podGcPeriodSeconds', [1, 15, 20, 60], [0, -20, 7, 25, 1.5, 120, '20']],
    ['orphanQuarantineSeconds', [0, 40], [-1]],
    ['unenforcedKinds', ['warn', 'refuse'], ['Warn', true, '']],
    ['concurrentWatchesMax', [1, 100, 1_000], [0, -1, 1_001, 1.5, '3']],
    ['pendingPodAlarmSeconds', [60, 300, 3_600], [59, 0, 90.5, '300']],
    ['workloadShortageAlarmSeconds', [60, 1_800], [59, 0, 90.5, '300']],
    ['watchQuietSeconds', [5, 300, 900], [4, 901, 7.5]],
    ['nodesMarkedPerTickMax', [0, 300, 100_000], [-1, 100_001, 7.5]],
    ['nodesQueuedPerZoneMax', [1, 200, 100_000], [0, 100_001, 7.5]],
    ['flapThreshold', [0, 1, 3, 5], [-1, 6, 2.5, '3', null]],
    ['flapWindowSeconds', [60, 3_600, 86_400], [59, 0, 86_401, 90.5, '3600']],
    ['flapStableSeconds', [15, 600, 86_400], [14, 86_401, 17.5]],
    ['flapEffect', ['NoSchedule', 'PreferNoSchedule'], ['NoExecute', 'noSchedule', true]],
    ['terminatedPodGcThreshold', [0, 12_500], [-1, 1.5]],
    [
      'clusterCIDRs',
      [[], ['10.0.0.0/16'], ['fd00::/52', '10.0.0.0/16']],
      ['10.0.0.0/16', ['10.0.0.0'], ['10.0.0.0/33']],
    ],
    [
      'clusterCIDRs',
      [[]],
      [
        ['10.0.0.0/16', '10.1.0.0/16'],
        ['10.0.0.0/16', 'fd00::/52', 'fd01::/52'],
      ],
    ],
    ['serviceClusterIPRanges', [['10.96.0.0/12'], ['fd00:1::/108']], [[5], ['10.96.0.0/x']]],
    ['nodeCIDRMaskSizeIPv4', [1, 24, 32], [0, 33, 24.5]],
    ['nodeCIDRMaskSizeIPv6', [1, 64, 128], [0, 129]],
    ['watchMode', ['stream', 'longPoll'], ['Stream']],
  ])('%s keeps its range', (field, right, wrong) => {
    for (const value of right) expect(faultyFields({ [field]: value }), JSON.stringify(value)).toEqual([]);
    for (const value of wrong) expect(faultyFields({ [field]: value }), JSON.stringify(value)).toEqual([field]);
  });

  it('needs a stable time of three periods for flapping nodes', () => {
    accepts({ nodeMonitorPeriodSeconds: 20, flapStableSeconds: 60 });
    const [fault] = faultsOf(parsePolicy({ nodeMonitorPeriodSeconds: 20, flapStableSeconds: 59 }));
    expect(describePolicyFault(fault!)).toBe(
      'flapStableSeconds 59 must be at least 3 × nodeMonitorPeriodSeconds, because a later tick than that of the mark ' +
        'begins flapping (nodeMonitorPeriodSeconds is 20)',
    );
    const [tooMany] = faultsOf(parsePolicy({ flapThreshold: 6 }));
    expect(describePolicyFault(tooMany!)).toBe('flapThreshold 6 must be a whole number of marks, 0 (off) to 5');
  });

  it('needs a grace of two beats and two periods', () => {
    accepts({ beatIntervalSeconds: 9, nodeMonitorGracePeriodSeconds: 18 });
    expect(faultyFields({ nodeMonitorGracePeriodSeconds: 19 })).toEqual(['nodeMonitorGracePeriodSeconds']);
    accepts({ nodeMonitorPeriodSeconds: 20, nodeMonitorGracePeriodSeconds: 40 });
    const [fault] = faultsOf(parsePolicy({ nodeMonitorPeriodSeconds: 30, nodeMonitorGracePeriodSeconds: 40 }));
    expect(fault).toEqual({
      field: 'nodeMonitorGracePeriodSeconds',
      value: 40,
      rule: 'must be at least 2 × nodeMonitorPeriodSeconds (nodeMonitorPeriodSeconds is 30)',
      other: 'nodeMonitorPeriodSeconds',
    });
  });

  it('needs a grace in which a relay and a direct request may hang, where machines use relays', () => {
    accepts({ nodeMonitorGracePeriodSeconds: 23 });
    accepts({ beatIntervalSeconds: 13, nodeMonitorGracePeriodSeconds: 26 });
    const [fault, ...others] = faultsOf(parsePolicy({ nodeMonitorGracePeriodSeconds: 22 }));
    expect(others).toEqual([]);
    expect(describePolicyFault(fault!)).toBe(
      'nodeMonitorGracePeriodSeconds 22 must be at least 1.04 × beatIntervalSeconds + 11.8, because a relay and a direct ' +
        'request that hang must not mark a node (intervals of 10 s and more) (beatIntervalSeconds is 10)',
    );
  });

  it('needs a startup grace of one period', () => {
    accepts({ nodeStartupGracePeriodSeconds: 5 });
    expect(faultyFields({ nodeStartupGracePeriodSeconds: 4 })).toEqual(['nodeStartupGracePeriodSeconds']);
  });

  it('needs a lease that outlasts three beats', () => {
    accepts({ leaseDurationSeconds: 30 });
    expect(faultyFields({ leaseDurationSeconds: 29 })).toEqual(['leaseDurationSeconds']);
  });

  it('needs node blocks inside the cluster CIDR, and at most 2^16 of them for IPv6', () => {
    accepts({ clusterCIDRs: ['10.0.0.0/24'] });
    expect(faultyFields({ clusterCIDRs: ['10.0.0.0/25'] })).toEqual(['nodeCIDRMaskSizeIPv4']);
    accepts({ clusterCIDRs: ['fd00::/48'] });
    expect(faultyFields({ clusterCIDRs: ['fd00::/47'] })).toEqual(['nodeCIDRMaskSizeIPv6']);
    expect(faultyFields({ clusterCIDRs: ['fd00::/65'] })).toEqual(['nodeCIDRMaskSizeIPv6']);
  });

  it('does not check the relations of a field that is invalid by itself', () => {
    expect(faultyFields({ beatIntervalSeconds: -5 })).toEqual(['beatIntervalSeconds']);
  });
});

describe('a described fault', () => {
  it('reads place, field, value, rule', () => {
    const fault = { at: 'policy.yaml:7', field: 'watchMode', value: 'poll', rule: 'must be one of stream, longPoll' };
    expect(describePolicyFault(fault)).toBe('policy.yaml:7 watchMode "poll" must be one of stream, longPoll');
  });

  it('shows numbers that JSON cannot', () => {
    const fault = { field: 'beatIntervalSeconds', value: Number.POSITIVE_INFINITY, rule: 'must be finite' };
    expect(describePolicyFault(fault)).toBe('beatIntervalSeconds Infinity must be finite');
  });
});
