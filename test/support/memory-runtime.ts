/** A PodRuntime of nothing but memory: containers run until the test, or a stop, ends them. */
import type { ContainerState, PodRuntime, RunningContainer, RunningPod } from '../../agent/ports/pod-runtime.ts';
import type { AgentTime } from '../../agent/ports/time.ts';
import { resourcesOf, withResources } from '../../agent/rules/pod-resize.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { recordOf, recordsOf, textOf } from '../../shared/kubernetes/normal-form.ts';

export interface MemoryRuntime extends PodRuntime {
  /** What was asked for: start, stop and remove, by pod name or uid. */
  readonly asked: readonly string[];
  /** Seconds from the signal to the exit of containers. If it exceeds their grace period, they are killed. */
  endsAfterSeconds: number;
  /** Rejections of the next starts. */
  failStarts: number;
  /** Why limits cannot be changed; undefined: they can. */
  resizeFault: string | undefined;
  setState(podName: string, container: string, state: ContainerState, more?: Partial<RunningContainer>): void;
}

interface Kept {
  readonly uid: string;
  pod: KubePod;
  readonly namespace: string;
  readonly name: string;
  containers: RunningContainer[];
}

export function memoryRuntime(time: AgentTime, refusal?: PodRuntime['refusal']): MemoryRuntime {
  const pods = new Map<string, Kept>();
  const listeners: ((uid: string) => void)[] = [];
  const asked: string[] = [];
  const stops = new Map<string, { untilMs: number; readonly over: Promise<void>; cut: AbortController }>();
  const tell = (uid: string): void => {
    for (const listener of listeners) listener(uid);
  };

  async function ending(kept: Kept, endsAtMs: number): Promise<void> {
    for (;;) {
      const stop = stops.get(kept.uid);
      const leftMs = Math.min(endsAtMs, stop?.untilMs ?? endsAtMs) - time.nowMs();
      if (leftMs <= 0 || stop === undefined) break;
      await time.sleep(leftMs, stop.cut.signal);
      stop.cut = new AbortController();
    }
    const killed = time.nowMs() < endsAtMs;
    kept.containers = kept.containers.map((container) =>
      container.state.kind !== 'running'
        ? container
        : {
            ...container,
            state: {
              kind: 'terminated',
              exitCode: killed ? 137 : 0,
              reason: killed ? 'Error' : 'Completed',
              startedAtMs: container.state.startedAtMs,
              finishedAtMs: time.nowMs(),
            },
          },
    );
    stops.delete(kept.uid);
    tell(kept.uid);
  }

  const runtime: MemoryRuntime = {
    version: 'memory://1',
    ...(refusal === undefined ? {} : { refusal }),
    asked,
    endsAfterSeconds: 0,
    failStarts: 0,
    resizeFault: undefined,
    health: async () => ({ kind: 'ready' }),
    async start(pod) {
      const { uid = '', namespace = '', name = '' } = pod.metadata;
      asked.push(`start ${name}`);
      if (runtime.failStarts > 0) {
        runtime.failStarts -= 1;
        throw new Error('no more processes');
      }
      if (pods.has(uid)) return;
      const containers = recordsOf(recordOf(pod.spec)['containers']).map((each): RunningContainer => {
        const container = textOf(each['name']);
        const state: ContainerState = { kind: 'running', startedAtMs: time.nowMs() };
        return { name: container, state, restartCount: 0, containerId: `memory://${uid}/${container}/0` };
      });
      pods.set(uid, { uid, pod, namespace, name, containers });
      tell(uid);
    },
    async stop(uid, graceSeconds) {
      const kept = pods.get(uid);
      asked.push(`stop ${kept?.name ?? uid} ${graceSeconds}`);
      if (kept === undefined) return;
      const untilMs = time.nowMs() + graceSeconds * 1_000;
      const under = stops.get(uid);
      if (under !== undefined) {
        under.untilMs = Math.min(under.untilMs, untilMs);
        under.cut.abort();
        return under.over;
      }
      const { promise: over, resolve, reject } = Promise.withResolvers<void>();
      stops.set(uid, { untilMs, over, cut: new AbortController() });
      ending(kept, time.nowMs() + runtime.endsAfterSeconds * 1_000).then(resolve, reject);
      return over;
    },
    async remove(uid) {
      asked.push(`remove ${pods.get(uid)?.name ?? uid}`);
      pods.delete(uid);
    },
    async resize(pod) {
      const kept = pods.get(pod.metadata.uid ?? '');
      const { resizeFault: message } = runtime;
      asked.push(`resize ${pod.metadata.name}`);
      if (kept === undefined) return { kind: 'failed', message: 'no such pod' };
      const before = kept.pod;
      kept.pod = withResources(before, (name) => resourcesOf(pod, name));
      kept.containers = kept.containers.map(({ resources: actual, ...container }) => {
        const resources = actual ?? resourcesOf(before, container.name);
        return message === undefined || resources === undefined ? container : { ...container, resources };
      });
      return message === undefined ? { kind: 'applied' } : { kind: 'failed', message };
    },
    pods: async () => [...pods.values()].map((kept): RunningPod => ({ ...kept })),
    onChange(listener) {
      listeners.push(listener);
    },
    close: async () => {},
    setState(podName, container, state, more = {}) {
      const kept = [...pods.values()].find(({ name }) => name === podName);
      if (kept === undefined) throw new Error(`no pod ${podName}`);
      kept.containers = kept.containers.map((each) => (each.name === container ? { ...each, ...more, state } : each));
      tell(kept.uid);
    },
  };
  return runtime;
}
