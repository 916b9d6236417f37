/** Pods that no node can run, and pods that are not for this scheduler. None of them keeps another pod waiting. */
import { describe, expect, it } from 'vitest';
import type { NodeSelectorTerm, PodSpec } from '../../shared/kinds/types.ts';
import { podsIn } from '../support/api-in-memory.ts';
import { type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const LABELS = { app: 'x' };
const AFFINITY_REASON = "1 node(s) didn't match Pod's node affinity/selector.";
const nodeTerms = (...matchExpressions: NonNullable<NodeSelectorTerm['matchExpressions']>): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  },
});
const podTerm = (topologyKey: string) => ({
  requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: { matchLabels: LABELS } }],
});
const spread = (topologyKey: string): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: LABELS } },
  ],
});
const cpu = (amount: string): PodParts => ({ requests: { cpu: amount } });

/** The bad pod first, of a higher priority. Then one that fits. */
async function withBadPod(parts: PodParts): Promise<ScheduledCluster> {
  const on = new ScheduledCluster();
  await on.node('n1');
  await on.pod('bad', { labels: LABELS, priority: 1_000, ...parts });
  await on.pod('good', cpu('1'));
  await on.settle();
  expect(await on.nodeOf('good')).toBe('n1');
  return on;
}

describe('a pod that no node can run waits with its reason, and no other pod waits behind it', () => {
  it.each([
    ['a label that no node has', nodeTerms({ key: 'disk', operator: 'In', values: ['tape'] }), AFFINITY_REASON],
    [
      'a node affinity that contradicts itself',
      nodeTerms(
        { key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] },
        { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['n1'] },
      ),
      AFFINITY_REASON,
    ],
    [
      'a selector that contradicts the affinity',
      {
        nodeSelector: { 'kubernetes.io/hostname': 'n1' },
        ...nodeTerms({ key: 'kubernetes.io/hostname', operator: 'DoesNotExist' }),
      },
      AFFINITY_REASON,
    ],
    [
      'a spread over an unknown key',
      spread('nowhere.example/rack'),
      "1 node(s) didn't match pod topology spread constraints (missing required label).",
    ],
    [
      'an affinity over an unknown key',
      { affinity: { podAffinity: podTerm('nowhere.example/rack') } },
      "1 node(s) didn't match pod affinity rules.",
    ],
  ])('%s', async (_name, spec, reason) => {
    const on = await withBadPod({ spec });
    expect(await on.reasons('bad')).toBe(reason);
    expect(await on.preemptionText('bad')).toBe('0/1 nodes are available: 1 Preemption is not helpful for scheduling.');
  });

  it.each(['1000000', '9223372036854775807m', '1e15'])('a request of %s cpu', async (amount) => {
    const on = await withBadPod(cpu(amount));
    expect(await on.reasons('bad')).toBe('1 Insufficient cpu.');
    expect(await on.preemptionText('bad')).toBe('0/1 nodes are available: 1 Preemption is not helpful for scheduling.');
  });

  it.each(['9223372036854775807', '1e18'])('a request of %s bytes of memory', async (memory) => {
    const on = await withBadPod({ requests: { memory } });
    expect(await on.reasons('bad')).toBe('1 Insufficient memory.');
  });

  it('affinity and anti-affinity to the same pods: the first one is bound, the second one waits', async () => {
    const affinity = {
      podAffinity: podTerm('kubernetes.io/hostname'),
      podAntiAffinity: podTerm('kubernetes.io/hostname'),
    };
    const on = await withBadPod({ spec: { affinity } });
    expect(await on.nodeOf('bad')).toBe('n1');
    await on.pod('second', { labels: LABELS, spec: { affinity } });
    await on.settle();
    expect(await on.reasons('second')).toBe("1 node(s) didn't match pod anti-affinity rules.");
  });

  it('anti-affinity over an unknown key restricts nothing', async () => {
    const on = await withBadPod({ spec: { affinity: { podAntiAffinity: podTerm('nowhere.example/rack') } } });
    expect(await on.nodeOf('bad')).toBe('n1');
  });
});

describe('a pod that is not for this scheduler is left alone', () => {
  it('another schedulerName', async () => {
    const on = await withBadPod({ spec: { schedulerName: 'somebody-else' } });
    expect(await on.scheduled('bad')).toBeUndefined();
    expect(await on.events('FailedScheduling')).toEqual([]);
    expect(
      await on.fleet.tables.query({ table: 'control', pk: 'scheduler', beginsWith: 'pod#', consistent: true }),
    ).toMatchObject({ items: [] });
  });

  it('the name of a node that does not exist', async () => {
    const on = await withBadPod({ ...cpu('4'), spec: { nodeName: 'absent' } });
    expect(await on.nodeOf('bad')).toBe('absent');
    expect(await on.scheduled('bad')).toBeUndefined();
    expect(await on.events('FailedScheduling')).toEqual([]);
  });
});

describe('a pod that is not valid is refused as upstream refuses it', () => {
  it.each(['-1', '-500m'])('a request of %s cpu', async (cpuRequest) => {
    const on = new ScheduledCluster();
    const containers = [{ name: 'c', image: 'i', resources: { requests: { cpu: cpuRequest } } }];
    const message = `Pod "p" is invalid: spec.containers[0].resources.requests[cpu]: Invalid value: "${cpuRequest}": must be greater than or equal to 0`;
    const creation = on.send('POST', podsIn('default'), { body: { metadata: { name: 'p' }, spec: { containers } } });
    await expect(creation).rejects.toThrow(JSON.stringify(message));
  });
});
