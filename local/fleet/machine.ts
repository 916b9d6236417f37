/**
 * One simulated machine: what a kubelet does towards the API, and nothing it does on the machine.
 *
 * Life: register the Node, then turn after turn renew the Lease, and post status when it is due. A turn is a bounded
 * number of requests and yields the time until the next one. After trouble (a refused or late renewal, a silence) the
 * machine reads its Node and posts at once if somebody wrote other conditions on it, because nothing else would tell it.
 * Where a kubelet compares with its watch cache every 10 s, a machine here reads its Node, as often as a fleet of its
 * size can afford: ten thousand of them live in one process.
 *
 * Differs from a kubelet: a plain failure of a renewal is retried after the back-off rather than four times at once.
 */
import type { KubeNode, KubeObject } from '../../shared/kube/types.ts';
import type { Clock, RandomSource } from '../../shared/ports/clock.ts';
import type { ApiAnswer, SendRequest } from './api-client.ts';
import type { MachineIdentity } from './names.ts';
import {
  addressOf,
  conditionsDiffer,
  LEASE_NAMESPACE,
  labelCorrections,
  leaseAt,
  nodeAt,
  statusPatchAt,
} from './node-object.ts';
import { podWork } from './pods.ts';

/** Where waiting comes from; a test brings its own. */
export interface Timers {
  set(callback: () => void, delayMs: number): unknown;
  clear(handle: unknown): void;
}

/** Tries of one renewal, conflicts included, as in a kubelet. */
export const RENEW_TRIES_MAX = 5;
/** Times one turn may start over because the Node or Lease was gone. */
const RESTARTS_MAX = 2;
/** Wait after the first failed turn; doubled with each further one up to the limit. */
export const BACK_OFF_FIRST_MS = 200;
export const BACK_OFF_LIMIT_MS = 7_000;
/** The server's word, in the answer to a beat, that pods of the node changed. */
const PODS_VERSION = 'nodekeeper.dev/pods-version';
/** Share of the interval by which a wait may be longer, so that a fleet started together drifts apart. */
export const INTERVAL_JITTER = 0.04;

export interface MachineSettings {
  readonly region: string;
  readonly beatIntervalSeconds: number;
  readonly leaseDurationSeconds: number;
  /** Time between status posts when nothing changed. Seconds. */
  readonly statusIntervalSeconds: number;
  /** Time between looks at the own Node, whether somebody wrote other conditions on it. Seconds. */
  readonly lookIntervalSeconds: number;
}

/** Sums over the whole fleet, for status and benchmarks. */
export interface FleetCounters {
  registrations: number;
  /** Acknowledged lease renewals, creations included. */
  beats: number;
  statusPosts: number;
  /** Renewals refused with 409. */
  conflicts: number;
  failedTurns: number;
}

export interface MachineStatus {
  readonly name: string;
  readonly zone: string;
  /** It means to beat; false after silence. */
  readonly beating: boolean;
  readonly registered: boolean;
  /** Time of the last acknowledged renewal, this process's clock. */
  readonly lastBeatAtMs: number | undefined;
  /** Turns failed since the last that worked. */
  readonly failures: number;
  /** What the server said last when it refused, or why it could not be reached. */
  readonly lastFailure: string | undefined;
}

export interface MachineDependencies {
  readonly send: SendRequest;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Pick<RandomSource, 'fraction'>;
  readonly counters: FleetCounters;
}

export interface Machine {
  readonly identity: MachineIdentity;
  /** Beats and posts status now, then at its slots; no effect but a beat and a post on a machine that beats already. */
  beat(): void;
  /** Power cut: no request is made from here on; one that is under way may still arrive. */
  silence(): void;
  status(): MachineStatus;
}

type Step = { readonly kind: 'done' } | { readonly kind: 'gone' } | { readonly kind: 'failed'; readonly why: string };

const DONE: Step = { kind: 'done' };
const GONE: Step = { kind: 'gone' };

