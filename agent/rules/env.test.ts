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

  it('are those of all keys that are names, with a prefix; the others are reported in order', () => {
    const objects = {
      'configmap/one': found({ ok: '1', 'no name': '2', 'a b': '3', '9x': '4', '.dot-_9': '5', 'x/y': '6' }),
      'secret/two': found({ '=': 'eA==' }),
    };
    const outcome = envOf(
      { envFrom: [{ configMapRef: { name: 'one' } }, { secretRef: { name: 'two' }, prefix: 'P' }] },
      objects,
    );
    const event = (keys: string, object: string) => ({
      type: 'Warning',
      reason: 'InvalidEnvironmentVariableNames',
      message: `Keys [${keys}] from the EnvFrom ${object} were skipped since they are considered invalid environment variable names.`,
    });
    expect(outcome).toEqual({
      kind: 'variables',
      variables: { KUBERNETES_SERVICE_HOST: 'api.example', ok: '1', '.dot-_9': '5' },
      events: [event('9x, a b, no name, x/y', 'configMap ns/one'), event('P=', 'secret ns/two')],
    });
    const prefixed = envOf(
      { envFrom: [{ configMapRef: { name: 'one' }, prefix: 'A_' }] },
      { 'configmap/one': found({ '9x': '4' }) },
    );
    expect(prefixed).toMatchObject({ variables: { A_9x: '4' }, events: [] });
  });

  it('have the value of their text first, then that of an object, then none', () => {
    const ref = (name: string, key: string, optional?: boolean) => ({ name, key, ...(optional && { optional }) });
    const env: EnvVar[] = [
      { name: 'TEXT', value: 'text', valueFrom: { configMapKeyRef: ref('c', 'k') } },
      { name: 'EMPTY', value: '', valueFrom: { configMapKeyRef: ref('c', 'k') } },
      { name: 'SECRET', valueFrom: { secretKeyRef: ref('s', 'k') } },
      { name: 'NO_KEY', valueFrom: { configMapKeyRef: ref('c', 'none', true) } },
      { name: 'NO_OBJECT', valueFrom: { secretKeyRef: ref('none', 'k', true) } },
      { name: 'INHERITED', valueFrom: { configMapKeyRef: ref('c', 'toString', true) } },
      { name: 'BOTH', value: '$(TEXT) $(SECRET) $(NO_KEY) $(LATER)' },
      { name: 'LATER' },
      { name: 'FIELD', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
    ];
    const objects = { 'configmap/c': found({ k: 'of c' }), 'secret/s': found({ k: 'w6Q=' }) };
    expect(envOf({ env }, objects)).toEqual({
      kind: 'variables',
      variables: {
        ...{ KUBERNETES_SERVICE_HOST: 'api.example', TEXT: 'text', EMPTY: 'of c', SECRET: 'ä' },
        ...{ BOTH: 'text ä $(NO_KEY) $(LATER)', LATER: '', FIELD: 'u-1' },
      },
      events: [],
    });
  });

  it('of an object that may be absent are none without it, and it must exist otherwise', () => {
    const from = (optional: boolean) => envOf({ envFrom: [{ configMapRef: { name: 'none', optional } }] });
    expect(from(true)).toMatchObject({ kind: 'variables', events: [] });
    expect(from(false)).toEqual({ kind: 'failed', message: 'configmap "none" not found' });
    const failed = { 'secret/s': { kind: 'failed' as const, message: 'forbidden' } };
    expect(envOf({ envFrom: [{ secretRef: { name: 's', optional: true } }] }, failed)).toEqual({
      kind: 'failed',
      message: 'forbidden',
    });
  });

  it.each<[EnvVar, string]>([
    [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }, 'secret "s" not found'],
    [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } }, "couldn't find key k in ConfigMap ns/c"],
    [{ name: 'A', valueFrom: { secretKeyRef: { name: 'e', key: 'k' } } }, "couldn't find key k in Secret ns/e"],
    [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'd', key: 'k' } } }, 'configmaps "d" is forbidden'],
    [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.x' } } }, 'unsupported fieldPath: spec.x'],
    [
      { name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', containerName: 'x' } } },
      'container x not found',
    ],
  ])('cannot be known for %j', (variable, message) => {
    const objects = {
      'configmap/c': found({}),
      'secret/e': found({}),
      'configmap/d': { kind: 'failed' as const, message: 'configmaps "d" is forbidden' },
    };
    expect(envOf({ env: [variable] }, objects)).toEqual({ kind: 'failed', message });
  });
});

it('a fault of this program is thrown, and no message of the pod', () => {
  const objects = () => {
    throw new TypeError('a bug');
  };
  const container = { envFrom: [{ configMapRef: { name: 'one' } }] };
  const machine = { hostIp: undefined, allocatable: {} };
  expect(() => containerEnv({ pod, container, objects, machine, services: {} })).toThrow(new TypeError('a bug'));
});
