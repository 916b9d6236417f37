import { expect, it } from 'vitest';
import type { OwnerReference } from '../types.ts';
import { leaseOf, leaseReplacement } from './lease-record.ts';

const OWN_NODE: OwnerReference = { apiVersion: 'v1', kind: 'Node', name: 'edge-1', uid: 'node-uid' };

function storedOwners(owner: OwnerReference) {
  const result = leaseReplacement({ metadata: { name: 'edge-1', ownerReferences: [owner] } });
  if (result.kind !== 'change') throw new Error(result.kind);
  const { set, ownerUid } = result.change;
  const row = { pk: 's01', sk: 'edge-1', u: 'node-uid', v: 17, i: 'lease-uid', c: 1_700_000_000, ...set };
  return { ownerUid, owners: leaseOf(row)?.metadata.ownerReferences };
}

it('an owner that is the Node of the Lease is stored as a flag', () => {
  expect(storedOwners(OWN_NODE)).toEqual({ ownerUid: 'node-uid', owners: [OWN_NODE] });
});

it.each([
  ['API version', { apiVersion: 'example.com/v1' }],
  ['kind', { kind: 'Machine' }],
  ['name', { name: 'edge-2' }],
])('an owner of another %s is stored as it was written', (_, change) => {
  const owner = { ...OWN_NODE, ...change };
  expect(storedOwners(owner)).toEqual({ ownerUid: undefined, owners: [owner] });
});
