import { describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { podStatusReport } from './pod-requests.ts';
import { needsStartedStatus, resizedStatus, startedStatus } from './started-pod.ts';

const NOW_MS = 1_700_000_000_000;
const podOf = (spec: Record<string, unknown>, status?: Record<string, unknown>): KubeObject => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u1' },
  spec,
  ...(status === undefined ? {} : { status }),
});
const good = { name: 'good', image: 'registry.example/web:1' };

it.each(['nonexistent', 'registry.example/non-existent:1', 'invalid.example/x', 'web:404'])(
  'does not start the image %s',
  (image) => {
    const status = startedStatus(podOf({ containers: [{ name: 'main', image }, good] }), NOW_MS, undefined);
    expect(status).toMatchObject({
      phase: 'Pending',
      containerStatuses: [
        { name: 'main', state: { waiting: { reason: 'ErrImagePull' } }, restartCount: 0 },
        { name: 'good', state: { running: { startedAt: '2023-11-14T22:13:20Z' } } },
      ],
    });
  },
);

it('starts all containers at once: init containers are terminated, but for sidecars', () => {
  const spec = {
    initContainers: [
      { name: 'init', image: 'x' },
      { name: 'side', image: 'x', restartPolicy: 'Always' },
    ],
    containers: [good],
  };
  const times = { startedAt: '2023-11-14T22:13:20Z', finishedAt: '2023-11-14T22:13:20Z' };
  expect(startedStatus(podOf(spec), NOW_MS, '192.0.2.1')).toMatchObject({
    phase: 'Running',
    hostIP: '192.0.2.1',
    initContainerStatuses: [
      { name: 'init', state: { terminated: { exitCode: 0, reason: 'Completed', ...times } } },
      { name: 'side', state: { running: {} } },
    ],
    containerStatuses: [{ name: 'good', state: { running: {} } }],
  });
});

it('is needed until the stored status says the same', () => {
  const ready = (phase: string, status: string) => ({ phase, conditions: [{ type: 'Ready', status }] });
  const bad = { name: 'main', image: 'nonexistent' };
  const cases: [Record<string, unknown>, Record<string, unknown> | undefined, boolean][] = [
    [{ containers: [good] }, undefined, true],
    [{ containers: [good] }, ready('Pending', 'False'), true],
    [{ containers: [good] }, ready('Running', 'False'), true],
    [{ containers: [good] }, ready('Running', 'True'), false],
    [{ containers: [good] }, { phase: 'Succeeded' }, false],
    [{ containers: [bad] }, ready('Running', 'True'), true],
    [{ containers: [bad] }, ready('Pending', 'True'), true],
    [{ containers: [bad] }, ready('Pending', 'False'), false],
    [{ initContainers: [bad], containers: [good] }, ready('Pending', 'False'), false],
    [{ initContainers: [bad], containers: [good] }, ready('Running', 'True'), true],
  ];
  expect(cases.map(([spec, status]) => needsStartedStatus(podOf(spec, status)))).toEqual(
    cases.map(([, , needed]) => needed),
  );
});

describe('a resize of a started pod', () => {
  const sized = (cpu: string) => ({ requests: { cpu, memory: '1Gi' } });
  const NODE = { metadata: {}, status: { allocatable: { cpu: '4', memory: '8Gi', pods: '9' } } };
  const FROM_START = '2023-11-14T22:13:20Z';
  const restart = { resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] };
  const podWith = (cpu: string, uid: string, more: object = {}): KubePod => ({
    metadata: { name: uid, namespace: 'ns', uid, generation: 1 },
    spec: { containers: [{ ...good, ...more, resources: sized(cpu) }] },
  });
  const started = (pod: KubePod): KubePod => ({ ...pod, status: startedStatus(pod, NOW_MS, undefined) });
  /** What the API has after the spec wants this. */
  const wanting = (pod: KubePod, cpu: string, generation = 2): KubePod => ({
    ...podWith(cpu, pod.metadata.uid ?? '', pod.spec?.containers?.[0]),
    metadata: { ...pod.metadata, generation },
    status: pod.status ?? {},
  });
  const decided = (pod: KubePod, others: readonly KubePod[] = [], node: KubeObject = NODE) =>
    resizedStatus(pod, () => [pod, ...others], node, NOW_MS + 60_000);
  const web = started(podWith('1', 'web'));

  it('is none while it has what it wants', () => {
    expect(web.status?.containerStatuses).toMatchObject([{ resources: sized('1') }]);
    expect(decided(web)).toBeUndefined();
    expect(decided({ ...wanting(web, '2'), status: { ...web.status, phase: 'Succeeded' } })).toBeUndefined();
    expect(decided(wanting(started(podOf({ containers: [good] }) as KubePod), '2'))).toBeUndefined();
  });

  it('applies at once, by a restart if that is the policy', () => {
    const status = decided(wanting(web, '2')) as KubePod['status'];
    expect(status).toMatchObject({
      observedGeneration: 2,
      containerStatuses: [{ restartCount: 0, allocatedResources: sized('2').requests, resources: sized('2') }],
    });
    expect(status?.containerStatuses?.[0]?.state).toEqual({ running: { startedAt: FROM_START } });
    expect(decided(wanting(started(podWith('1', 'web', restart)), '2'))).toMatchObject({
      containerStatuses: [
        {
          restartCount: 1,
          resources: sized('2'),
          state: { running: { startedAt: '2023-11-14T22:14:20Z' } },
          lastState: { terminated: { startedAt: FROM_START, finishedAt: '2023-11-14T22:14:20Z' } },
        },
      ],
    });
    expect(decided(wanting(web, '64'), [], { metadata: {} })).toMatchObject({ containerStatuses: [{}] });
  });

  it('is refused by the rule of the agent, once, and reported until it is allocated', () => {
    const other = started(podWith('3', 'other'));
    const large = wanting(web, '2');
    const refusal = decided(large, [other]);
    expect(refusal?.['conditions']).toMatchObject([
      { type: 'PodResizePending', status: 'True', reason: 'Deferred', observedGeneration: 2 },
    ]);
    expect(refusal).not.toHaveProperty('containerStatuses');
    const conditions = [...(web.status?.conditions ?? []), ...recordsOf(refusal?.['conditions'])] as never[];
    const pending = { ...large, status: { ...web.status, conditions } };
    expect(decided(pending, [other])).toBeUndefined();
    expect(startedStatus(pending, NOW_MS, undefined)).toMatchObject({
      containerStatuses: [{ resources: sized('1') }],
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'PodResizePending' })]),
    });
    const applied = decided(pending, []);
    expect(applied).toMatchObject({ containerStatuses: [{ resources: sized('2') }] });
    expect(podStatusReport(pending, applied ?? {}).body.status['conditions']).toEqual([
      { $patch: 'delete', type: 'PodResizePending' },
    ]);
    expect(decided(wanting(pending, '1', 3), [other])).toMatchObject({ observedGeneration: 3 });
    const growing = wanting(started(podWith('1', 'growing')), '4');
    expect(decided(large, [growing])).toMatchObject({ containerStatuses: [{ resources: sized('2') }] });
    expect(decided(wanting(web, '5'))?.['conditions']).toMatchObject([{ reason: 'Infeasible' }]);
  });
});
