import { expect, it } from 'vitest';
import { collectedDraft } from './decisions.ts';

it.each([
  ['Pod', 'pods', { kind: 'Pod', name: 'web' }],
  ['ReplicaSet', 'replicasets', { kind: 'Object', name: 'replicasets/web' }],
])('a collected %s is found by explain under its name', (kind, resource, about) => {
  const ref = { resource, namespace: 'team', name: 'web' };
  const draft = collectedDraft(ref, { kind, metadata: { uid: 'u' } }, { owners: [], hasDependents: false }, 7);
  expect(draft).toMatchObject({
    act: 'Collected',
    atMs: 7,
    rule: 'ownersGone',
    about: { ...about, namespace: 'team', uid: 'u' },
  });
});
