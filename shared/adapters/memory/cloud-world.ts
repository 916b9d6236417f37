/**
 * A region of EC2 as a state machine: instances and volumes with what they were at each moment, so that an answer can be
 * given about the past (EC2 is eventually consistent) and a change can be set for the future (stopping takes its time).
 * Only told times count: nothing here waits. memoryCloud answers from it in process, local/cloud over HTTP.
 */
import type { InstanceState, NodeAddress } from '../../domain/cloud/instance.ts';
import type { Clock } from '../../ports/clock.ts';

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
  /** The guest uses it: a detach without force stays `busy` while the instance runs. */
  readonly mounted: boolean;
}

/** An instance as it stood at one moment. */
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

/** `unknown`: there is no such instance (any more). `incorrectState`: not from the state it is in. */
export type InstanceOrder = 'done' | 'unknown' | 'incorrectState';

/** EC2's error code where it is not `detaching`. */
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
  /** Time in `pending`, `stopping` and `shutting-down`. Milliseconds; 0 by default. */
  readonly startingMs?: number;
  readonly stoppingMs?: number;
  readonly shuttingDownMs?: number;
  readonly detachingMs?: number;
  /** How long a terminated instance is still told of. Milliseconds; an hour by default, as in EC2. */
  readonly terminatedVisibleMs?: number;
}

/** What a world needs to go on after a restart; plain JSON. */
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
  /** Null: not known to EC2 from here on. */
  readonly value: T | null;
}

/** Past moments kept of one thing: enough for any delay of answers that is worth simulating. */
const HISTORY_MAX = 32;

/** What a thing was, is, and will be unless something else happens first. */
class Timeline<T> {
  entries: TimelineEntry<T>[];

  constructor(entries: readonly TimelineEntry<T>[]) {
    this.entries = [...entries];
  }

  at(momentMs: number): T | undefined {
    return this.entries.findLast((entry) => entry.atMs <= momentMs)?.value ?? undefined;
  }

  /** The last value that was known, also of a thing that vanished since. */
  lastKnown(momentMs: number): T | undefined {
    return this.entries.findLast((entry) => entry.atMs <= momentMs && entry.value !== null)?.value ?? undefined;
  }

  /** From now on, and from each later moment named; what was due otherwise no longer happens. */
  become(nowMs: number, ...entries: readonly TimelineEntry<T>[]): void {
    this.entries = [...this.entries.filter((entry) => entry.atMs <= nowMs), ...entries].slice(-HISTORY_MAX);
  }
}

export class CloudWorld {
  readonly #options: Required<CloudWorldOptions>;
  readonly #instances = new Map<string, { instance: CloudInstance; timeline: Timeline<InstancePhase> }>();
  readonly #volumes = new Map<string, { volume: CloudVolume; timeline: Timeline<readonly CloudAttachment[]> }>();
  readonly #told = new WeakSet<TimelineEntry<InstancePhase>>();

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

  /** An instance as of its launch; takes the place of one with the same id. */
  put(instance: CloudInstance): void {
    const { launchedAtMs, state = 'running' } = instance;
    const history: TimelineEntry<InstancePhase>[] = [{ atMs: launchedAtMs, value: { state, launchedAtMs } }];
    if (state === 'pending') {
      const runsAtMs = launchedAtMs + this.#options.startingMs;
      history.push({ atMs: runsAtMs, value: { state: 'running', launchedAtMs } });
    }
    this.#instances.set(instance.instanceId, { instance, timeline: new Timeline(history) });
    this.#tellOnlyAfter(history, this.nowMs - 1);
  }

