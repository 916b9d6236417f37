/**
 * A region of EC2 as a state machine. Instances and volumes keep a timeline of their states:
 *
 * - past states, because EC2 is eventually consistent and may return an older state
 * - planned states, because a stop or a detach needs some time
 *
 * Time comes from the clock; nothing here waits. memoryCloud uses it in process, aws-local/cloud over HTTP.
 */

import type { Clock } from '../../shared/clock.ts';
import type { InstanceState, NodeAddress } from '../../shared/fleet/instances/instance.ts';

export interface CloudInstance {
  readonly instanceId: string;
  /** Availability zone, `us-east-1a`. */
  readonly zone: string;
  readonly instanceType: string;
  readonly launchedAtMs: number;
  readonly addresses?: readonly NodeAddress[];
  readonly tags?: Readonly<Record<string, string>>;
  /** Owner; ours when absent. */
  readonly accountId?: string;
  /** `running` when absent. */
  readonly state?: InstanceState;
}

export interface CloudVolume {
  readonly volumeId: string;
  readonly zone: string;
  readonly tags?: Readonly<Record<string, string>>;
}

export interface CloudAttachment {
  readonly instanceId: string;
  readonly state: 'attaching' | 'attached' | 'detaching' | 'detached' | 'busy';
  readonly isRootDevice: boolean;
  readonly managedByAws: boolean;
  /** `/dev/xvdf`. */
  readonly device: string;
  /** The guest uses the volume. While the instance runs, a detach without force leaves it `busy`. */
  readonly mounted: boolean;
}

/** An instance at one moment. */
export interface SeenInstance extends Required<Omit<CloudInstance, 'state'>> {
  readonly state: InstanceState;
}

export interface SeenVolume extends Required<CloudVolume> {
  readonly attachments: readonly CloudAttachment[];
}

export interface InstanceStateChange {
  readonly instanceId: string;
  readonly state: InstanceState;
  readonly atMs: number;
}

/** `unknown`: the instance does not exist, or no longer exists. `incorrectState`: not allowed in its current state. */
export type InstanceOrder = 'done' | 'unknown' | 'incorrectState';

/** `detaching`, or EC2's error code. */
export type DetachOrder =
  | 'detaching'
  | 'InvalidVolume.NotFound'
  | 'InvalidAttachment.NotFound'
  | 'IncorrectState'
  | 'OperationNotPermitted'
  | 'UnsupportedOperation';

export interface CloudWorldOptions {
  readonly clock: Clock;
  readonly accountId: string;
  /** Time in `pending`. Milliseconds, as all of these; 0 by default. */
  readonly startingMs?: number;
  /** Time in `stopping`. */
  readonly stoppingMs?: number;
  /** Time in `shutting-down`. */
  readonly shuttingDownMs?: number;
  /** Time in `detaching`. */
  readonly detachingMs?: number;
  /** How long EC2 still returns a terminated instance. An hour by default, as in EC2. */
  readonly terminatedVisibleMs?: number;
}

/** The state of a world, to restore it after a restart. Plain JSON. */
export interface CloudWorldState {
  readonly instances: readonly {
    readonly instance: CloudInstance;
    readonly history: readonly TimelineEntry<InstancePhase>[];
  }[];
  readonly volumes: readonly {
    readonly volume: CloudVolume;
    readonly history: readonly TimelineEntry<readonly CloudAttachment[]>[];
  }[];
}

interface InstancePhase {
  readonly state: InstanceState;
  readonly launchedAtMs: number;
}

interface TimelineEntry<T> {
  readonly atMs: number;
  /** Null: unknown to EC2 from this moment. */
  readonly value: T | null;
}

/** Maximum number of entries per instance or volume. It covers every simulated delay of answers. */
const HISTORY_MAX = 32;

/** Past, current and planned values of an instance or a volume. */
class Timeline<T> {
  entries: TimelineEntry<T>[];

  constructor(entries: readonly TimelineEntry<T>[]) {
    this.entries = [...entries];
  }

  at(momentMs: number): T | undefined {
    return this.entries.findLast((entry) => entry.atMs <= momentMs)?.value ?? undefined;
  }

  /** The last value before it vanished, or the current value. */
  lastKnown(momentMs: number): T | undefined {
    return this.entries.findLast((entry) => entry.atMs <= momentMs && entry.value !== null)?.value ?? undefined;
  }

  /** Replaces all planned values. */
  plan(nowMs: number, ...entries: readonly TimelineEntry<T>[]): void {
    this.entries = [...this.entries.filter((entry) => entry.atMs <= nowMs), ...entries].slice(-HISTORY_MAX);
  }
}

export class CloudWorld {
  readonly #options: Required<CloudWorldOptions>;
  readonly #instances = new Map<string, { instance: CloudInstance; timeline: Timeline<InstancePhase> }>();
  readonly #volumes = new Map<string, { volume: CloudVolume; timeline: Timeline<readonly CloudAttachment[]> }>();
  readonly #reported = new WeakSet<TimelineEntry<InstancePhase>>();

