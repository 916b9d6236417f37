import { describe, expect, it } from 'vitest';
import { referencesOf } from './pod-references.ts';

const pod = (spec: object, annotations: Record<string, string> = {}) => ({
  metadata: { name: 'p', namespace: 'team', annotations },
  spec,
});

describe('the references of a pod', () => {
  it.each([
    ['imagePullSecrets', { imagePullSecrets: [{ name: 's' }] }, ['secrets/team/s']],
    ['a variable', { containers: [{ env: [{ valueFrom: { secretKeyRef: { name: 's' } } }] }] }, ['secrets/team/s']],
    [
      'variables of an init container',
      { initContainers: [{ envFrom: [{ configMapRef: { name: 'c' } }, { secretRef: { name: 's' } }] }] },
      ['configmaps/team/c', 'secrets/team/s'],
    ],
    [
      'an ephemeral container',
      { ephemeralContainers: [{ env: [{ valueFrom: { configMapKeyRef: { name: 'c' } } }] }] },
      ['configmaps/team/c'],
    ],
    ['a secret volume', { volumes: [{ secret: { secretName: 's' } }] }, ['secrets/team/s']],
    ['a config map volume', { volumes: [{ configMap: { name: 'c' } }] }, ['configmaps/team/c']],
    [
      'a projected volume',
      { volumes: [{ projected: { sources: [{ secret: { name: 's' } }, { configMap: { name: 'c' } }] } }] },
      ['secrets/team/s', 'configmaps/team/c'],
    ],
    ['a claim', { volumes: [{ persistentVolumeClaim: { claimName: 'd' } }] }, ['persistentvolumeclaims/team/d']],
    ['an ephemeral claim', { volumes: [{ name: 'v', ephemeral: {} }] }, ['persistentvolumeclaims/team/p-v']],
    ['a driver', { volumes: [{ csi: { nodePublishSecretRef: { name: 's' } } }] }, ['secrets/team/s']],
    ['another driver', { volumes: [{ rbd: { secretRef: { name: 's' } } }] }, ['secrets/team/s']],
    ['a file share', { volumes: [{ azureFile: { secretName: 's' } }] }, ['secrets/team/s']],
    ['odd values', { volumes: ['x', { secret: 7 }], containers: { env: 1 }, imagePullSecrets: [null] }, []],
  ])('include those of %s', (_, spec, expected) => {
    expect([...referencesOf(pod(spec))].sort()).toEqual([...expected].sort());
  });

  it('are none for a mirror pod, which its node made up', () => {
    const spec = { volumes: [{ secret: { secretName: 's' } }] };
    expect(referencesOf(pod(spec, { 'kubernetes.io/config.mirror': 'hash' }))).toEqual([]);
  });
});
