/** Values at the edge of a rule: null in place of absent, blanks before a name, reusable memory of another pod. */

import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { AGENT_METRICS } from '../../agent/adapters/healthz/metrics.ts';
import { createDialler } from '../../agent/adapters/http/dial.ts';
import { newPodEntry, type PodEntry } from '../../agent/app/pods/pod-entry.ts';
import { stopGraceSeconds } from '../../agent/app/pods/pod-sync.ts';
import { podsOf } from '../../agent/rules/pod-manifest.ts';
import { statusChanged } from '../../agent/rules/status-report.ts';
import { swapStartFault } from '../../agent/rules/swap-detection.ts';
import { freeMemory } from '../../agent/rules/topology/ledger.ts';
import { KUBERNETES_YAML, readYaml } from '../../shared/config/yaml-documents.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import type { NodeStatus } from '../../shared/kinds/types.ts';

it('a field that is null in the stored status is no change', () => {
  const stored = { volumesInUse: null, images: [] } as unknown as NodeStatus;
  expect(statusChanged(stored, {})).toBe(false);
  expect(statusChanged(stored, { volumesInUse: ['a'] } as NodeStatus)).toBe(true);
});

it('a manifest may set requests and limits to null', () => {
  const resources = { requests: null, limits: null };
  const value = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i', resources }] },
  };
  expect(podsOf([{ value, at: () => 'file:1' }]).faults).toEqual([]);
});

it('dates and times in a manifest are texts, as the API stores them', () => {
  const text = [
    'apiVersion: v1',
    'kind: Pod',
    'metadata: {name: p, annotations: {built: 2024-01-01, at: 12:30:00}}',
    'spec: {containers: [{name: c, image: i, args: [2024-01-01, 12:30:00]}]}',
  ].join('\n');
  const read = readYaml(text, 'p.yaml', KUBERNETES_YAML);
  if (read.kind !== 'read') throw new Error(read.kind);
  const { pods, faults } = podsOf(read.documents);
  expect(faults).toEqual([]);
  expect(pods).toMatchObject([
    {
      metadata: { annotations: { built: '2024-01-01', at: '12:30:00' } },
      spec: { containers: [{ args: ['2024-01-01', '12:30:00'] }] },
    },
  ]);
});

it('names each swap device, whatever blanks surround it', () => {
  const procSwaps = 'Filename Type Size\n/swap-1 file 1\n  /dev/sda2  partition 2\n';
  expect(swapStartFault(true, procSwaps)).toMatch(/lists \/swap-1, \/dev\/sda2$/);
});

it('memory that init containers of another pod may use again is not free, and that of the own pod is', () => {
  const grant = (podUid: string, bytes: number) => ({
    podUid,
    container: 'init',
    reusable: true,
    cpus: [],
    memoryBytes: new Map([[0, bytes]]),
  });
  const nodes = [{ id: 0, cpus: [0], memoryBytes: 1_000 }];
  const ledger = { grants: [grant('own', 300), grant('other', 500)] };
  expect(freeMemory(nodes, ledger, 'own').get(0)).toBe(500);
});

it('admission latencies fall into the buckets of upstream: fifteen, from 0.05 ms, each twice the previous one', () => {
  const histogram = AGENT_METRICS.find(({ buckets }) => buckets !== undefined);
  expect(histogram?.buckets).toHaveLength(15);
  expect(histogram?.buckets?.slice(0, 3)).toEqual([0.05, 0.1, 0.2]);
  expect(histogram?.buckets?.at(-1)).toBeCloseTo(819.2);
});

it('a pod that has finished terminates within the period that was requested, not within its own', () => {
  const pod = {
    metadata: { name: 'p', uid: 'u' },
    spec: { terminationGracePeriodSeconds: 5 },
    status: { phase: 'Failed' as const },
  };
  const entry: PodEntry = newPodEntry(pod, true);
  expect(stopGraceSeconds(entry)).toBe(5);
  expect(stopGraceSeconds({ ...entry, kill: { graceSeconds: 60 } as NonNullable<PodEntry['kill']> })).toBe(60);
});

it('a fault about an empty document names its own line', () => {
  const outcome = readYaml('kind: A\n---\n---\nkind: B\n', 'config.yaml', KUBERNETES_YAML);
  if (outcome.kind !== 'read') throw new Error(outcome.kind);
  expect(outcome.documents.map(({ value, at }) => [value, at([])])).toEqual([
    [{ kind: 'A' }, 'config.yaml:1'],
    [null, 'config.yaml:2'],
    [{ kind: 'B' }, 'config.yaml:4'],
  ]);
});

it('a proxy that cannot be reached is reported with the cause of the connection', async () => {
  const closed = createServer();
  const port = await listenOnLoopback(closed);
  await new Promise((resolve) => closed.close(resolve));
  const { dial } = createDialler({
    server: new URL('https://api.example'),
    proxy: new URL(`http://127.0.0.1:${port}`),
    timeoutMs: 5_000,
  });
  const error = await new Promise<Error | null>((resolve) => {
    dial(resolve);
  });
  expect(error).toMatchObject({
    message: `the proxy 127.0.0.1:${port} did not answer`,
    cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
  });
});
