import { expect, it } from 'vitest';
import { protobufBody } from '../../test/support/protobuf-body.ts';
import { pairFaults } from './pairs.ts';

const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'n' }, spec: { strategy: 's' } };
const pair = (json: object, protobuf: Record<string, unknown> = LEASE) => ({
  name: 'lease',
  json: JSON.stringify(json),
  protobuf: protobufBody(protobuf),
});

it('finds what is not read as upstream wrote it', () => {
  const { apiVersion, kind, ...rest } = LEASE;
  expect(pairFaults([pair({ kind, apiVersion, ...rest }), pair({ apiVersion: 'none/v1', kind: 'None' })], {})).toEqual(
    [],
  );
  const unknown = { ...LEASE, spec: { strategy: 's', colour: 'red' } };
  expect(pairFaults([pair(unknown)], {})).toEqual([
    'lease: its JSON is read as another object',
    'lease: its protobuf is read as another object',
  ]);
  expect(pairFaults([pair(unknown)], { 'coordination/v1.LeaseSpec.colour': 'not kept' })).toEqual([]);
  expect(pairFaults([pair(LEASE, { ...LEASE, spec: { strategy: 't' } })], {})).toEqual([
    'lease: its protobuf is read as another object',
  ]);
});
