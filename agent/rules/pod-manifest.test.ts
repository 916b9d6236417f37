import { describe, expect, it } from 'vitest';
import { podsOf } from './pod-manifest.ts';

const pod = (name: string, spec: object = {}) => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'web' }], ...spec },
});
const priorityClass = (name: string, value: unknown, more: object = {}) => ({
  kind: 'PriorityClass',
  apiVersion: 'scheduling.k8s.io/v1',
  metadata: { name },
  value,
  ...more,
});
function read(...documents: unknown[]) {
  const { pods, faults } = podsOf(documents.map((value) => ({ value, at: (path) => path.join('/') })));
  return {
    pods: pods.map(({ metadata, spec }) => `${metadata.name} ${spec?.['priority']}`),
    faults: faults.map(({ at, message }) => `${at}: ${message}`),
  };
}
const without = <Item extends { readonly kind: string }>({ kind: _kind, ...rest }: Item) => rest;

describe('the pods of a manifest', () => {
  it('are documents, and items of lists; empty documents have none', () => {
    const list = { kind: 'List', items: [pod('b'), priorityClass('high', 7)] };
    const pods = { kind: 'PodList', items: [without(pod('c')), pod('d', { priorityClassName: 'high' })] };
    expect(read(pod('a'), null, undefined, list, pods)).toEqual({ pods: ['a 0', 'b 0', 'c 0', 'd 7'], faults: [] });
    const classes = { kind: 'PriorityClassList', items: [without(priorityClass('low', 3))] };
    expect(read(pod('a', { priorityClassName: 'low' }), classes)).toEqual({ pods: ['a 3'], faults: [] });
  });

  it('have the priority of the default class, and those of the system', () => {
    const normal = priorityClass('normal', 5, { globalDefault: true });
    expect(read(pod('a'), normal).pods).toEqual(['a 5']);
    expect(read(pod('a', { priorityClassName: 'system-node-critical' })).pods).toEqual(['a 2000001000']);
  });

  it('stay as the API returned them', () => {
    const stored = { ...pod('a', { priorityClassName: 'unknown' }), metadata: { name: 'a', uid: 'u1' } };
    expect(read(stored)).toEqual({ pods: ['a undefined'], faults: [] });
  });

  it.each([
    [{ kind: 'PodList', items: 'x' }, ['items']],
    [{ kind: 'List', items: [pod('a'), { kind: 'Service' }] }, ['items/1/kind']],
    [{ kind: 'List', items: [without(pod('a'))] }, ['items/0/kind']],
    [{ kind: 'List', items: ['x'] }, ['items/0/kind']],
    [{ kind: 'Service' }, ['kind']],
    ['x', ['kind']],
    [priorityClass('high', 'x'), ['value']],
    [{ kind: 'List', items: [priorityClass('high', undefined)] }, ['items/0/value']],
    [pod('a', { priorityClassName: 'unknown' }), ['spec/priorityClassName']],
    [{ kind: 'List', items: [pod('a', { priorityClassName: 'unknown' })] }, ['items/0/spec/priorityClassName']],
  ])('%j is refused at %j', (document, places) => {
    expect(read(document).faults.map((each) => each.split(':')[0])).toEqual(places);
  });

  it('name the remedy for a class that is missing', () => {
    expect(read(pod('a', { priorityClassName: 'unknown' })).faults[0]).toContain('add that PriorityClass to the file');
  });
});
