import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { containersOf } from '../pod-containers.ts';
import { admitTopology } from './admission.ts';
import { EMPTY_LEDGER, grantOf, type Ledger, type NumaNode, released } from './ledger.ts';
import { maskOf, nodeIdsOf } from './mask.ts';
import type { TopologySettings } from './policy.ts';
import { cpuProvider, memoryProvider } from './providers.ts';

const GI = 2 ** 30;
const MACHINE: readonly NumaNode[] = [
  { id: 0, cpus: [0, 2, 4, 6], memoryBytes: 8 * GI },
  { id: 1, cpus: [1, 3, 5, 7], memoryBytes: 8 * GI },
];
const PROVIDERS = [cpuProvider(MACHINE), memoryProvider(MACHINE)];
const RESTRICTED: TopologySettings = {
  policy: 'restricted',
  scope: 'container',
  allNodes: maskOf([0, 1]),
  distances: undefined,
};

const container = (name: string, cpu: string, memory: string) => ({
  name,
  resources: { requests: { cpu, memory }, limits: { cpu, memory } },
});
const pod = (uid: string, containers: unknown[], initContainers: unknown[] = []): KubeObject => ({
  metadata: { name: uid, uid },
  spec: { containers, initContainers },
});

function admitted(ledger: Ledger, given: KubeObject, settings: TopologySettings | undefined = RESTRICTED) {
  const outcome = admitTopology(settings, PROVIDERS, ledger, given);
  if (outcome.kind !== 'admitted') throw new Error(`${outcome.reason}: ${outcome.message}`);
  return outcome;
}
const cpusOf = (ledger: Ledger, uid: string, name = 'c') => grantOf(ledger, uid, name)?.cpus;

describe('cores and memory by NUMA node', () => {
  it('puts a container on one node, with its memory', () => {
    const { state, hints } = admitted(EMPTY_LEDGER, pod('a', [container('c', '3', '4Gi')]));
    expect(cpusOf(state, 'a')).toEqual([0, 2, 4]);
    expect(grantOf(state, 'a', 'c')?.memoryBytes).toEqual(new Map([[0, 4 * GI]]));
    expect(nodeIdsOf(hints.get('c')?.mask ?? 0n)).toEqual([0]);
  });

  it('uses the other node when the first is full, and fails when both are', () => {
    const one = admitted(EMPTY_LEDGER, pod('a', [container('c', '3', '1Gi')])).state;
    const two = admitted(one, pod('b', [container('c', '3', '1Gi')])).state;
    expect(cpusOf(two, 'b')).toEqual([1, 3, 5]);
    const refusal = admitTopology(RESTRICTED, PROVIDERS, two, pod('c', [container('c', '2', '1Gi')]));
    expect(refusal).toMatchObject({ kind: 'refused', reason: 'TopologyAffinityError' });
  });

  it('spreads over both nodes what fits on neither, as that is the least that could hold it', () => {
    const { state } = admitted(EMPTY_LEDGER, pod('a', [container('c', '6', '10Gi')]));
    expect(cpusOf(state, 'a')).toEqual([0, 2, 4, 6, 1, 3]);
    expect(grantOf(state, 'a', 'c')?.memoryBytes).toEqual(
      new Map([
        [0, 8 * GI],
        [1, 2 * GI],
      ]),
    );
  });

  it('releases the resources of a pod', () => {
    const full = admitted(EMPTY_LEDGER, pod('a', [container('c', '8', '16Gi')])).state;
    expect(admitted(released(full, 'a'), pod('b', [container('c', '4', '8Gi')])).kind).toBe('admitted');
  });

  it('lets only containers of the same pod reuse the resources of its init containers', () => {
    const given = pod('a', [container('c', '2', '1Gi')], [container('i', '4', '4Gi')]);
    const { state } = admitted(EMPTY_LEDGER, given);
    expect(cpusOf(state, 'a', 'i')).toEqual([0, 2, 4, 6]);
    expect(cpusOf(state, 'a')).toEqual([0, 2]);
    expect(cpusOf(admitted(state, pod('b', [container('c', '1', '1Gi')])).state, 'b')).toEqual([1]);
  });

  it('keeps a pod together under the scope pod', () => {
    const used = admitted(EMPTY_LEDGER, pod('a', [container('c', '1', '1Gi')])).state;
    const both = pod('b', [container('c', '2', '1Gi'), container('d', '2', '1Gi')]);
    const { state } = admitted(used, both, { ...RESTRICTED, scope: 'pod' });
    expect([cpusOf(state, 'b'), cpusOf(state, 'b', 'd')]).toEqual([
      [1, 3],
      [5, 7],
    ]);
  });

  it('leaves pods that are not Guaranteed, and shares of a core, to what is left', () => {
    const burstable = { name: 'c', resources: { requests: { cpu: '4' } } };
    expect(admitted(EMPTY_LEDGER, pod('a', [burstable])).state).toEqual(EMPTY_LEDGER);
    expect(cpusOf(admitted(EMPTY_LEDGER, pod('b', [container('c', '500m', '1Gi')])).state, 'b')).toEqual([]);
  });

  it('reports a shortage under a policy that rejects no pod', () => {
    const outcome = admitTopology(
      { ...RESTRICTED, policy: 'best-effort' },
      PROVIDERS,
      EMPTY_LEDGER,
      pod('a', [container('c', '9', '1Gi')]),
    );
    expect(outcome).toMatchObject({
      reason: 'UnexpectedAdmissionError',
      message:
        'Allocate failed due to not enough cpus available to satisfy request: requested=9, available=8, which is unexpected',
    });
  });
});

