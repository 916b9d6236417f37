import { describe, expect, it } from 'vitest';
import type { Container, EnvVar } from '../../shared/kinds/types.ts';
import { containerEnv, expand } from './env.ts';
import type { ReadObject } from './pod-objects.ts';

const pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u-1' }, spec: {} };
const found = (data: Record<string, string>): ReadObject => ({ kind: 'found', object: { metadata: {}, data } });

function envOf(container: Container, objects: Readonly<Record<string, ReadObject>> = {}) {
  return containerEnv({
    pod,
    container,
    objects: (kind, name) => objects[`${kind}/${name}`] ?? { kind: 'missing' },
    machine: { hostIp: undefined, allocatable: {} },
    services: { KUBERNETES_SERVICE_HOST: 'api.example' },
  });
}

describe('variables in texts', () => {
  it('are expanded where they exist, and dollars can be escaped', () => {
    expect(expand('$(A)-$(B)-$$(A)-$A', { A: 'x' })).toBe('x-$(B)-$(A)-$A');
  });
});

describe('the variables of a container', () => {
  it('replace those of envFrom and of services', () => {
    const env = [
      { name: 'A', value: 'own' },
      { name: 'KUBERNETES_SERVICE_HOST', value: 'mine' },
    ];
    const envFrom = [{ configMapRef: { name: 'one' } }, { secretRef: { name: 'two' } }];
    const objects = { 'configmap/one': found({ A: '1', B: '1' }), 'secret/two': found({ B: 'Mg==' }) };
    expect(envOf({ env, envFrom }, objects)).toEqual({
      kind: 'variables',
      variables: { KUBERNETES_SERVICE_HOST: 'mine', A: 'own', B: '2' },
      events: [],
    });
  });

  it.each<[EnvVar, string]>([
    [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }, 'secret "s" not found'],
    [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }, "couldn't find key k in ConfigMap ns/c"],
    [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'd', key: 'k' } } }, 'configmaps "d" is forbidden'],
    [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } }, 'unsupported fieldPath: spec.x'],
    [
      { name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', containerName: 'x' } } },
      'container x not found',
    ],
  ])('cannot be known for %j', (variable, message) => {
    const objects = {
      'configmap/c': found({}),
      'configmap/d': { kind: 'failed' as const, message: 'configmaps "d" is forbidden' },
    };
    expect(envOf({ env: [variable] }, objects)).toEqual({ kind: 'failed', message });
  });
});
