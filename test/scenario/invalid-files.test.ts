import { describe, expect, it } from 'vitest';
import { runSimulate, runStory, scenarioText, withFiles } from './terminal.ts';

const FLEET = '  fleet:\n  - {prefix: a, count: 2, zone: zone-a}\n';

/** Spec, line of the file, field, and what is said of it. The spec begins in line 5. */
const FAULTS: readonly (readonly [what: string, spec: string, line: number, field: string, said: RegExp])[] = [
  [
    'an unknown field of spec',
    '  flet: []\n',
    5,
    'spec.flet',
    /unknown field; expected one of start, policy, fleet, steps/,
  ],
  ['an unknown field of a group', '  fleet:\n  - {prefix: a, cuont: 2}\n', 6, 'spec.fleet[0].cuont', /unknown field/],
  [
    'an unknown field of a step',
    `${FLEET}  steps:\n  - {at: 5s, silense: [a-0]}\n`,
    8,
    'spec.steps[0].silense',
    /unknown field; expected one of at, refused, silence/,
  ],
  [
    'an unknown field of an expectation',
    `${FLEET}  steps:\n  - at: 5s\n    expect:\n      nodes:\n        a-0: {redy: "True"}\n`,
    11,
    'spec.steps[0].expect.nodes.a-0.redy',
    /unknown field/,
  ],
  [
    'a propagation policy that is none',
    `${FLEET}  steps:\n  - {at: 5s, delete: {kind: Deployment, name: web, propagationPolicy: Sometimes}}\n`,
    8,
    'spec.steps[0].delete.propagationPolicy',
    /Background, Foreground/,
  ],
  [
    'a drain of no node',
    `${FLEET}  steps:\n  - {at: 5s, drain: ["b-*"]}\n`,
    8,
    'spec.steps[0].drain[0]',
    /expected a name or glob that matches a node/,
  ],
  [
    'an expectation of a kind that is no workload',
    `${FLEET}  steps:\n  - {at: 5s, expect: {workloads: {service default/web: {pods: 1}}}}\n`,
    8,
    'spec.steps[0].expect.workloads.service default/web',
    /expected a kind and namespace\/name/,
  ],
  [
    'an unknown policy field',
    '  policy:\n    nodeMonitorGraceSeconds: 40\n',
    6,
    'spec.policy.nodeMonitorGraceSeconds',
    /nearest/,
  ],
  [
    'a policy value out of range',
    '  policy: {nodeMonitorPeriodSeconds: 7}\n',
    5,
    'spec.policy.nodeMonitorPeriodSeconds',
    /must be one of 5, 10/,
  ],
  [
    'a time without a unit',
    `${FLEET}  steps:\n  - {at: 60, silence: [a-0]}\n`,
    8,
    'spec.steps[0].at',
    /with its unit.*found "60"/,
  ],
  [
    'a unit that is none',
    `${FLEET}  steps:\n  - {at: 60min, silence: [a-0]}\n`,
    8,
    'spec.steps[0].at',
    /found "60min"/,
  ],
  [
    'a time before that of the step above',
    `${FLEET}  steps:\n  - {at: 60s, silence: [a-0]}\n  - {at: 59s, beat: [a-0]}\n`,
    9,
    'spec.steps[1].at',
    /not before that of the step above, found "59s"/,
  ],
  ['a step without a time', `${FLEET}  steps:\n  - {silence: [a-0]}\n`, 8, 'spec.steps[0]', /expected the field at/],
  [
    'a step without a verb',
    `${FLEET}  steps:\n  - {at: 5s}\n`,
    8,
    'spec.steps[0]',
    /exactly one of silence.*found none/,
  ],
  [
    'a step with two verbs',
    `${FLEET}  steps:\n  - {at: 5s, silence: [a-0], beat: [a-1]}\n`,
    8,
    'spec.steps[0]',
    /found silence and beat/,
  ],
  [
    'a glob that matches no machine',
    `${FLEET}  steps:\n  - {at: 5s, silence: ["b-*"]}\n`,
    8,
    'spec.steps[0].silence[0]',
    /matches a node/,
  ],
  [
    'a glob that matches no node',
    `${FLEET}  steps:\n  - {at: 5s, cordon: ["b-*"]}\n`,
    8,
    'spec.steps[0].cordon[0]',
    /matches a node/,
  ],
  [
    'a machine that is not there',
    `${FLEET}  steps:\n  - {at: 5s, silence: [b-0]}\n`,
    8,
    'spec.steps[0].silence[0]',
    /matches a node/,
  ],
  [
    'a share over one',
    '  steps:\n  - {at: 5s, ingest: {failShare: 1.5}}\n',
    6,
    'spec.steps[0].ingest.failShare',
    /from 0 to 1/,
  ],
  [
    'a taint without an effect',
    `${FLEET}  steps:\n  - {at: 5s, taint: {names: [a-0], add: ["key=value"]}}\n`,
    8,
    'spec.steps[0].taint.add[0]',
    /key\[=value\]:Effect/,
  ],
  [
    'a Ready status that is none',
    `${FLEET}  steps:\n  - {at: 5s, expect: {nodes: {a-0: {ready: Maybe}}}}\n`,
    8,
    'spec.steps[0].expect.nodes.a-0.ready',
    /True, False, Unknown, absent/,
  ],
  [
    'a pod without its namespace',
    `${FLEET}  steps:\n  - {at: 5s, expect: {pods: {a-0-pod-0: {deleting: true}}}}\n`,
    8,
    'spec.steps[0].expect.pods.a-0-pod-0',
    /namespace\/name/,
  ],
  [
    'two groups of one name',
    '  fleet:\n  - {prefix: a, count: 2}\n  - {prefix: a}\n',
    7,
    'spec.fleet[1]',
    /no other group/,
  ],
  ['a list that is a map', '  fleet: {prefix: a}\n', 5, 'spec.fleet', /expected a list, found a map/],
  ['a start that is no time', '  start: yesterday\n', 5, 'spec.start', /2026-01-01T00:00:00Z/],
];