  constructor(options: CloudWorldOptions) {
    this.#options = {
      startingMs: 0,
      stoppingMs: 0,
      shuttingDownMs: 0,
      detachingMs: 0,
      terminatedVisibleMs: 3_600_000,
      ...options,
    };
  }

  get nowMs(): number {
    return this.#options.clock.nowMs();
  }

  /** Adds an instance from its launch time on. It replaces an instance with the same id. */
  put(instance: CloudInstance): void {
    const { launchedAtMs, state = 'running' } = instance;
    const history: TimelineEntry<InstancePhase>[] = [{ atMs: launchedAtMs, value: { state, launchedAtMs } }];
    if (state === 'pending') {
      const runsAtMs = launchedAtMs + this.#options.startingMs;
      history.push({ atMs: runsAtMs, value: { state: 'running', launchedAtMs } });
    }
    this.#instances.set(instance.instanceId, { instance, timeline: new Timeline(history) });
    this.#reportOnlyAfter(history, this.nowMs - 1);
  }

  /** State changes up to this moment are not reported. */
  #reportOnlyAfter(history: readonly TimelineEntry<InstancePhase>[], momentMs: number): void {
    for (const entry of history) if (entry.atMs <= momentMs) this.#reported.add(entry);
  }

  terminate(instanceId: string): InstanceOrder {
    return this.#order(instanceId, ['pending', 'running', 'stopping', 'stopped'], (phase, nowMs) => {
      const terminatedAtMs = nowMs + this.#options.shuttingDownMs;
      for (const { timeline } of this.#volumes.values()) {
        const attachments = timeline.at(nowMs) ?? [];
        if (!attachments.some((attachment) => attachment.instanceId === instanceId)) continue;
        const others = attachments.filter((attachment) => attachment.instanceId !== instanceId);
        timeline.plan(nowMs, { atMs: terminatedAtMs, value: others });
      }
      return [
        { atMs: nowMs, value: { ...phase, state: 'shutting-down' } },
        { atMs: terminatedAtMs, value: { ...phase, state: 'terminated' } },
        { atMs: terminatedAtMs + this.#options.terminatedVisibleMs, value: null },
      ];
    });
  }

  stop(instanceId: string): InstanceOrder {
    return this.#order(instanceId, ['pending', 'running', 'stopping', 'stopped'], (phase, nowMs) =>
      phase.state === 'stopping' || phase.state === 'stopped'
        ? undefined
        : [
            { atMs: nowMs, value: { ...phase, state: 'stopping' } },
            { atMs: nowMs + this.#options.stoppingMs, value: { ...phase, state: 'stopped' } },
          ],
    );
  }

  /** Launches a stopped instance again. A vanished one returns in its last state. */
  start(instanceId: string): InstanceOrder {
    const entry = this.#instances.get(instanceId);
    const nowMs = this.nowMs;
    const before = entry?.timeline.lastKnown(nowMs);
    if (entry !== undefined && before !== undefined && entry.timeline.at(nowMs) === undefined) {
      if (before.state === 'terminated') return 'unknown';
      entry.timeline.plan(nowMs, { atMs: nowMs, value: before });
    }
    return this.#order(instanceId, ['pending', 'running', 'stopped'], (phase) =>
      phase.state !== 'stopped'
        ? undefined
        : [
            { atMs: nowMs, value: { state: 'pending', launchedAtMs: nowMs } },
            { atMs: nowMs + this.#options.startingMs, value: { state: 'running', launchedAtMs: nowMs } },
          ],
    );
  }

  /** From now on EC2 does not know the instance. */
  vanish(instanceId: string): InstanceOrder {
    return this.#order(
      instanceId,
      ['pending', 'running', 'stopping', 'stopped', 'shutting-down', 'terminated'],
      (_, nowMs) => [{ atMs: nowMs, value: null }],
    );
  }

  #order(
    instanceId: string,
    from: readonly InstanceState[],
    next: (phase: InstancePhase, nowMs: number) => readonly TimelineEntry<InstancePhase>[] | undefined,
  ): InstanceOrder {
    const nowMs = this.nowMs;
    const timeline = this.#instances.get(instanceId)?.timeline;
    const phase = timeline?.at(nowMs);
    if (timeline === undefined || phase === undefined) return 'unknown';
    if (!from.includes(phase.state)) return 'incorrectState';
    const entries = next(phase, nowMs);
    if (entries !== undefined) timeline.plan(nowMs, ...entries);
    return 'done';
  }

  instance(instanceId: string, momentMs: number): SeenInstance | undefined {
    const entry = this.#instances.get(instanceId);
    const phase = entry?.timeline.at(momentMs);
    if (entry === undefined || phase === undefined) return undefined;
    const { addresses = [], tags = {}, accountId = this.#options.accountId } = entry.instance;
    return { ...entry.instance, addresses, tags, accountId, ...phase };
  }

  /** Whether an instance with this id was ever added, including vanished ones. */
  has(instanceId: string): boolean {
    return this.#instances.has(instanceId);
  }

  /** Every instance, in order of the ids. */
  instances(momentMs: number): SeenInstance[] {
    return [...this.#instances.keys()].toSorted().flatMap((id) => this.instance(id, momentMs) ?? []);
  }

  putVolume(volume: CloudVolume): void {
    const timeline = new Timeline<readonly CloudAttachment[]>([{ atMs: 0, value: [] }]);
    this.#volumes.set(volume.volumeId, { volume, timeline });
  }

  /** False if the volume does not exist. */
  attachVolume(volumeId: string, attachment: Pick<CloudAttachment, 'instanceId'> & Partial<CloudAttachment>): boolean {
    const timeline = this.#volumes.get(volumeId)?.timeline;
    if (timeline === undefined) return false;
    const nowMs = this.nowMs;
    const others = (timeline.at(nowMs) ?? []).filter((other) => other.instanceId !== attachment.instanceId);
    const whole: CloudAttachment = {
      state: 'attached',
      isRootDevice: false,
      managedByAws: false,
      device: attachment.isRootDevice ? '/dev/xvda' : '/dev/xvdf',
      mounted: false,
      ...attachment,
    };
    timeline.plan(nowMs, { atMs: nowMs, value: [...others, whole] });
    return true;
  }

  deleteVolume(volumeId: string): void {
    const nowMs = this.nowMs;
    this.#volumes.get(volumeId)?.timeline.plan(nowMs, { atMs: nowMs, value: null });
  }

  /** Without an instance id it detaches from the first attachment. */
  detachVolume(volumeId: string, instanceId: string | undefined, force: boolean): DetachOrder {
    const nowMs = this.nowMs;
    const timeline = this.#volumes.get(volumeId)?.timeline;
    const attachments = timeline?.at(nowMs);
    if (timeline === undefined || attachments === undefined) return 'InvalidVolume.NotFound';
    if (attachments.length === 0) return 'IncorrectState';
    const attachment = attachments.find((one) => one.instanceId === (instanceId ?? attachments[0]?.instanceId));
    if (attachment === undefined) return 'InvalidAttachment.NotFound';
    if (attachment.managedByAws) return 'UnsupportedOperation';
    const state = this.instance(attachment.instanceId, nowMs)?.state;
    const runs = state === 'pending' || state === 'running';
    if (attachment.isRootDevice && runs) return 'OperationNotPermitted';
    const others = attachments.filter((one) => one !== attachment);
    if (attachment.mounted && runs && !force) {
      timeline.plan(nowMs, { atMs: nowMs, value: [...others, { ...attachment, state: 'busy' }] });
      return 'detaching';
    }
    timeline.plan(
      nowMs,
      { atMs: nowMs, value: [...others, { ...attachment, state: 'detaching' }] },
      { atMs: nowMs + this.#options.detachingMs, value: others },
    );
    return 'detaching';
  }

  volume(volumeId: string, momentMs: number): SeenVolume | undefined {
    const entry = this.#volumes.get(volumeId);
    const attachments = entry?.timeline.at(momentMs);
    if (entry === undefined || attachments === undefined) return undefined;
    return { tags: {}, ...entry.volume, attachments };
  }

  volumes(momentMs: number): SeenVolume[] {
    return [...this.#volumes.keys()].toSorted().flatMap((id) => this.volume(id, momentMs) ?? []);
  }

  /** State changes since the previous call, oldest first: the events that EventBridge would receive. */
  takeStateChanges(): InstanceStateChange[] {
    const nowMs = this.nowMs;
    const changes: InstanceStateChange[] = [];
    for (const [instanceId, { timeline }] of this.#instances) {
      let before: InstanceState | undefined;
      for (const entry of timeline.entries) {
        if (entry.atMs > nowMs) break;
        const state = entry.value?.state;
        if (state !== undefined && state !== before && !this.#reported.has(entry)) {
          changes.push({ instanceId, state, atMs: entry.atMs });
        }
        this.#reported.add(entry);
        before = state ?? before;
      }
    }
    return changes.toSorted((one, other) => one.atMs - other.atMs);
  }

  /**
   * Time of the next change that takeStateChanges has not returned. It has passed if it came since that call: time went
   * on meanwhile, so the clock does not say which changes were returned.
   */
  nextChangeAtMs(): number | undefined {
    const due = [...this.#instances.values()].flatMap(({ timeline }) =>
      timeline.entries.filter((entry) => !this.#reported.has(entry) && entry.value !== null).map((entry) => entry.atMs),
    );
    return due.length === 0 ? undefined : Math.min(...due);
  }

  state(): CloudWorldState {
    return {
      instances: [...this.#instances.values()].map(({ instance, timeline }) => ({
        instance,
        history: timeline.entries,
      })),
      volumes: [...this.#volumes.values()].map(({ volume, timeline }) => ({ volume, history: timeline.entries })),
    };
  }

  restore(state: CloudWorldState): void {
    for (const { instance, history } of state.instances) {
      this.#instances.set(instance.instanceId, { instance, timeline: new Timeline(history) });
      this.#reportOnlyAfter(history, this.nowMs);
    }
    for (const { volume, history } of state.volumes) {
      this.#volumes.set(volume.volumeId, { volume, timeline: new Timeline(history) });
    }
  }
}
