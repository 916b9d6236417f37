import { expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { compareSnapshots, groupsOf } from './compare.ts';
import { nextStatus } from './machines.ts';
import { see } from './snapshot.ts';
import { SECTIONS } from './steps.ts';

interface Run {
  readonly hash: string;
  readonly suffixes: readonly string[];
  readonly uid: string;
  readonly node: string;
  readonly revision?: string;
}

/** A Deployment's ReplicaSet and its pods, as one control plane names them. */
function listed({ hash, suffixes, uid, node, revision = '2' }: Run): Record<string, readonly KubeObject[]> {
  const name = `web-${hash}`;
  const labels = { app: 'web', 'pod-template-hash': hash };
  return {
    ReplicaSet: [
      {
        metadata: {
          name,
          uid,
          generation: suffixes.length,
          labels,
          annotations: { 'deployment.kubernetes.io/revision': revision },
          creationTimestamp: '2026-01-01T00:00:00Z',
        },
        status: { replicas: suffixes.length, observedGeneration: suffixes.length },
      },
    ],
    Pod: suffixes.map((suffix) => ({
      metadata: {
        name: `${name}-${suffix}`,
        generateName: `${name}-`,
        uid: `${uid}-${suffix}`,
        labels,
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true }],
      },
      spec: { nodeName: node },
    })),
  };
}

const UPSTREAM: Run = { hash: '5d4f8c7b9', suffixes: ['bcdfg', 'hjklm'], uid: 'u1', node: 'peer-node-0' };
const OURS: Run = { hash: 'zz7wq', suffixes: ['2456b', 'vwxz2'], uid: 'u2', node: 'peer-node-2' };
const differences = (ours: Run) =>
  compareSnapshots(see(listed(UPSTREAM)).snapshot, see(listed(ours)).snapshot).map(
    ({ object, path, upstream, ours: own }) => [object, path, upstream, own],
  );

it('generated names, uids, hashes, times and nodes are no differences', () => {
  expect(Object.keys(see(listed(OURS)).snapshot)).toEqual(['ReplicaSet/web-<2>', 'Pod/web-<2>-1', 'Pod/web-<2>-2']);
  expect(differences(OURS)).toEqual([]);
});

it('another count, revision or owner is a difference', () => {
  expect(differences({ ...OURS, suffixes: ['2456b'] })).toEqual([
    ['Pod/web-<2>-2', '', 'exists', undefined],
    ['ReplicaSet/web-<2>', 'status.replicas', '2', '1'],
  ]);
  expect(differences({ ...OURS, revision: '3' }).map(([object]) => object)).toContain('ReplicaSet/web-<3>');
  const orphaned = listed(OURS);
  delete orphaned['Pod']?.[0]?.metadata.ownerReferences;
  const found = compareSnapshots(see(listed(UPSTREAM)).snapshot, see(orphaned).snapshot);
  expect(found.map(({ path }) => path)).toContain('metadata.ownerReferences.0.uid');
});

it('a known difference has its reason, and others are listed first', () => {
  const pod = (status: object): Record<string, unknown> => ({ 'Pod/a': { status } });
  const found = compareSnapshots(pod({ phase: 'Running' }), pod({ phase: 'Failed', hostIPs: [{ ip: '192.0.2.1' }] }));
  expect(groupsOf(found).map(({ path, reason }) => [path, reason])).toEqual([
    ['status.phase', undefined],
    ['status.hostIPs.*.ip', 'since 1.28, beside hostIP'],
  ]);
});

it('texts of kubectl about generated objects are comparable', () => {
  const { inText } = see(listed(OURS));
  expect(inText('pod "web-zz7wq-2456b" deleted at 2026-01-01T00:00:00Z on peer-node-2')).toBe(
    'pod "web-<2>-*" deleted at <time> on <node>',
  );
});

it('a machine runs a container as its tag says', () => {
  const pod = (tag: string, status: object) =>
    nextStatus({ metadata: {}, spec: { containers: [{ name: 'c', image: `registry.invalid/a:${tag}` }] }, status });
  expect(pod('1', { phase: 'Pending' })).toMatchObject({ phase: 'Running' });
  expect(pod('broken', { phase: 'Pending' })).toMatchObject({ phase: 'Pending' });
  expect(pod('broken', { phase: 'Pending', hostIP: '192.0.2.1' })).toBeUndefined();
  expect(pod('succeeds', { phase: 'Running' })).toMatchObject({ phase: 'Succeeded' });
  expect(pod('fails', { phase: 'Running' })).toMatchObject({ phase: 'Failed' });
  expect(pod('1', { phase: 'Running' })).toBeUndefined();
});

it('more than 40 steps cover every verb of kubectl that acts on workloads', () => {
  const steps = Object.values(SECTIONS).flat();
  const commands = steps.flatMap(({ kubectl }) => (kubectl === undefined ? [] : [kubectl.join(' ')]));
  expect(steps.length).toBeGreaterThan(40);
  const verbs = [
    'create deployment',
    'rollout status',
    'rollout history',
    'rollout undo',
    'rollout restart',
    'rollout pause',
    'rollout resume',
    'scale',
    'autoscale',
    'expose',
    'set image',
    'get',
    'wait',
  ];
  for (const verb of verbs)
    expect(
      commands.some((command) => command.startsWith(verb)),
      verb,
    ).toBe(true);
  for (const cascade of ['orphan', 'foreground']) {
    expect(
      commands.some((command) => command.includes(`--cascade=${cascade}`)),
      cascade,
    ).toBe(true);
  }
});
