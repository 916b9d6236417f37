/** What every PodRuntime must do. A runtime that refuses pods is held to refusing them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ContainerState, PodRuntime, RunningPod } from '../../agent/ports/pod-runtime.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import { until } from '../support/until.ts';

export interface RuntimeUnderTest {
  readonly runtime: PodRuntime;
  /** Ends everything that runs, and the runtime. */
  dispose(): Promise<void>;
}

export interface ContractOptions {
  readonly open: () => Promise<RuntimeUnderTest>;
  /** Reason to skip the suite, decided before it is defined. */
  readonly skip?: string;
  /** Milliseconds until a container is seen to run; images may have to be fetched. */
  readonly patienceMs?: number;
  /** What container c0 of the pod has written so far. */
  readonly output: (pod: KubeObject) => Promise<string>;
}

let pods = 0;

/** A pod of shell scripts, one per container; `container` is merged into each container. */
export function shellPod(
  scripts: readonly string[],
  spec: Record<string, unknown> = {},
  container: Record<string, unknown> = {},
): KubeObject {
  pods += 1;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `pod-${pods}`,
      namespace: 'default',
      uid: `00000000-0000-4000-8000-${String(pods).padStart(12, '0')}`,
    },
    spec: {
      restartPolicy: 'Never',
      containers: scripts.map((script, index) => ({
        name: `c${index}`,
        image: 'docker.io/library/busybox:1',
        command: ['/bin/sh', '-c', script],
        ...container,
      })),
      ...spec,
    },
  };
}

export const uidOf = (pod: KubeObject): string => pod.metadata.uid ?? '';

export const podIn = async (runtime: PodRuntime, pod: KubeObject): Promise<RunningPod | undefined> =>
  (await runtime.pods()).find(({ uid }) => uid === uidOf(pod));

export const stateWithin = (
  runtime: PodRuntime,
  pod: KubeObject,
  kind: ContainerState['kind'],
  container = 'c0',
  patienceMs = 10_000,
): Promise<ContainerState> =>
  until(
    async () => {
      const found = await podIn(runtime, pod);
      const state = [...(found?.initContainers ?? []), ...(found?.containers ?? [])].find(
        ({ name }) => name === container,
      )?.state;
      return state?.kind === kind ? state : undefined;
    },
    { withinMs: patienceMs, everyMs: 20, what: `${container} ${kind}` },
  );

/** A script that runs until it is signalled, and exits at once then. */
export const OBEDIENT = 'trap "exit 0" TERM; echo ready; while true; do sleep 0.1; done';
/** One that has to be killed. */
export const STUBBORN = 'trap "" TERM; echo ready; while true; do sleep 0.1; done';

export function definePodRuntimeContract(name: string, options: ContractOptions): void {
  const title = `pod runtime: ${name}${options.skip === undefined ? '' : ` (skipped: ${options.skip})`}`;
  describe.skipIf(options.skip !== undefined)(title, () => {
    let under: RuntimeUnderTest;
    let runtime: PodRuntime;
    beforeEach(async () => {
      under = await options.open();
      runtime = under.runtime;
    });
    afterEach(async () => {
      await under.dispose();
    });
    const becomes = (pod: KubeObject, kind: ContainerState['kind'], container?: string) =>
      stateWithin(runtime, pod, kind, container, options.patienceMs);
    /** Its shell has set its traps. */
    const isReady = (pod: KubeObject) =>
      until(async () => (await options.output(pod)).includes('ready'), {
        withinMs: options.patienceMs ?? 10_000,
        everyMs: 20,
        what: 'a shell that is ready',
      });

    it('names itself and its version, and is ready', async () => {
      expect(runtime.version).toMatch(/^[a-z]+:\/\/.+/);
      expect(await runtime.health()).toEqual({ kind: 'ready' });
    });

    it('minds no stop and no removal of a pod that it does not know', async () => {
      await runtime.stop('11111111-0000-4000-8000-000000000000', 1);
      await runtime.remove('11111111-0000-4000-8000-000000000000');
      expect(await runtime.pods()).toEqual([]);
    });

    it('runs a pod to completion and reports its exit', async ({ skip }) => {
      const pod = shellPod(['exit 3', 'exit 0']);
      if (runtime.refusal !== undefined) {
        await expect(runtime.start(pod)).rejects.toThrow(runtime.refusal.message);
        expect(await runtime.pods()).toEqual([]);
        return skip(runtime.refusal.message);
      }
      await runtime.start(pod);
      expect(await becomes(pod, 'terminated')).toMatchObject({ exitCode: 3, reason: 'Error' });
      expect(await becomes(pod, 'terminated', 'c1')).toMatchObject({ exitCode: 0, reason: 'Completed' });
      expect(await podIn(runtime, pod)).toMatchObject({ name: pod.metadata.name, namespace: 'default' });
    });

    it('starts a running pod no second time', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([OBEDIENT]);
      await runtime.start(pod);
      await isReady(pod);
      const before = await becomes(pod, 'running');
      await runtime.start(pod);
      expect((await podIn(runtime, pod))?.containers).toMatchObject([{ state: before, restartCount: 0 }]);
    });

    it('terminates a pod that handles the signal, and forgets it on removal', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([OBEDIENT]);
      const told: string[] = [];
      runtime.onChange((uid) => told.push(uid));
      await runtime.start(pod);
      await isReady(pod);
      await runtime.stop(uidOf(pod), 20);
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated', exitCode: 0 });
      expect(told).toContain(uidOf(pod));
      await runtime.remove(uidOf(pod));
      expect(await podIn(runtime, pod)).toBeUndefined();
    });

    it('kills what does not end in its grace period', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([STUBBORN]);
      await runtime.start(pod);
      await isReady(pod);
      await runtime.stop(uidOf(pod), 1);
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated', exitCode: 137 });
    });

    it('applies the shorter of two grace periods', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const pod = shellPod([STUBBORN]);
      await runtime.start(pod);
      await isReady(pod);
      const first = runtime.stop(uidOf(pod), 300);
      await runtime.stop(uidOf(pod), 0);
      await first;
      expect((await podIn(runtime, pod))?.containers[0]?.state).toMatchObject({ kind: 'terminated' });
    });

    it('runs init containers one after the other before the others', async ({ skip }) => {
      if (runtime.refusal !== undefined) return skip(runtime.refusal.message);
      const shell = (script: string) => ({
        image: 'docker.io/library/busybox:1',
        command: ['/bin/sh', '-c', script],
      });
      const pod = shellPod(['exit 0'], { initContainers: [{ name: 'i0', ...shell('exit 0') }] });
      await runtime.start(pod);
      expect(await becomes(pod, 'terminated')).toMatchObject({ exitCode: 0 });
    });
  });
}
