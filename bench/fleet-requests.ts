/**
 * One kind of request at a time against any Kubernetes API: registrations, heartbeats, status posts, lists, deletions.
 * Between two phases no other request is sent, so the CPU of the server processes in a phase belongs to its kind.
 * The CPU that the servers use at rest, such as for controllers, is measured before the Nodes are created and when they
 * have Leases. Figures of the other phases are reported with it and without it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { LEASES_PATH, leasePath, newLease, nodePath, renewedLease } from '../agent/rules/lease.ts';
import { type ApiClient, type ApiRequest, createApiClient } from '../demo/fleet/api-client.ts';
import { computedNode, nodeAt } from '../demo/fleet/node-object.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import { percentile, type Report, rounded } from './benchmark.ts';
import { type ProcessUse, processesBelow } from './process-cpu.ts';

/** The CPU at rest is measured as long as heartbeats are, at most this. */
const IDLE_SECONDS_MAX = 5;

export interface RequestPhasesOptions {
  readonly url: string;
  readonly ca: string | undefined;
  readonly token: string;
  readonly nodes: number;
  readonly beatsPerSecond: number;
  readonly beatSeconds: number;
  readonly lists: number;
  /** Concurrent requests of a phase without a rate. */
  readonly connections: number;
  /** Server processes. Their descendants are counted as well. */
  readonly pids: readonly number[];
}

/** Figures of one phase. */
export interface PhaseFigures {
  readonly phase: string;
  readonly seconds: number;
  readonly requests: number;
  readonly failed: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** All server processes. Per second where nothing is requested. NaN without pids. */
  readonly cpuMsPerRequest: number;
  /** Without what the servers use at rest in the same time. */
  readonly cpuMsPerRequestNet: number;
  /** CPU including that at rest, by name of the process. */
  readonly cpuByProcess: Readonly<Record<string, number>>;
  /** Resident memory of all server processes when the phase ends. Megabytes. */
  readonly residentMegabytes: number;
}

const TIMEOUT_MS = 30_000;
const LEASE_SECONDS = 40;
const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';

interface Machine {
  readonly name: string;
  node: KubeNode;
  lease: KubeObject;
  /** Settles when the last renewal has been answered. */
  renewal: Promise<void>;
}

/** Deletes the Nodes that it created, also when a phase fails. */
export async function measureRequests(options: RequestPhasesOptions, report: Report): Promise<readonly PhaseFigures[]> {
  const client = createApiClient({
    ...{ url: options.url, token: options.token },
    ...(options.ca === undefined ? {} : { ca: options.ca }),
    connectionsMax: options.connections,
    timeoutMs: TIMEOUT_MS,
  });
  const run = new PhaseRun(client, options, report);
  try {
    await runPhases(run, options);
  } finally {
    client.close();
  }
  return run.figures;
}

async function runPhases(run: PhaseRun, options: RequestPhasesOptions): Promise<void> {
  const { nodes, beatsPerSecond, beatSeconds, lists } = options;
  const prefix = `bench-${Date.now().toString(36)}`;
  const machines = Array.from({ length: nodes }, (_, index) => machineOf(prefix, index));
  await run.idle('idle');
  try {
    await run.each('POST nodes', machines, async (machine, send) => {
      machine.node = (await send({ method: 'POST', path: '/api/v1/nodes', body: machine.node })) as unknown as KubeNode;
    });
    await run.each('PATCH nodes/status, first', machines, postStatus);
    await run.each('POST leases', machines, async (machine, send) => {
      const body = newLease(machine.node, { leaseDurationSeconds: LEASE_SECONDS, nowMs: Date.now() });
      machine.lease = await send({ method: 'POST', path: LEASES_PATH, body });
    });
    await run.idle('idle, with Nodes');
    await run.steadily('PUT leases', { perSecond: beatsPerSecond, seconds: beatSeconds }, (index, send) =>
      renew(machines[index % machines.length]!, send),
    );
    await run.each('PATCH nodes/status, no news', machines, postStatus);
    const page = `/api/v1/nodes?limit=500`;
    await run.each(`GET nodes, page of ${Math.min(500, nodes)}`, Array.from({ length: lists }), (_, send) =>
      send({ method: 'GET', path: page }),
    );
  } finally {
    await run.each('DELETE nodes', machines, (machine, send) =>
      send({ method: 'DELETE', path: nodePath(machine.name) }),
    );
  }
}

function machineOf(prefix: string, index: number): Machine {
  const name = `${prefix}-${index}`;
  const identity = { name, zone: `zone-${(index % 3) + 1}`, zoneIndex: index % 3, index };
  const node = nodeAt(identity, 'bench', Date.now());
  const unreported = { ...node, status: { ...node.status, conditions: [] } };
  return { name, node: unreported, lease: { metadata: {} } as KubeObject, renewal: Promise.resolve() };
}

/** What a kubelet sends: its conditions. Only the times of a report differ from those of the previous one. */
async function postStatus(machine: Machine, send: Send): Promise<void> {
  const { name, node } = machine;
  const conditions =
    computedNode({ name, zone: '', zoneIndex: 0, index: 0 }, node, Date.now()).status?.conditions ?? [];
  machine.node = (await send({
    method: 'PATCH',
    path: `${nodePath(name)}/status`,
    body: { status: { conditions } },
    contentType: STRATEGIC_MERGE_PATCH,
  })) as unknown as KubeNode;
}

