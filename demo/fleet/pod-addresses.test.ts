import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { nameMachines } from './names.ts';
import { podAddresses } from './pod-addresses.ts';

const [machine, inOtherZone, next] = nameMachines(4, ['a', 'b']);

const pod = (uid: string, status: object = {}, spec: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, namespace: 'default', uid },
  spec: { ...spec },
  status: { ...status },
});
const withAddresses = (pods: readonly KubeObject[]): KubeObject[] => {
  const addresses = podAddresses(machine!, pods);
  return pods.map((each) => ({ ...each, status: { ...each.status, podIP: addresses.get(each.metadata.uid ?? '') } }));
};
const addressesOf = (pods: readonly KubeObject[]): unknown[] => pods.map(({ status }) => status?.['podIP']);

it('a pod keeps its address, whatever pods come and go before it in the list', () => {
  const first = withAddresses([pod('b'), pod('d')]);
  expect(addressesOf(first)).toEqual(['10.128.0.1', '10.128.0.2']);
  const second = withAddresses([pod('a'), first[0]!, pod('c'), first[1]!]);
  expect(addressesOf(second)).toEqual(['10.128.0.3', '10.128.0.1', '10.128.0.4', '10.128.0.2']);
  const third = withAddresses([pod('0'), second[0]!, second[3]!]);
  expect(addressesOf(third)).toEqual(['10.128.0.1', '10.128.0.3', '10.128.0.2']);
});

it('110 pods of one machine, and pods of two machines, have different addresses', () => {
  const pods = Array.from({ length: 110 }, (_, index) => pod(`p${index}`));
  const all = [machine!, inOtherZone!, next!].flatMap((each) => [...podAddresses(each, pods).values()]);
  expect(new Set(all).size).toBe(330);
  for (const address of all) expect(address).toMatch(/^10\.1(2[89]|\d\d)\.\d{1,3}\.\d{1,3}$/);
});

it('a pod in the network of its machine has the address of the machine, and a pod that succeeded has none', () => {
  const pods = [
    pod('host', {}, { hostNetwork: true }),
    pod('done', { phase: 'Succeeded', podIP: '10.128.0.1' }),
    pod('n'),
  ];
  expect([...podAddresses(machine!, pods)]).toEqual([
    ['host', '10.16.0.10'],
    ['n', '10.128.0.1'],
  ]);
});

it('pods beyond the addresses of a machine share the last one', () => {
  const addresses = [
    ...podAddresses(
      machine!,
      Array.from({ length: 130 }, (_, index) => pod(`p${index}`)),
    ).values(),
  ];
  expect(new Set(addresses).size).toBe(127);
  expect(addresses.slice(-4)).toEqual(Array(4).fill('10.128.0.127'));
});
