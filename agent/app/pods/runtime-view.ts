/** What runs on this machine, as the runtime reports it. */
import type { AgentMeter } from '../../ports/meter.ts';
import type { PodRuntime, RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';

/** In the order of their starts. */
export const containersOf = (running: RunningPod): readonly RunningContainer[] => [
  ...(running.initContainers ?? []),
  ...running.containers,
];

export const isRunning = (running: RunningPod | undefined): boolean =>
  running !== undefined && containersOf(running).some(({ state }) => state.kind === 'running');

/** Names of the states in upstream's metric of running containers. */
const STATE_LABELS = { waiting: 'created', running: 'running', terminated: 'exited' } as const;

function containersByState(pods: readonly RunningPod[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>(Object.values(STATE_LABELS).map((label) => [label, 0]));
  for (const { state } of pods.flatMap(containersOf)) {
    const label = STATE_LABELS[state.kind];
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  return counts;
}

/** Reads the runtime once for all callers of the same moment. A caller never gets a read that began before its call. */
export class RuntimeView {
  readonly #runtime: PodRuntime;
  readonly #meter: AgentMeter;
  #reading: Promise<readonly RunningPod[]> | undefined;
  #nextReading: Promise<readonly RunningPod[]> | undefined;

  constructor(runtime: PodRuntime, meter: AgentMeter) {
    this.#runtime = runtime;
    this.#meter = meter;
  }

  async podWithUid(uid: string): Promise<RunningPod | undefined> {
    return (await this.#pods()).find((each) => each.uid === uid);
  }

  #pods(): Promise<readonly RunningPod[]> {
    if (this.#reading === undefined) {
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
      return this.#reading;
    }
    this.#nextReading ??= this.#reading
      .catch(() => [])
      .then(() => {
        this.#nextReading = undefined;
        return this.#pods();
      });
    return this.#nextReading;
  }

  #read(): Promise<readonly RunningPod[]> {
    return this.#runtime.pods().then((pods) => {
      this.#meter.gauge('kubelet_running_pods', pods.filter(isRunning).length);
      for (const [state, count] of containersByState(pods)) {
        this.#meter.gauge('kubelet_running_containers', count, { container_state: state });
      }
      return pods;
    });
  }
}