/** After the machine's previous renewal, as a kubelet does. */
function renew(machine: Machine, send: Send): Promise<void> {
  machine.renewal = machine.renewal.then(async () => {
    const renewal = { leaseDurationSeconds: LEASE_SECONDS, nowMs: Date.now(), node: machine.node };
    const body = renewedLease(machine.lease, renewal);
    await withoutFailure(
      send({ method: 'PUT', path: leasePath(machine.name), body }).then((lease) => {
        machine.lease = lease;
      }),
    );
  });
  return machine.renewal;
}

/** Sends a request, notes its time, and returns the body of its answer. A failed one is counted and throws. */
type Send = (request: ApiRequest) => Promise<KubeObject>;

class RequestFailed extends Error {
  override readonly name = 'RequestFailed';
}

class PhaseRun {
  readonly figures: PhaseFigures[] = [];
  readonly #client: ApiClient;
  readonly #options: RequestPhasesOptions;
  readonly #report: Report;
  /** CPU of the servers at rest, as last measured. */
  #restMsPerSecond = 0;

  constructor(client: ApiClient, options: RequestPhasesOptions, report: Report) {
    this.#client = client;
    this.#options = options;
    this.#report = report;
  }

  async idle(phase: string): Promise<void> {
    this.#restMsPerSecond = 0;
    await this.#measure(phase, () => pause(Math.min(IDLE_SECONDS_MAX, this.#options.beatSeconds) * 1_000));
    this.#restMsPerSecond = this.figures.at(-1)!.cpuMsPerRequest;
  }

  /** Once per item, as many at a time as there are connections. */
  each<Item>(phase: string, items: readonly Item[], act: (item: Item, send: Send) => Promise<unknown>): Promise<void> {
    const waiting = items.values();
    return this.#measure(phase, async (send) => {
      const worker = async (): Promise<void> => {
        for (const item of waiting) await withoutFailure(act(item, send));
      };
      await Promise.all(Array.from({ length: this.#options.connections }, worker));
    });
  }

  /** At a rate, independent of the latency. */
  steadily(
    phase: string,
    { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
    act: (index: number, send: Send) => Promise<unknown>,
  ): Promise<void> {
    return this.#measure(phase, async (send) => {
      const startedMs = performance.now();
      const sent: Promise<void>[] = [];
      while (sent.length < perSecond * seconds) {
        const due = Math.min(perSecond * seconds, ((performance.now() - startedMs) / 1_000) * perSecond);
        while (sent.length < due) sent.push(withoutFailure(act(sent.length, send)));
        await pause(1);
      }
      await Promise.all(sent);
    });
  }

  async #measure(phase: string, work: (send: Send) => Promise<void>): Promise<void> {
    const times: number[] = [];
    let failed = 0;
    const send: Send = async (request) => {
      const startedMs = performance.now();
      const answer = await this.#client.send(request);
      times.push(performance.now() - startedMs);
      if (answer.kind === 'answered' && answer.status < 300) return answer.body as KubeObject;
      failed += 1;
      throw new RequestFailed(`${request.method} ${request.path}`);
    };
    const before = processesBelow(this.#options.pids);
    const startedMs = performance.now();
    await work(send);
    const seconds = (performance.now() - startedMs) / 1_000;
    const after = processesBelow(this.#options.pids);
    const restMsPerSecond = this.#restMsPerSecond;
    const figures = phaseFigures({ phase, seconds, times, failed, before, after, restMsPerSecond });
    this.figures.push(figures);
    const { cpuByProcess, ...rest } = figures;
    const named = Object.entries(cpuByProcess).map(([name, ms]) => [`cpuMsPerRequest:${name}`, ms]);
    this.#report({ part: 'requests', ...rest, ...Object.fromEntries(named) });
  }
}

async function withoutFailure(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
  }
}

export function phaseFigures(measured: {
  readonly phase: string;
  readonly seconds: number;
  readonly times: readonly number[];
  readonly failed: number;
  readonly before: readonly ProcessUse[];
  readonly after: readonly ProcessUse[];
  /** CPU of these processes at rest. */
  readonly restMsPerSecond: number;
}): PhaseFigures {
  const { phase, seconds, times, failed, before, after, restMsPerSecond } = measured;
  const divisor = times.length === 0 ? seconds : times.length;
  const cpuByProcess: Record<string, number> = {};
  for (const { pid, name, cpuMs } of after) {
    const usedMs = cpuMs - (before.find((process) => process.pid === pid)?.cpuMs ?? 0);
    cpuByProcess[name] = (cpuByProcess[name] ?? 0) + usedMs / divisor;
  }
  const all = Object.values(cpuByProcess).reduce((sum, ms) => sum + ms, 0);
  return {
    phase,
    seconds: rounded(seconds),
    requests: times.length,
    failed,
    perSecond: rounded(times.length / seconds),
    p50Ms: rounded(percentile(times, 0.5)),
    p99Ms: rounded(percentile(times, 0.99)),
    cpuMsPerRequest: after.length === 0 ? Number.NaN : rounded(all),
    cpuMsPerRequestNet:
      after.length === 0 ? Number.NaN : rounded(Math.max(0, all - (restMsPerSecond * seconds) / divisor)),
    cpuByProcess: Object.fromEntries(Object.entries(cpuByProcess).map(([name, ms]) => [name, rounded(ms)])),
    residentMegabytes: rounded(after.reduce((sum, { residentBytes }) => sum + residentBytes, 0) / 1_048_576),
  };
}
