import { expect, it } from 'vitest';
import { silentMeter } from '../../../test/support/agent-api.ts';
import { memoryRuntime } from '../../../test/support/memory-runtime.ts';
import { SteppedTime, settle } from '../../../test/support/stepped-time.ts';
import type { ContainerState, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import { containersOf, isRunning, RuntimeView } from './runtime-view.ts';

const running: ContainerState = { kind: 'running', startedAtMs: 1 };
const waiting: ContainerState = { kind: 'waiting', reason: 'ContainerCreating' };
const ended: ContainerState = { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: 1, finishedAtMs: 2 };
const containerOf = (name: string, state: ContainerState): RunningContainer => ({ name, state, restartCount: 0 });
const podOf = (uid: string, containers: RunningContainer[], initContainers?: RunningContainer[]): RunningPod => ({
  uid,
  namespace: 'ns',
  name: uid,
  containers,
  ...(initContainers === undefined ? {} : { initContainers }),
});

function world() {
  const reads: PromiseWithResolvers<readonly RunningPod[]>[] = [];
  const gauges: string[] = [];
  const runtime = {
    ...memoryRuntime(new SteppedTime(0)),
    pods() {
      const read = Promise.withResolvers<readonly RunningPod[]>();
      reads.push(read);
      return read.promise;
    },
  };
  const view = new RuntimeView(runtime, {
    ...silentMeter,
    gauge: (name, value, labels) => gauges.push([name, ...Object.values(labels ?? {}), value].join(' ')),
  });
  return { view, reads, gauges };
}

it('lists init containers first, and runs while any of them runs', () => {
  const pod = podOf('a', [containerOf('main', waiting)], [containerOf('init', running)]);
  expect(containersOf(pod).map(({ name }) => name)).toEqual(['init', 'main']);
  expect(isRunning(pod)).toBe(true);
  expect(isRunning(podOf('b', [containerOf('main', ended), containerOf('other', waiting)]))).toBe(false);
  expect(isRunning(undefined)).toBe(false);
});

it('reads once for the callers of one moment, and again for those that came during the read', async () => {
  const { view, reads } = world();
  const found: (string | undefined)[] = [];
  const ask = (uid: string) => void view.podWithUid(uid).then((pod) => found.push(pod?.name));
  ask('a');
  await settle();
  ask('b');
  ask('c');
  await settle();
  expect(reads).toHaveLength(1);
  reads[0]?.resolve([podOf('a', []), podOf('b', [])]);
  await settle();
  expect([found, reads.length]).toEqual([['a'], 2]);
  reads[1]?.resolve([podOf('b', [])]);
  await settle();
  expect([found, reads.length]).toEqual([['a', 'b', undefined], 2]);
  ask('b');
  await settle();
  expect(reads).toHaveLength(3);
});

it('reads again after a read that failed', async () => {
  const { view, reads } = world();
  const first = view.podWithUid('a');
  const second = view.podWithUid('a');
  reads[0]?.reject(new Error('no answer'));
  await expect(first).rejects.toThrow('no answer');
  await settle();
  reads[1]?.resolve([podOf('a', [])]);
  expect(await second).toMatchObject({ uid: 'a' });
});

it('counts pods and containers at each read', async () => {
  const { view, reads, gauges } = world();
  const pod = view.podWithUid('a');
  const containers = [containerOf('one', running), containerOf('two', waiting), containerOf('three', running)];
  reads[0]?.resolve([podOf('a', containers), podOf('b', [containerOf('main', ended)])]);
  await pod;
  expect(gauges).toEqual([
    'kubelet_running_pods 1',
    'kubelet_running_containers created 1',
    'kubelet_running_containers running 2',
    'kubelet_running_containers exited 1',
  ]);
  const later = view.podWithUid('a');
  reads[1]?.resolve([]);
  await later;
  expect(gauges.slice(4).every((each) => each.endsWith(' 0'))).toBe(true);
});
