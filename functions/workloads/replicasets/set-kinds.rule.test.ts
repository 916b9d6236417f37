import { expect, it } from 'vitest';
import { setKindOf } from './set-kinds.rule.ts';

it('a ReplicaSet is used as it is stored', () => {
  const { kind, component, asReplicaSet } = setKindOf('replicasets');
  expect([kind, component]).toEqual(['ReplicaSet', 'replicaset-controller']);
  const stored = { metadata: { name: 'a' } };
  expect(asReplicaSet(stored)).toBe(stored);
});

it('the selector of a ReplicationController is a map of labels', () => {
  const { kind, component, asReplicaSet } = setKindOf('replicationcontrollers');
  expect([kind, component]).toEqual(['ReplicationController', 'replication-controller']);
  const metadata = { name: 'a' };
  expect(asReplicaSet({ metadata, spec: { replicas: 2, selector: { app: 'web' } } })).toEqual({
    metadata,
    spec: { replicas: 2, selector: { matchLabels: { app: 'web' } } },
  });
  expect(asReplicaSet({ metadata })).toEqual({ metadata, spec: { selector: { matchLabels: {} } } });
});
