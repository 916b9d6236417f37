import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { needsStartedStatus, startedStatus } from './started-pod.ts';

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