  /** What happened before is no news. */
  #tellOnlyAfter(history: readonly TimelineEntry<InstancePhase>[], momentMs: number): void {
    for (const entry of history) if (entry.atMs <= momentMs) this.#told.add(entry);
  }

  terminate(instanceId: string): InstanceOrder {
    return this.#order(instanceId, ['pending', 'running', 'stopping', 'stopped'], (phase, nowMs) => {
      const endsAtMs = nowMs + this.#options.shuttingDownMs;
      for (const { timeline } of this.#volumes.values()) {
        const attachments = timeline.at(nowMs) ?? [];
        if (!attachments.some((attachment) => attachment.instanceId === instanceId)) continue;
        const left = attachments.filter((attachment) => attachment.instanceId !== instanceId);
        timeline.become(nowMs, { atMs: endsAtMs, value: left });
      }
      return [
        { atMs: nowMs, value: { ...phase, state: 'shutting-down' } },
        { atMs: endsAtMs, value: { ...phase, state: 'terminated' } },
        { atMs: endsAtMs + this.#options.terminatedVisibleMs, value: null },
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

  /** A stopped instance is launched anew. One that vanished is known again, and runs. */
  start(instanceId: string): InstanceOrder {
    const entry = this.#instances.get(instanceId);
    const nowMs = this.nowMs;
    const before = entry?.timeline.lastKnown(nowMs);
    if (entry !== undefined && before !== undefined && entry.timeline.at(nowMs) === undefined) {
      if (before.state === 'terminated') return 'unknown';
      entry.timeline.become(nowMs, { atMs: nowMs, value: before });
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

  /** EC2 no longer knows the instance, as if it had never been. */
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
    if (entries !== undefined) timeline.become(nowMs, ...entries);
    return 'done';
  }

  instance(instanceId: string, momentMs: number): SeenInstance | undefined {
    const entry = this.#instances.get(instanceId);
    const phase = entry?.timeline.at(momentMs);
    if (entry === undefined || phase === undefined) return undefined;
    const { addresses = [], tags = {}, accountId = this.#options.accountId } = entry.instance;
    return { ...entry.instance, addresses, tags, accountId, ...phase };
  }

  /** Whether there ever was one of this id, known to EC2 or not. */
  has(instanceId: string): boolean {
    return this.#instances.has(instanceId);
  }

  /** All of them, by id. */
  instances(momentMs: number): SeenInstance[] {
    return [...this.#instances.keys()].toSorted().flatMap((id) => this.instance(id, momentMs) ?? []);
  }

  putVolume(volume: CloudVolume): void {
    const timeline = new Timeline<readonly CloudAttachment[]>([{ atMs: 0, value: [] }]);
    this.#volumes.set(volume.volumeId, { volume, timeline });
  }

  /** False when there is no such volume. */
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
    timeline.become(nowMs, { atMs: nowMs, value: [...others, whole] });
    return true;
  }

  deleteVolume(volumeId: string): void {
    const nowMs = this.nowMs;
    this.#volumes.get(volumeId)?.timeline.become(nowMs, { atMs: nowMs, value: null });
  }

  /** Without an instance id: of the only instance it is attached to. */
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
      timeline.become(nowMs, { atMs: nowMs, value: [...others, { ...attachment, state: 'busy' }] });
      return 'detaching';
    }
    timeline.become(
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

  /** Changes of state not asked for yet, oldest first: what EventBridge would be told. */
  takeStateChanges(): InstanceStateChange[] {
    const nowMs = this.nowMs;
    const changes: InstanceStateChange[] = [];
    for (const [instanceId, { timeline }] of this.#instances) {
      let before: InstanceState | undefined;
      for (const entry of timeline.entries) {
        if (entry.atMs > nowMs) break;
        const state = entry.value?.state;
        if (state !== undefined && state !== before && !this.#told.has(entry)) {
          changes.push({ instanceId, state, atMs: entry.atMs });
        }
        this.#told.add(entry);
        before = state ?? before;
      }
    }
    return changes.toSorted((one, other) => one.atMs - other.atMs);
  }

  /** Time of the next change that is due by itself. */
  nextChangeAtMs(): number | undefined {
    const nowMs = this.nowMs;
    const due = [...this.#instances.values()].flatMap(({ timeline }) =>
      timeline.entries.filter((entry) => entry.atMs > nowMs && entry.value !== null).map((entry) => entry.atMs),
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
      this.#tellOnlyAfter(history, this.nowMs);
    }
    for (const { volume, history } of state.volumes) {
      this.#volumes.set(volume.volumeId, { volume, timeline: new Timeline(history) });
    }
  }
}
