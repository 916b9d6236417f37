import { expect, it } from 'vitest';
import { podFaults } from './pod-manifest-faults.ts';

const pod = (spec: object = {}) => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c' }], ...spec },
});
const faultsOf = (manifest: object) =>
  podFaults(['items', 0], manifest as never).map(({ path, message }) => `${path.join('.')}: ${message}`);

it.each<[string, object]>([
  ['a name and a container', {}],
  [
    'fields that are null',
    { initContainers: null, resources: null, priority: null, terminationGracePeriodSeconds: null },
  ],
  ['containers with the same name in two lists', { initContainers: [{ name: 'c' }] }],
  ['no container that runs first', { initContainers: [] }],
  ['quantities', { resources: { requests: { cpu: '500m', memory: 0 }, limits: null } }],
  ['the lowest priority and no grace period', { priority: -(2 ** 31), terminationGracePeriodSeconds: 0 }],
  ['the highest priority and grace period', { priority: 2 ** 31 - 1, terminationGracePeriodSeconds: 2 ** 31 - 1 }],
])('a pod with %s can be read', (_what, spec) => {
  expect(faultsOf(pod(spec))).toEqual([]);
});

const INTEGER = 'expected a whole number of 32 bits';
const SECONDS = 'expected a whole number of seconds, not negative';
const QUANTITY = 'expected a quantity such as 500m or 1Gi, not negative';
it.each<[string, object, readonly string[]]>([
  ['containers', { containers: [] }, ['expected a list of containers, found []']],
  ['containers', { containers: undefined }, ['expected a list of containers, found nothing']],
  ['initContainers', { initContainers: 'x' }, ['expected a list of containers, found "x"']],
  [
    'containers.1.name',
    { containers: [{ name: 'c' }, { name: 'c' }] },
    ['expected a name that no other container has, found "c"'],
  ],
  ['containers.0.name', { containers: [{}] }, ['expected a name that no other container has, found nothing']],
  ['containers.0.name', { containers: [{ name: '' }] }, ['expected a name that no other container has, found ""']],
  ['containers.0.name', { containers: ['c'] }, ['expected a name that no other container has, found nothing']],
  ['containers.0.resources', { containers: [{ name: 'c', resources: 1 }] }, ['expected requests and limits, found 1']],
  ['resources.requests', { resources: { requests: [] } }, ['expected quantities by resource, found []']],
  ['resources.limits.cpu', { resources: { limits: { cpu: '-1' } } }, [`${QUANTITY}, found "-1"`]],
  ['resources.limits.cpu', { resources: { limits: { cpu: 'x' } } }, [`${QUANTITY}, found "x"`]],
  ['resources.requests.cpu', { resources: { requests: { cpu: null, memory: 1 } } }, [`${QUANTITY}, found null`]],
  ['resources.limits.cpu', { resources: { limits: { cpu: ['1'] } } }, [`${QUANTITY}, found ["1"]`]],
  ['priority', { priority: 2 ** 31 }, [`${INTEGER}, found 2147483648`]],
  ['priority', { priority: -(2 ** 31) - 1 }, [`${INTEGER}, found -2147483649`]],
  ['priority', { priority: 1.5 }, [`${INTEGER}, found 1.5`]],
  ['priority', { priority: '1' }, [`${INTEGER}, found "1"`]],
  ['terminationGracePeriodSeconds', { terminationGracePeriodSeconds: -1 }, [`${SECONDS}, found -1`]],
])('names spec.%s of %j', (path, spec, messages) => {
  expect(faultsOf(pod(spec))).toEqual(messages.map((message) => `items.0.spec.${path}: ${message}`));
});

it('names the annotation for pods that must not run on two machines', () => {
  const annotations = { 'nodekeeper.dev/offline-stop-after': '2h', other: 'x' };
  expect(faultsOf({ ...pod(), metadata: { name: 'p', annotations } })).toEqual([
    'items.0.metadata.annotations.nodekeeper.dev/offline-stop-after: expected nothing: ' +
      'a static pod is never stopped for this, found "2h"',
  ]);
});

it('names a pod without a name and without a spec, and cuts long values', () => {
  expect(faultsOf({})).toEqual([
    'items.0.metadata.name: expected the name of the pod, found nothing',
    'items.0.spec: expected the spec of a pod, found nothing',
  ]);
  expect(faultsOf({ ...pod(), metadata: { name: '' } })).toHaveLength(1);
  expect(faultsOf({ ...pod(), metadata: { name: 7 } })).toHaveLength(1);
  expect(faultsOf({ metadata: { name: 'p' }, spec: 'x'.repeat(200) })).toEqual([
    `items.0.spec: expected the spec of a pod, found "${'x'.repeat(99)}`,
  ]);
});