export function createMachine(
  identity: MachineIdentity,
  settings: MachineSettings,
  { send, clock, timers, random, counters }: MachineDependencies,
): Machine {
  const { name } = identity;
  const nodePath = `/api/v1/nodes/${name}`;
  const leasesPath = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases`;
  const leasePath = `${leasesPath}/${name}`;
  const intervalMs = settings.beatIntervalSeconds * 1_000;
  const statusIntervalMs = settings.statusIntervalSeconds * 1_000;
  const lookIntervalMs = settings.lookIntervalSeconds * 1_000;

  let beating = false;
  /** Counts silences and starts: a turn of an older life does nothing more. */
  let life = 0;
  let timer: unknown;
  let nodeUid: string | undefined;
  /** The Node as just read, for the status post of the same turn. */
  let freshNode: KubeNode | undefined;
  let lease: KubeObject | undefined;
  let statusDueAtMs = 0;
  let lookDueAtMs = 0;
  let mustPost = false;
  let mustLook = false;
  let lastBeatAtMs: number | undefined;
  let failures = 0;
  let lastFailure: string | undefined;
  let firstTurn = true;
  /** Pods version of the last answer whose pods were dealt with. */
  let podsSeen = '';
  let podsDueAtMs = Number.POSITIVE_INFINITY;

  const failed = (what: string, answer: ApiAnswer): Step => ({ kind: 'failed', why: `${what}: ${describe(answer)}` });

  async function register(): Promise<Step> {
    const created = await send({
      method: 'POST',
      path: '/api/v1/nodes',
      body: nodeAt(identity, settings.region, clock.nowMs()),
    });
    if (isStatus(created, 201, 200)) {
      adopt(objectIn(created));
      counters.registrations += 1;
      mustPost = true;
      return DONE;
    }
    if (!isStatus(created, 409, 403)) return failed('registering', created);
    const found = await send({ method: 'GET', path: nodePath });
    if (!isStatus(found, 200)) return failed('reading the Node that is said to exist', found);
    const node = objectIn(found);
    const labels = labelCorrections(identity, settings.region, node);
    // As a kubelet: a providerID once set is never changed.
    const providerID = node.spec?.providerID === undefined ? identity.providerId : undefined;
    if (labels !== undefined || providerID !== undefined) {
      const patched = await send({
        method: 'PATCH',
        path: nodePath,
        body: {
          ...(labels === undefined ? {} : { metadata: { labels } }),
          ...(providerID === undefined ? {} : { spec: { providerID } }),
        },
        contentType: 'application/merge-patch+json',
      });
      if (!isStatus(patched, 200)) return failed('correcting the Node found', patched);
    }
    adopt(node);
    counters.registrations += 1;
    mustPost = true;
    return DONE;
  }

  function adopt(node: KubeNode): void {
    lookDueAtMs = clock.nowMs() + lookIntervalMs;
    nodeUid = node.metadata.uid ?? '';
    freshNode = node;
  }

  function forgetNode(): Step {
    nodeUid = undefined;
    freshNode = undefined;
    lease = undefined;
    return GONE;
  }

  /** Finds the Lease or creates it; a creation is a beat. */
  async function ensureLease(): Promise<Step & { readonly created?: boolean }> {
    const found = await send({ method: 'GET', path: leasePath, urgent: true });
    if (isStatus(found, 200)) {
      lease = objectIn(found);
      return DONE;
    }
    if (!isStatus(found, 404)) return failed('reading the Lease', found);
    if (freshNode === undefined) {
      // The owner reference needs the uid the Node has now.
      const looked = await look();
      if (looked.kind !== 'done') return looked;
    }
    const created = await send({ method: 'POST', path: leasesPath, body: newLease(undefined), urgent: true });
    if (isStatus(created, 201, 200)) {
      lease = objectIn(created);
      acknowledge();
      return { kind: 'done', created: true };
    }
    if (isStatus(created, 404)) return forgetNode();
    return failed('creating the Lease', created);
  }

  const newLease = (base: KubeObject | undefined): KubeObject =>
    leaseAt({
      machine: identity,
      nodeUid: nodeUid ?? '',
      nowMs: clock.nowMs(),
      durationSeconds: settings.leaseDurationSeconds,
      base,
    });

  async function renew(isStale: () => boolean): Promise<Step> {
    let answer: ApiAnswer | undefined;
    for (let attempt = 0; attempt < RENEW_TRIES_MAX; attempt += 1) {
      if (lease === undefined) {
        const ensured = await ensureLease();
        if (ensured.kind !== 'done' || ensured.created === true) return ensured;
      }
      if (isStale()) return DONE;
      answer = await send({ method: 'PUT', path: leasePath, body: newLease(lease), urgent: true });
      if (isStatus(answer, 200, 201)) {
        lease = objectIn(answer);
        acknowledge();
        return DONE;
      }
      if (isStatus(answer, 409)) counters.conflicts += 1;
      else if (isStatus(answer, 404)) freshNode = undefined;
      else return failed('renewing the Lease', answer);
      lease = undefined;
    }
    return failed(`renewing the Lease, ${RENEW_TRIES_MAX} tries`, answer!);
  }

  function acknowledge(): void {
    const nowMs = clock.nowMs();
    if (failures > 0 || (lastBeatAtMs !== undefined && nowMs - lastBeatAtMs > 2 * intervalMs)) mustLook = true;
    lastBeatAtMs = nowMs;
    counters.beats += 1;
  }

  async function look(): Promise<Step> {
    const found = await send({ method: 'GET', path: nodePath });
    if (isStatus(found, 404)) return forgetNode();
    if (!isStatus(found, 200)) return failed('reading the Node', found);
    adopt(objectIn(found));
    return DONE;
  }

  async function postStatusIfDue(): Promise<Step> {
    const due = mustPost || clock.nowMs() >= statusDueAtMs;
    if (!due && !mustLook && clock.nowMs() < lookDueAtMs) return DONE;
    if (freshNode === undefined) {
      const looked = await look();
      if (looked.kind !== 'done') return looked;
    }
    const node = freshNode;
    if (due || conditionsDiffer(node?.status?.conditions)) {
      const nowMs = clock.nowMs();
      const posted = await send({
        method: 'PATCH',
        path: `${nodePath}/status`,
        body: statusPatchAt(identity, nowMs, node),
        contentType: 'application/strategic-merge-patch+json',
      });
      freshNode = undefined;
      if (isStatus(posted, 404)) return forgetNode();
      if (!isStatus(posted, 200)) return failed('posting status', posted);
      // After a first or changed report a kubelet moves its slot, or a fleet started together would post together.
      const slot = mustPost || mustLook ? 0.5 + random.fraction() : 1;
      statusDueAtMs = nowMs + statusIntervalMs * slot;
      counters.statusPosts += 1;
    }
    freshNode = undefined;
    mustPost = false;
    mustLook = false;
    return DONE;
  }

  /** Lists its pods when a beat's answer says that they changed, or when one of them has to end. */
  async function tendPods(): Promise<Step> {
    const version = lease?.metadata.annotations?.[PODS_VERSION] ?? '';
    if (version === podsSeen && clock.nowMs() < podsDueAtMs) return DONE;
    const found = await send({ method: 'GET', path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}` });
    if (!isStatus(found, 200)) return failed('listing its pods', found);
    const pods = (objectIn(found)['items'] ?? []) as KubeObject[];
    const { requests, dueAtMs } = podWork(pods, { nowMs: clock.nowMs(), machineAddress: addressOf(identity) });
    for (const request of requests) {
      const answer = await send(request);
      if (!isStatus(answer, 200, 404, 409)) return failed('reporting a pod', answer);
    }
    podsSeen = version;
    podsDueAtMs = dueAtMs ?? Number.POSITIVE_INFINITY;
    return DONE;
  }

  async function turn(isStale: () => boolean): Promise<Step> {
    let step: Step = GONE;
    for (let start = 0; start <= RESTARTS_MAX && step.kind === 'gone'; start += 1) {
      if (nodeUid === undefined) {
        step = await register();
        if (step.kind === 'failed' || isStale()) return step;
      }
      step = await renew(isStale);
      if (step.kind === 'done' && !isStale()) step = await postStatusIfDue();
      if (step.kind === 'done' && !isStale()) step = await tendPods();
      if (isStale()) return DONE;
    }
    return step.kind === 'gone' ? { kind: 'failed', why: 'the Node went away as often as it was registered' } : step;
  }

  async function live(ofLife: number): Promise<void> {
    const isStale = (): boolean => ofLife !== life;
    const step = await turn(isStale);
    if (isStale()) return;
    timer = timers.set(() => void live(ofLife), delayAfter(step));
  }

  function delayAfter(step: Step): number {
    if (step.kind === 'failed') {
      failures += 1;
      lastFailure = step.why;
      mustLook = true;
      freshNode = undefined;
      counters.failedTurns += 1;
      return Math.min(BACK_OFF_LIMIT_MS, BACK_OFF_FIRST_MS * 2 ** Math.min(failures - 1, 10));
    }
    failures = 0;
    if (firstTurn) {
      // Machines that register together must not beat together for ever.
      firstTurn = false;
      return intervalMs * random.fraction();
    }
    // A pod whose grace ends before the next beat is seen to then, with a beat.
    const untilPodsMs = Math.max(BACK_OFF_FIRST_MS, podsDueAtMs - clock.nowMs());
    return Math.min(untilPodsMs, intervalMs * (1 + INTERVAL_JITTER * random.fraction()));
  }

  function endLife(): void {
    life += 1;
    if (timer !== undefined) timers.clear(timer);
    timer = undefined;
  }

  return {
    identity,
    beat() {
      endLife();
      beating = true;
      mustPost = true;
      freshNode = undefined;
      // Its pods were set not ready while it was silent, which no version tells.
      podsSeen = '';
      void live(life);
    },
    silence() {
      endLife();
      beating = false;
    },
    status: () => ({
      name,
      zone: identity.zone,
      beating,
      registered: nodeUid !== undefined,
      lastBeatAtMs,
      failures,
      lastFailure,
    }),
  };
}

function isStatus(answer: ApiAnswer, ...statuses: readonly number[]): boolean {
  return answer.kind === 'answered' && statuses.includes(answer.status);
}

/** The object in an answer whose status says it is one. */
function objectIn(answer: ApiAnswer): KubeObject {
  if (answer.kind !== 'answered') throw new TypeError('an answer that never came holds no object');
  return answer.body as KubeObject;
}

function describe(answer: ApiAnswer): string {
  if (answer.kind === 'failed') return answer.cause instanceof Error ? answer.cause.message : String(answer.cause);
  const message = (answer.body as { message?: unknown } | null)?.message;
  return typeof message === 'string' ? `${answer.status} ${message}` : String(answer.status);
}
