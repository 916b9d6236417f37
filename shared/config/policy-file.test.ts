import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../fleet/policy.ts';
import { describePolicyFault } from './policy.ts';
import { policyFromYaml } from './policy-file.ts';

const linesOf = (text: string): readonly string[] => {
  const parsed = policyFromYaml(text, 'policy.yaml');
  return parsed.kind === 'faults' ? parsed.faults.map(describePolicyFault) : [];
};

describe('a policy file', () => {
  it.each(['', '# nothing yet\n', '---\n', '{}\n'])('of %j is the default policy', (text) => {
    expect(policyFromYaml(text, 'policy.yaml')).toEqual({ kind: 'ok', policy: defaultPolicy });
  });

  it('is a plain map of fields, comments and all', () => {
    const text = '# ours\nbeatIntervalSeconds: 5 # quicker\nclusterCIDRs: [10.0.0.0/16]\nfullDisruption: hold\n';
    expect(policyFromYaml(text, 'policy.yaml')).toEqual({
      kind: 'ok',
      policy: { ...defaultPolicy, beatIntervalSeconds: 5, clusterCIDRs: ['10.0.0.0/16'], fullDisruption: 'hold' },
    });
  });

  it('may be a Policy object with the fields in its spec', () => {
    const text = [
      'apiVersion: nodekeeper.dev/v1alpha1',
      'kind: Policy',
      'metadata: {name: edge}',
      'spec:',
      '  watchMode: longPoll',
    ].join('\n');
    expect(policyFromYaml(text, 'policy.yaml')).toEqual({
      kind: 'ok',
      policy: { ...defaultPolicy, watchMode: 'longPoll' },
    });
    expect(policyFromYaml(text.split('\n').slice(0, 3).join('\n'), 'policy.yaml').kind).toBe('ok');
  });

  it('names the line of each fault', () => {
    const text = ['# comment', 'beatIntervalSecond: 10', '', 'watchMode: poll', 'clusterCIDRs:', '  - here'].join('\n');
    expect(linesOf(text)).toEqual([
      'policy.yaml:2 beatIntervalSecond 10 is no policy field; the nearest is beatIntervalSeconds',
      'policy.yaml:5 clusterCIDRs ["here"] must be a list of CIDRs: empty, one, or one IPv4 and one IPv6',
      'policy.yaml:4 watchMode "poll" must be one of stream, longPoll',
    ]);
  });

  it('names the line of an unknown field with a dot in its name', () => {
    expect(linesOf('watchMode: stream\nnode.monitor: 5\n')[0]).toMatch(
      /^policy\.yaml:2 node\.monitor 5 is no policy field/,
    );
  });

  it('names the line of the written field when a default breaks a relation with it', () => {
    const text = 'watchMode: stream\nnodeMonitorPeriodSeconds: 30\n';
    expect(linesOf(text)).toEqual([
      'policy.yaml:2 nodeMonitorGracePeriodSeconds 40 must be at least 2 × nodeMonitorPeriodSeconds (nodeMonitorPeriodSeconds is 30)',
    ]);
  });

  it('keeps an unquoted off a word, as YAML 1.2 has it', () => {
    expect(linesOf('ingestGate: off\ntickGate: on\n')).toEqual([]);
  });

  it('refuses a field that is written twice', () => {
    expect(linesOf('watchMode: stream\nwatchMode: longPoll\n')).toEqual(['policy.yaml:2 Map keys must be unique']);
  });

  it('says where YAML ends', () => {
    expect(linesOf('watchMode: stream\nclusterCIDRs: [10.0.0.0/8\n')[0]).toMatch(/^policy\.yaml:\d+ \S/);
  });

  it('refuses a list, a word and a second document', () => {
    expect(linesOf('- watchMode\n')).toEqual(['policy.yaml:1 ["watchMode"] must be a map of policy fields']);
    expect(linesOf('stream\n')).toEqual(['policy.yaml:1 "stream" must be a map of policy fields']);
    expect(linesOf('watchMode: stream\n---\nwatchMode: longPoll\n')).toHaveLength(1);
  });

  it('refuses aliases, which could point nowhere or expand without end', () => {
    expect(linesOf('clusterCIDRs: &a []\nserviceClusterIPRanges: *a\nwatchMode: *mode\n')).toEqual([
      'policy.yaml:2 "*a" must be written out, not an alias',
      'policy.yaml:3 "*mode" must be written out, not an alias',
    ]);
  });

  it('refuses another kind, and fields beside the spec, besides the faults inside it', () => {
    const text = ['apiVersion: v1', 'kind: Policy', 'watchMode: stream', 'spec:', '  tickGate: maybe'].join('\n');
    expect(linesOf(text)).toEqual([
      'policy.yaml:1 apiVersion "v1" must be nodekeeper.dev/v1alpha1',
      'policy.yaml:3 watchMode "stream" belongs under spec',
      'policy.yaml:5 tickGate "maybe" must be one of on, off',
    ]);
    expect(linesOf('apiVersion: nodekeeper.dev/v1alpha1\nkind: Policy\nspec: 5\n')).toEqual([
      'policy.yaml:3 spec 5 must be a map of policy fields',
    ]);
  });
});

it('two documents are refused at the second', () => {
  const at = 'policy.yaml:3';
  expect(policyFromYaml('{}\n---\n{}\n', 'policy.yaml')).toEqual({
    kind: 'faults',
    faults: [{ field: '', value: undefined, rule: 'must be one document', at }],
  });
});
