/**
 * The upgrade drill: machines beat, clients write and pods are rolled out while a cluster changes its build, and
 * changes it back.
 *
 * What may not happen: a mark on a node with a machine that beats, the loss of an acknowledged write, a container that
 * is started again, a rollout that does not end.
 */
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { watchNodes } from '../../bench/node-watch.ts';
import { createApiClient, type SendRequest } from '../../demo/fleet/api-client.ts';
import { type Fleet, startFleet } from '../../demo/fleet/fleet.ts';
import { defined } from '../../shared/defined.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { KubeAccess } from '../../test/support/kubeconfig.ts';
import { until } from '../../test/support/until.ts';
import { AcknowledgedWrites } from './acknowledged-writes.ts';
import { Answers, patiently } from './answers.ts';
import type { Build, Home } from './home.ts';
import { FalseMarks, isMarked } from './marks.ts';
import {
  CONFIG_MAPS,
  createWorkloads,
  isRolledOut,
  LEASES,
  listAll,
  type RunningContainers,
  readContainers,
  restartedContainers,
  startRollout,
} from './workloads.ts';
import { startWriters } from './writers.ts';

export interface DrillOptions {
  readonly machines: number;
  /** After each change, for marks that come late: more than the grace period. Seconds. */
  readonly settleSeconds: number;
  /** Limit of a rollout, and of the registration of all machines. Seconds. */
  readonly waitSecondsMax: number;
}

export interface Phase {
  readonly home: string;
  readonly build: string;
  /** Time in which the API did not answer. */
  readonly silentSeconds: number;
  readonly falseMarks: readonly string[];
  readonly acknowledgedWrites: number;
  /** Paths. */
  readonly lostWrites: readonly string[];
  /** That were running before the phase, and those of them that were started again. */
  readonly containers: number;
  readonly restartedContainers: number;
  /** Undefined: it did not end in time. */
  readonly rolloutSeconds: number | undefined;
  /** Of this machine, over its last minute: whether machines and cluster had to wait. */
  readonly loadPerCore: number;
}

/** Whether nothing happened that may not happen. */
export const isClean = ({ falseMarks, lostWrites, restartedContainers: restarted, rolloutSeconds }: Phase): boolean =>
  falseMarks.length === 0 && lostWrites.length === 0 && restarted === 0 && rolloutSeconds !== undefined;

const CONNECTIONS = 16;
const TIMEOUT_MS = 10_000;
/** A request that waits longer has no answer, for who asks all the time. */
const ANSWER_MS = 2_000;
/** Of its interval. */
const LATE_BEAT_SHARE = 1.5;
/** Long lists: the cluster has other work. */
const LOOK_EVERY_MS = 2_000;
/** Of the rollout, before the build is changed under it. */
const UNDER_WAY_MS = 2_000;

/** Runs it over a home that serves the first build. @param report receives each phase as it ends */
export async function runDrill(
  home: Home,
  changes: readonly Build[],
  options: DrillOptions,
  report: (phase: Phase) => void,
): Promise<void> {
  const drill = await Drill.start(home, options);
  try {
    for (const [index, build] of changes.entries()) report(await drill.change(build, index + 1));
  } finally {
    await drill.stop();
  }
}

class Drill {
  readonly #home: Home;
  readonly #options: DrillOptions;
  readonly #send: SendRequest;
  readonly #writes: AcknowledgedWrites;
  readonly #marks: FalseMarks;
  readonly #answers: Answers;
  readonly #stop: () => Promise<void>;
  #containers: RunningContainers = { steady: new Map(), rollingRestarts: 0 };

  private constructor(parts: {
    readonly home: Home;
    readonly options: DrillOptions;
    readonly send: SendRequest;
    readonly writes: AcknowledgedWrites;
    readonly marks: FalseMarks;
    readonly answers: Answers;
    stop(): Promise<void>;
  }) {
    this.#home = parts.home;
    this.#options = parts.options;
    this.#send = parts.send;
    this.#writes = parts.writes;
    this.#marks = parts.marks;
    this.#answers = parts.answers;
    this.#stop = parts.stop;
  }

