import { describe, expect, it } from 'vitest';
import { startTopology } from './options.ts';

const request = { policy: 'restricted', scope: 'pod', options: {}, nodeIds: [0, 1], distances: undefined };
const distances = new Map() as never;
const CLOSEST = 'prefer-closest-numa-nodes';
const NODES_MAX = 'max-allowable-numa-nodes';
const nodes = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('the topology manager', () => {
  it.each(['best-effort', 'restricted', 'single-numa-node'])('starts with the policy %s', (policy) => {
    const started = startTopology({ ...request, policy });
    expect(started).toMatchObject({
      kind: 'on',
      settings: { policy, scope: 'pod', distances: undefined },
      warnings: [],
    });
  });

  it('is off with none, whatever else is set', () => {
    expect(startTopology({ ...request, policy: 'none', scope: 'x', options: { x: '1' } })).toEqual({ kind: 'off' });
  });

  it('has distances where it prefers close nodes', () => {
    const settingsOf = (value: string) => startTopology({ ...request, options: { [CLOSEST]: value }, distances });
    expect(settingsOf('true')).toMatchObject({ kind: 'on', settings: { distances } });
    expect(settingsOf('false')).toMatchObject({ kind: 'on', settings: { distances: undefined } });
  });

  it('accepts eight nodes, or as many as its option allows, with a warning', () => {
    const of = (count: number, value?: string) =>
      startTopology({ ...request, nodeIds: nodes(count), options: value === undefined ? {} : { [NODES_MAX]: value } });
    const refused = (limit: number) => ({
      kind: 'refused',
      message: `unsupported on machines with more than ${limit} NUMA Nodes`,
    });
    expect(of(8)).toMatchObject({ kind: 'on', warnings: [] });
    expect(of(9)).toEqual(refused(8));
    expect(of(8, '8')).toMatchObject({ kind: 'on', warnings: [] });
    const warnings = ['more than 8 NUMA nodes are allowed: admission may take long'];
    expect(of(9, '+9')).toMatchObject({ kind: 'on', warnings });
    expect(of(10, '9')).toEqual(refused(9));
  });

  it.each([
    [{ options: { [CLOSEST]: 'true' } }, 'error getting NUMA distances from the machine'],
    [{ options: { [CLOSEST]: 'yes' } }, `bad value for option "${CLOSEST}": "yes" is no boolean`],
    [{ options: { [NODES_MAX]: '7' } }, `the minimum value of "${NODES_MAX}" should not be less than 8`],
    [{ options: { [NODES_MAX]: '-9' } }, `the minimum value of "${NODES_MAX}" should not be less than 8`],
    [
      { options: { [NODES_MAX]: '9.0' } },
      `unable to convert policy option to integer "${NODES_MAX}": "9.0" is no integer`,
    ],
    [
      { options: { [NODES_MAX]: '1234567890' } },
      `unable to convert policy option to integer "${NODES_MAX}": "1234567890" is no integer`,
    ],
    [{ options: { other: '1' } }, 'unknown Topology Manager Policy option: "other"'],
    [{ policy: 'x' }, 'unknown policy: "x"'],
    [{ policy: '' }, 'unknown policy: ""'],
    [{ scope: 'x' }, 'unknown scope: "x"'],
  ])('refuses %j', (over, message) => {
    expect(startTopology({ ...request, ...over } as never)).toEqual({ kind: 'refused', message });
  });
});
