import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { matchesNodeAffinity } from './node-affinity.ts';

const labels = { zone: 'a', empty: '', memory: '16', weight: '-5', name: 'x16' };
const podWith = (spec: Record<string, unknown>): KubeObject => ({ metadata: { name: 'p' }, spec });
const requiring = (...nodeSelectorTerms: unknown[]) =>
  podWith({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } });
const matches = (pod: KubeObject): boolean => matchesNodeAffinity(pod, labels, 'n1');
const byLabel = (key: string, operator: string, values?: readonly unknown[]) => ({
  matchExpressions: [{ key, operator, ...(values === undefined ? {} : { values }) }],
});

describe('a requirement of a node', () => {
  it.each([
    ['zone', 'In', ['b', 'a'], true],
    ['zone', 'In', ['b'], false],
    ['zone', 'In', undefined, false],
    ['empty', 'In', [''], true],
    ['absent', 'In', [''], false],
    ['zone', 'NotIn', ['b'], true],
    ['zone', 'NotIn', ['a'], false],
    ['absent', 'NotIn', [''], true],
    ['zone', 'Exists', undefined, true],
    ['empty', 'Exists', undefined, true],
    ['absent', 'Exists', undefined, false],
    ['zone', 'DoesNotExist', undefined, false],
    ['absent', 'DoesNotExist', undefined, true],
    ['memory', 'Gt', ['15'], true],
    ['memory', 'Gt', ['16'], false],
    ['memory', 'Gt', ['9'], true],
    ['memory', 'Gt', ['+15'], true],
    ['memory', 'Lt', ['17'], true],
    ['memory', 'Lt', ['16'], false],
    ['memory', 'Lt', ['15'], false],
    ['memory', 'Lt', ['100'], true],
    ['weight', 'Lt', ['0'], true],
    ['memory', 'Gt', ['1', '2'], false],
    ['memory', 'Gt', [], false],
    ['memory', 'Gt', ['1x'], false],
    ['memory', 'Gt', ['x1'], false],
    ['memory', 'Lt', ['9'.repeat(18)], true],
    ['memory', 'Lt', ['9'.repeat(19)], false],
    ['name', 'Gt', ['1'], false],
    ['absent', 'Gt', ['1'], false],
    ['zone', 'in', ['a'], false],
    // A property of every object is no label.
    ['toString', 'Exists', undefined, false],
  ])('%s %s %j is %s', (key, operator, values, expected) => {
    expect(matches(requiring(byLabel(key, operator, values)))).toBe(expected);
  });

  it('may be by the name of the node alone', () => {
    const byField = (key: string, values: string[]) => ({ matchFields: [{ key, operator: 'In', values }] });
    expect(matches(requiring(byField('metadata.name', ['n1'])))).toBe(true);
    expect(matches(requiring(byField('metadata.name', ['n2'])))).toBe(false);
    expect(matches(requiring(byField('metadata.uid', ['n1'])))).toBe(false);
  });
});

describe('a pod', () => {
  it('matches by one term with all of its requirements', () => {
    const [yes, no] = [byLabel('zone', 'Exists'), byLabel('absent', 'Exists')];
    const fields = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }] };
    expect(matches(requiring(no, yes))).toBe(true);
    expect(matches(requiring(no, no))).toBe(false);
    const both = { matchExpressions: [...yes.matchExpressions, ...no.matchExpressions] };
    expect(matches(requiring(both))).toBe(false);
    expect(matches(requiring({ ...yes, ...fields }))).toBe(false);
    expect(matches(requiring({}))).toBe(false);
    expect(matches(requiring())).toBe(false);
  });

  it('matches anywhere without a requirement', () => {
    const required = (value: unknown) =>
      podWith({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: value } } });
    expect([podWith({}), required(null), required(undefined)].map(matches)).toEqual([true, true, true]);
    expect(matches({ metadata: {} })).toBe(true);
  });

  it('matches by all labels of its selector, beside its affinity', () => {
    const selecting = (nodeSelector: object) => matches(podWith({ nodeSelector }));
    expect([selecting({ zone: 'a', empty: '' }), selecting({ zone: 'a', memory: '1' })]).toEqual([true, false]);
    expect([selecting({ absent: undefined }), selecting({ absent: '' })]).toEqual([false, false]);
    const both = requiring(byLabel('zone', 'Exists'));
    expect(matches({ ...both, spec: { ...both.spec, nodeSelector: { zone: 'b' } } })).toBe(false);
  });
});
