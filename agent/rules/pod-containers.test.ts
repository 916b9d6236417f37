import { expect, it } from 'vitest';
import { containersOf } from './pod-containers.ts';

it('the containers of a pod are those that start first, with what they ask for', () => {
  const resources = { requests: { cpu: '1' }, limits: { memory: '1Gi' } };
  const spec = {
    containers: [{ name: 'a', restartPolicy: 'Always', resources }, { name: 'b' }],
    initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }, { name: 'o', restartPolicy: 'OnFailure' }],
    ephemeralContainers: [{ name: 'e' }],
  };
  const none = { requests: {}, limits: {} };
  expect(containersOf({ metadata: {}, spec })).toEqual([
    { name: 'i', kind: 'init', ...none },
    { name: 's', kind: 'restartable', ...none },
    { name: 'o', kind: 'init', ...none },
    { name: 'a', kind: 'app', ...resources },
    { name: 'b', kind: 'app', ...none },
  ]);
  expect(containersOf({ metadata: {} })).toEqual([]);
});