it('names the memory that is missing', () => {
  const provider = memoryProvider(MACHINE);
  const onFirst = { mask: maskOf([0]), preferred: true };
  const allocate = (ledger: Ledger, uid: string, memory: string) => {
    const wanted = pod(uid, [container('c', '1', memory)]);
    return provider.allocate(ledger, wanted, containersOf(wanted)[0]!, onFirst);
  };
  const first = allocate(EMPTY_LEDGER, 'a', '5Gi');
  if (first.kind !== 'allocated') throw new Error(first.kind);
  expect(allocate(first.state, 'b', '12Gi')).toMatchObject({
    kind: 'failed',
    message: expect.stringMatching(new RegExp(`${12 * GI}\\D.*\\D${11 * GI}$`)),
  });
});

it('names the resource of its hints', () => {
  const given = pod('u', [container('c', '2', '1Gi')]);
  const [first] = containersOf(given);
  const names = PROVIDERS.map((each) => [...(each.hints(EMPTY_LEDGER, given, first!)?.keys() ?? [])]);
  expect(names).toEqual([['cpu'], ['memory']]);
});

it('a machine with many nodes places a container on one of them, or on all', () => {
  const nodes = Array.from({ length: 13 }, (_, id) => ({ id, cpus: [id], memoryBytes: GI }));
  const given = (cpu: string) => ({ ...container('c', cpu, '1Gi') });
  const settings = { ...RESTRICTED, allNodes: maskOf(nodes.map(({ id }) => id)) };
  const outcome = (cpu: string) => admitTopology(settings, [cpuProvider(nodes)], EMPTY_LEDGER, pod('a', [given(cpu)]));
  expect(outcome('1')).toMatchObject({ kind: 'admitted', hints: new Map([['c', { mask: 1n, preferred: true }]]) });
  expect(outcome('2')).toMatchObject({
    kind: 'admitted',
    hints: new Map([['c', { mask: 2n ** 13n - 1n, preferred: true }]]),
  });
});

it('a pod that needs nodes together is refused as a whole', () => {
  const small = [container('a', '3', '1Gi'), container('b', '3', '1Gi')];
  const settings: TopologySettings = { ...RESTRICTED, policy: 'single-numa-node', scope: 'pod' };
  expect(admitTopology(settings, PROVIDERS, EMPTY_LEDGER, pod('a', small))).toMatchObject({
    kind: 'refused',
    reason: 'TopologyAffinityError',
    hint: { preferred: false },
  });
});
