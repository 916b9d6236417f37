import { expect, it } from 'vitest';
import { objectsOf } from './pod-objects.ts';

it('lists each ConfigMap and Secret of a pod once, wherever it is named', () => {
  const spec = {
    volumes: [
      { name: 'a', configMap: { name: 'volume-map' } },
      { name: 'b', secret: { secretName: 'volume-secret' } },
      {
        name: 'c',
        projected: {
          sources: [
            { configMap: { name: 'projected-map' } },
            { secret: { name: 'projected-secret' } },
            { downwardAPI: {} },
          ],
        },
      },
      { name: 'e', emptyDir: {} },
      { name: 'f', configMap: {} },
    ],
    initContainers: [
      { name: 'i', envFrom: [{ configMapRef: { name: 'init-map' } }, { secretRef: { name: 'init-secret' } }] },
    ],
    containers: [
      {
        name: 'm',
        env: [
          { name: 'A', valueFrom: { configMapKeyRef: { name: 'key-map', key: 'k' } } },
          { name: 'B', valueFrom: { secretKeyRef: { name: 'key-secret', key: 'k' } } },
          { name: 'C', valueFrom: { configMapKeyRef: { name: 'volume-map', key: 'k' } } },
          { name: 'D', valueFrom: { secretKeyRef: { name: 'volume-map', key: 'k' } } },
          { name: 'E', value: 'x' },
        ],
      },
    ],
  };
  expect(objectsOf({ metadata: {}, spec }).map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    'configmap volume-map',
    'secret volume-secret',
    'configmap projected-map',
    'secret projected-secret',
    'configmap init-map',
    'secret init-secret',
    'configmap key-map',
    'secret key-secret',
    'secret volume-map',
  ]);
});

it('lists none of a pod without any', () => {
  expect(objectsOf({ metadata: {} })).toEqual([]);
  expect(
    objectsOf({ metadata: {}, spec: { containers: [{ name: 'm' }], volumes: [{ name: 'p', projected: {} }] } }),
  ).toEqual([]);
});