  /** All machines are Ready and all pods run, with the build that the home began with. */
  static async start(home: Home, options: DrillOptions): Promise<Drill> {
    const { machines } = options;
    const client = createApiClient({ ...clientOf(home.access), connectionsMax: CONNECTIONS, timeoutMs: TIMEOUT_MS });
    const asking = createApiClient({ ...clientOf(home.access), connectionsMax: 1, timeoutMs: ANSWER_MS });
    const beating = createApiClient({
      ...clientOf(home.fleetAccess),
      connectionsMax: CONNECTIONS,
      timeoutMs: TIMEOUT_MS,
    });
    const send = patiently(client.send);
    const writes = new AcknowledgedWrites();
    const fleet = startFleet({
      url: home.fleetAccess.url,
      token: home.fleetAccess.token,
      nodes: machines,
      send: notingRenewals(beating.send, writes),
    });
    const steps: (() => unknown)[] = [() => client.close(), () => beating.close(), () => fleet.stop()];
    const stop = async (): Promise<void> => {
      for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
    };
    try {
      await createWorkloads(send, replicasOf(options));
      const within = { withinMs: options.waitSecondsMax * 1_000, everyMs: LOOK_EVERY_MS };
      await until(() => areReady(send, fleet), { ...within, what: `${machines} machines that are Ready` });
      await until(() => isRolledOut(send, replicasOf(options)), { ...within, what: 'a Deployment that runs' });
      await until(async () => (await readContainers(send)).steady.size === machines, {
        ...within,
        what: `${machines} pods of the DaemonSet`,
      });
      await until(() => isPunctual(fleet), { ...within, what: `${machines} machines that beat in time` });
      const marks = new FalseMarks(send);
      const watch = await watchNodes(home.access, (node) => marks.see(node));
      steps.push(() => watch.stop());
      const answers = new Answers(asking.send);
      steps.push(
        () => asking.close(),
        () => answers.stop(),
      );
      const writers = startWriters(client.send, writes);
      steps.push(() => writers.stop());
      await marks.take();
      const drill = new Drill({ home, options, send, writes, marks, answers, stop });
      drill.#containers = await until(() => drill.#startedContainers(), { ...within, what: 'containers that run' });
      return drill;
    } catch (cause) {
      await stop();
      throw cause;
    }
  }

  /** Changes the build under a rollout, and measures until the cluster has settled. */
  async change(build: Build, revision: number): Promise<Phase> {
    const { waitSecondsMax, settleSeconds } = this.#options;
    const before = this.#containers;
    const acknowledgedBefore = this.#writes.count;
    this.#answers.takeSilentSeconds();
    const startedMs = performance.now();
    await startRollout(this.#send, revision);
    await pause(UNDER_WAY_MS);
    await this.#home.change(build);
    const settledMs = performance.now() + settleSeconds * 1_000;
    const rolloutSeconds = await until(() => isRolledOut(this.#send, replicasOf(this.#options)), {
      withinMs: waitSecondsMax * 1_000,
      everyMs: 100,
    }).then(
      () => (performance.now() - startedMs) / 1_000,
      () => undefined,
    );
    await pause(Math.max(0, settledMs - performance.now()));
    const containers = await readContainers(this.#send);
    this.#containers = containers;
    const acknowledged = this.#writes.acknowledged();
    const stored = await readWritten(this.#send);
    return {
      home: this.#home.name,
      build: build.name,
      silentSeconds: this.#answers.takeSilentSeconds(),
      falseMarks: await this.#marks.take(),
      acknowledgedWrites: this.#writes.count - acknowledgedBefore,
      lostWrites: this.#writes.lost(acknowledged, stored),
      containers: before.steady.size,
      restartedContainers: restartedContainers(before, containers),
      rolloutSeconds,
      loadPerCore: (loadavg()[0] ?? 0) / availableParallelism(),
    };
  }

  stop(): Promise<void> {
    return this.#stop();
  }

  async #startedContainers(): Promise<RunningContainers | undefined> {
    const containers = await readContainers(this.#send);
    return [...containers.steady.values()].every((each) => each.includes('"running"')) ? containers : undefined;
  }
}

const clientOf = ({ url, ca, token }: KubeAccess) => ({ url, token, ...defined({ ca }) });

const replicasOf = ({ machines }: DrillOptions): number => Math.ceil(machines / 5);

/** Each acknowledged renewal of a Lease is a write that must be found again. */
function notingRenewals(send: SendRequest, writes: AcknowledgedWrites): SendRequest {
  return async (request) => {
    const renewTime = renewTimeIn(request.body);
    if (request.method !== 'PUT' || !request.path.startsWith(`${LEASES}/`) || renewTime === undefined)
      return send(request);
    const acknowledge = writes.sent(request.path, renewTime);
    const answer = await send(request);
    if (answer.kind === 'answered' && answer.status < 300) acknowledge();
    return answer;
  };
}

const renewTimeIn = (body: unknown): string | undefined =>
  (body as { readonly spec?: { readonly renewTime?: string } } | undefined)?.spec?.renewTime;

async function areReady(send: SendRequest, fleet: Fleet): Promise<boolean> {
  const { machines, registered } = fleet.status();
  if (registered < machines) return false;
  const nodes = (await listAll(send, '/api/v1/nodes')) as readonly KubeNode[];
  return nodes.filter((node) => !isMarked(node)).length >= machines;
}

/** After the registration, each machine has beaten as it should. */
const isPunctual = (fleet: Fleet): boolean =>
  fleet
    .list()
    .every(
      ({ lastBeatAtMs = 0, beatEverySeconds }) =>
        Date.now() - lastBeatAtMs < LATE_BEAT_SHARE * beatEverySeconds * 1_000,
    );

/** What is stored, by path. */
async function readWritten(send: SendRequest): Promise<ReadonlyMap<string, string>> {
  const written = new Map<string, string>();
  for (const object of await listAll(send, CONFIG_MAPS)) {
    const { data } = object as { readonly data?: { readonly round?: string } };
    written.set(`${CONFIG_MAPS}/${object.metadata.name}`, data?.round ?? '');
  }
  for (const lease of await listAll(send, LEASES)) {
    written.set(`${LEASES}/${lease.metadata.name}`, renewTimeIn(lease) ?? '');
  }
  return written;
}