describe('a scenario file that is not valid', () => {
  it.each(FAULTS)('is refused for %s, with its line and field', async (_, spec, line, field, said) => {
    const { exitCode, errors, output } = await runStory(spec);
    expect({ exitCode, output }).toEqual({ exitCode: 2, output: [] });
    const fault = errors.find((error) => error.includes(`:${line}: ${field}: `));
    expect(fault ?? errors).toMatch(said);
  });

  it('is refused when it is no YAML, no scenario, of another version, or not there', async () => {
    const texts = {
      'broken.yaml': 'spec: {a: [1\n',
      'other.yaml': 'apiVersion: nodekeeper.dev/v1\nkind: Story\nmetadata: {name: x}\nspec: {}\n',
      'list.yaml': '- 1\n',
      'nameless.yaml': 'apiVersion: nodekeeper.dev/v1alpha1\nkind: Scenario\nmetadata: {}\nspec: {}\n',
    };
    await withFiles(texts, async (paths) => {
      const said = async (name: string) => {
        const { exitCode, errors } = await runSimulate(paths[name]!, '--store', 'memory');
        expect(exitCode).toBe(2);
        return errors.join('\n');
      };
      expect(await said('broken.yaml')).toMatch(/broken\.yaml:\d+: expected YAML/);
      expect(await said('other.yaml')).toMatch(/other\.yaml:1: apiVersion: expected one of nodekeeper.dev\/v1alpha1/);
      expect(await said('other.yaml')).toMatch(/other\.yaml:2: kind: expected one of Scenario/);
      expect(await said('list.yaml')).toMatch(/list\.yaml:1: expected a map, found a list/);
      expect(await said('nameless.yaml')).toMatch(/nameless\.yaml:3: metadata: expected the field name/);
    });
    expect((await runSimulate('no/such/file.yaml')).exitCode).toBe(2);
  });

  it('prevents the others from running, and every fault is reported', async () => {
    const texts = {
      'good.yaml': scenarioText('  steps:\n  - {at: 5s, expect: {}}\n'),
      'bad.yaml': scenarioText('  fleet:\n  - {prefix: a, cuont: 1}\n  steps:\n  - {at: 5, expect: {}}\n'),
    };
    const { exitCode, output, errors } = await withFiles(texts, (paths) =>
      runSimulate(paths['good.yaml']!, paths['bad.yaml']!, '--store', 'memory'),
    );
    expect({ exitCode, output }).toEqual({ exitCode: 2, output: [] });
    expect(errors).toHaveLength(2);
  });

  it('may be the policy, and its faults are reported in the same way', async () => {
    const texts = {
      'good.yaml': scenarioText('  steps:\n  - {at: 5s, expect: {}}\n'),
      'policy.yaml': 'nodeMonitorGracePeriodSeconds: 40\nnodeMonitorPeriodSecond: 5\n',
    };
    const { exitCode, errors } = await withFiles(texts, (paths) =>
      runSimulate(paths['good.yaml']!, '--policy', paths['policy.yaml']!, '--store', 'memory'),
    );
    expect(exitCode).toBe(2);
    expect(errors.join('\n')).toMatch(/policy\.yaml:2 nodeMonitorPeriodSecond .*nearest is nodeMonitorPeriodSeconds/);
  });
});

describe('arguments', () => {
  it.each([
    ['no file', []],
    ['an unknown option', ['x.yaml', '--fast']],
    ['an unknown store', ['x.yaml', '--store', 'disk']],
    ['a seed that is no number', ['x.yaml', '--seed', 'many']],
  ])('are refused: %s', async (_, args) => {
    const { exitCode, errors } = await runSimulate(...args);
    expect(exitCode).toBe(2);
    expect(errors[0]).toMatch(/--help lists the options/);
  });

  it('may ask for help', async () => {
    const { exitCode, output } = await runSimulate('--help');
    expect(exitCode).toBe(0);
    expect(output[0]).toMatch(/usage: npm run simulate/);
  });
});
