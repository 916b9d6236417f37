/**
 * Local mode for a long time, with constant churn: machines stop and return, Nodes are deleted under live machines,
 * pods are created and deleted, execution environments end, and at intervals the whole is killed with -9 and started
 * again on its data. Measured: resident memory of the process and its engine, and its growth; unexplained errors; and
 * at the end, whether Nodes, machines and a watch that was open all the time agree.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiAnswer, type ApiRequest, createApiClient, type SendRequest } from '../demo/fleet/api-client.ts';
import { type Fleet, startFleet } from '../demo/fleet/fleet.ts';
import type { KubeNode } from '../shared/kinds/types.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { type Benchmark, type Report, readOptions, rounded, secondsUntil, wholeNumber } from './benchmark.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';
import { watchNodes } from './node-watch.ts';
import { slopeOf } from './slope.ts';

const SEED = 4_242;
const CONNECTIONS = 32;
const ANSWER_LIMIT_MS = 10_000;
const REGISTRATION_LIMIT_MS = 900_000;
const SETTLE_LIMIT_MS = 240_000;
const STEP_MS = 1_000;
const SAMPLE_EVERY_MS = 20_000;
/** After a restart, the interrupted deliveries still arrive. */
const EXCUSED_MS = 20_000;
/** A mark in the first moments after a silence was decided before the heartbeat of the machine arrived. */
const RETURNED_MS = 10_000;
/** Machines that are silent at once, as a share of all. */
const SILENT_SHARE_MAX = 0.02;
const PODS_MAX = 200;

interface SoakOptions {
  readonly seconds: number;
  readonly nodes: number;
  readonly killEverySeconds: number;
  readonly endEverySeconds: number;
}

export const soak: Benchmark = {
  name: 'soak',
  about: 'local mode under churn, restarts of its parts and kill -9: memory, unexplained errors, agreement at the end',
  usage: '[--seconds 1800] [--nodes 1000] [--kill-every 600] [--end-environments-every 180]',
  onlyByName: true,
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, {
      seconds: text,
      nodes: text,
      'kill-every': text,
      'end-environments-every': text,
    });
    const whole = (name: keyof typeof values, least: number, most: number, otherwise: number): number =>
      wholeNumber(name, values[name], { least, most, otherwise });
    const dataDirectory = mkdtempSync(join(tmpdir(), 'nk-soak-'));
    try {
      await new Soak(report, dataDirectory, {
        seconds: whole('seconds', 1, 6_000_000, 1_800),
        nodes: whole('nodes', 1, 100_000, 1_000),
        killEverySeconds: whole('kill-every', 10, 1_000_000, 600),
        endEverySeconds: whole('end-environments-every', 5, 1_000_000, 180),
      }).run();
    } finally {
      rmSync(dataDirectory, { recursive: true, force: true });
    }
  },
};

interface Sample {
  readonly atMs: number;
  /** Resident. */
  readonly megabytes: ReadonlyMap<string, number>;
}

class Soak {
  readonly #report: Report;
  readonly #dataDirectory: string;
  readonly #options: SoakOptions;
  readonly #random = seededFraction(SEED);
  /** Answers by what was asked and what came; those of restarts apart. */
  readonly #unexplained = new Map<string, number>();
  readonly #explained = new Map<string, number>();
  readonly #silent = new Set<string>();
  readonly #returnedAtMs = new Map<string, number>();
  readonly #pods: string[] = [];
  readonly #nodes = new Map<string, KubeNode>();
  #local: LocalHost | undefined;
  #excusedUntilMs = 0;
  #falseMarks = 0;
  #samples: Sample[] = [];
  #podsMade = 0;
  #kills = 0;
  #ends = 0;
  #operations = 0;

  constructor(report: Report, dataDirectory: string, options: SoakOptions) {
    this.#report = report;
    this.#dataDirectory = dataDirectory;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { nodes, seconds, killEverySeconds, endEverySeconds } = this.#options;
    this.#local = await startLocalHost({ dataDirectory: this.#dataDirectory });
    const { url, ca, token } = this.#local;
    const port = Number(new URL(url).port);
    const client = createApiClient({
      ...{ url, ca, token },
      connectionsMax: CONNECTIONS,
      timeoutMs: ANSWER_LIMIT_MS,
    });
    const send: SendRequest = async (request) => {
      const answer = await client.send(request);
      this.#judge(request, answer);
      return answer;
    };
    const watch = await watchNodes(
      { url, ca, token },
      (node, kind) => this.#see(node, kind),
      (names) => {
        for (const name of this.#nodes.keys()) if (!names.has(name)) this.#nodes.delete(name);
      },
    );
    const fleet = startFleet({ url, token, nodes, send });
    try {
      const names = fleet.list().map(({ name }) => name);
      const registered = await secondsUntil(() => names.every((name) => this.#isWell(name)), REGISTRATION_LIMIT_MS);
      this.#report({ part: 'registered', nodes, seconds: registered });
      const startMs = performance.now();
      const endMs = startMs + seconds * 1_000;
      let nextKillMs = startMs + killEverySeconds * 1_000;
      let nextEndMs = startMs + endEverySeconds * 1_000;
      let nextSampleMs = startMs;
      while (performance.now() < endMs) {
        const nowMs = performance.now();
        await this.#churn(fleet, names, send);
        if (nowMs >= nextSampleMs) {
          nextSampleMs = nowMs + SAMPLE_EVERY_MS;
          await this.#sample();
        }
        if (nowMs >= nextKillMs) {
          nextKillMs = nowMs + killEverySeconds * 1_000;
          await this.#killAndRestart(port);
        } else if (nowMs >= nextEndMs) {
          nextEndMs = nowMs + endEverySeconds * 1_000;
          await this.#endEnvironments();
        }
        await pause(STEP_MS);
      }
      this.#tellMemory();
      await this.#settle(fleet, names, send);
      this.#tellErrors(fleet, watch.ends);
    } finally {
      watch.stop();
      await fleet.stop();
      client.close();
      await this.#local?.stop();
    }
  }

  #isExcused(): boolean {
    return performance.now() < this.#excusedUntilMs;
  }

  /**
   * Expected are successes, and the conflicts that churn causes: an object is deleted, exists already, or changed
   * meanwhile.
   */
  #judge({ method, path }: ApiRequest, answer: ApiAnswer): void {
    if (answer.kind === 'answered' && (answer.status < 300 || answer.status === 404 || answer.status === 409)) return;
    const came = answer.kind === 'answered' ? String(answer.status) : String((answer.cause as Error).message);
    const what = `${method} ${/\/(nodes|leases|pods)/.exec(path)?.[1] ?? path}: ${came}`;
    const into = this.#isExcused() ? this.#explained : this.#unexplained;
    into.set(what, (into.get(what) ?? 0) + 1);
  }

  #see(node: KubeNode, kind: 'present' | 'deleted'): void {
    const name = node.metadata.name ?? '';
    if (kind === 'deleted') {
      this.#nodes.delete(name);
      return;
    }
    const before = this.#nodes.get(name);
    this.#nodes.set(name, node);
    const marked = readyOf(node) === 'Unknown' && before !== undefined && readyOf(before) !== 'Unknown';
    const returnedAtMs = this.#returnedAtMs.get(name) ?? Number.NEGATIVE_INFINITY;
    const wasHeard = !this.#silent.has(name) && performance.now() - returnedAtMs > RETURNED_MS;
    if (marked && wasHeard) this.#falseMarks += 1;
  }

  #isWell(name: string): boolean {
    const node = this.#nodes.get(name);
    return node !== undefined && readyOf(node) === 'True' && (node.spec?.taints ?? []).length === 0;
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }

  async #churn(fleet: Fleet, names: readonly string[], send: SendRequest): Promise<void> {
    this.#operations += 1;
    const dice = this.#random();
    if (dice < 0.3) {
      const name = this.#pick(names);
      if (this.#silent.size >= Math.max(1, SILENT_SHARE_MAX * names.length) || this.#silent.has(name)) return;
      this.#silent.add(name);
      fleet.silence([name]);
    } else if (dice < 0.55) {
      const name = [...this.#silent][0];
      if (name === undefined) return;
      this.#silent.delete(name);
      this.#returnedAtMs.set(name, performance.now());
      fleet.beat([name]);
    } else if (dice < 0.65) {
      await send({ method: 'DELETE', path: `/api/v1/nodes/${this.#pick(names)}` });
    } else if (dice < 0.85) await this.#makePod(names, send);
    else if (this.#pods.length > 0) {
      const name = this.#pods.splice(Math.floor(this.#random() * this.#pods.length), 1)[0]!;
      await send({
        method: 'DELETE',
        path: `/api/v1/namespaces/default/pods/${name}`,
        body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 },
      });
    }
  }

  async #makePod(names: readonly string[], send: SendRequest): Promise<void> {
    if (this.#pods.length >= PODS_MAX) return;
    this.#podsMade += 1;
    const name = `soak-${this.#podsMade}`;
    this.#pods.push(name);
    await send({
      method: 'POST',
      path: '/api/v1/namespaces/default/pods',
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: { nodeName: this.#pick(names), containers: [{ name: 'main', image: 'registry.invalid/main:1' }] },
      },
    });
  }

  async #sample(): Promise<void> {
    const local = this.#local!;
    const { enginePid } = await local.counters();
    const megabytes = new Map([['process', rssMegabytes(local.pid)]]);
    if (enginePid !== undefined) megabytes.set('engine', rssMegabytes(enginePid));
    this.#samples.push({ atMs: performance.now(), megabytes });
  }

  async #endEnvironments(): Promise<void> {
    this.#ends += 1;
    this.#excusedUntilMs = performance.now() + EXCUSED_MS;
    await this.#local!.endEnvironments();
  }

  async #killAndRestart(port: number): Promise<void> {
    this.#kills += 1;
    this.#tellMemory();
    this.#excusedUntilMs = Number.POSITIVE_INFINITY;
    await this.#local!.kill();
    const startedMs = performance.now();
    this.#local = await startLocalHost({ dataDirectory: this.#dataDirectory, port });
    this.#excusedUntilMs = performance.now() + EXCUSED_MS;
    this.#report({ part: 'killed and started again', seconds: rounded((performance.now() - startedMs) / 1_000) });
  }

  /** Reports the memory of the life that ends now. */
  #tellMemory(): void {
    const samples = this.#samples;
    this.#samples = [];
    const first = samples[0];
    const last = samples.at(-1);
    if (first === undefined || last === undefined || first === last) return;
    // Memory fills up in the first half of a life. A leak continues in the second half.
    const warm = samples.slice(Math.floor(samples.length / 2));
    for (const [what, now] of last.megabytes) {
      const held = samples.map(({ megabytes }) => megabytes.get(what) ?? 0);
      const points = warm.map(({ atMs, megabytes }) => [atMs / 3_600_000, megabytes.get(what) ?? 0] as const);
      this.#report({
        part: 'memory',
        of: what,
        lifeMinutes: rounded((last.atMs - first.atMs) / 60_000),
        firstMegabytes: rounded(held[0] ?? 0),
        lastMegabytes: rounded(now),
        mostMegabytes: rounded(Math.max(...held)),
        // The slope of the second half.
        slopeMegabytesPerHour: points.length < 3 ? undefined : rounded(slopeOf(points)),
        samples: held.length,
      });
    }
  }

  /** All machines send heartbeats again: until Nodes, machines and watch agree. */
  async #settle(fleet: Fleet, names: readonly string[], send: SendRequest): Promise<void> {
    for (const name of this.#silent) fleet.beat([name]);
    const seconds = await secondsUntil(() => names.every((name) => this.#isWell(name)), SETTLE_LIMIT_MS);
    const listed = new Map<string, string>();
    let agree = false;
    for (let attempt = 0; attempt < 20 && !agree; attempt += 1) {
      listed.clear();
      for (let page = 0, next = ''; page === 0 || (next !== '' && page < 1_000); page += 1) {
        const answer = await send({ method: 'GET', path: `/api/v1/nodes?limit=500&continue=${next}` });
        if (answer.kind !== 'answered' || answer.status !== 200) break;
        const { items, metadata } = answer.body as {
          readonly items: readonly KubeNode[];
          readonly metadata: { readonly continue?: string };
        };
        for (const node of items) listed.set(node.metadata.name ?? '', node.metadata.resourceVersion ?? '');
        next = encodeURIComponent(metadata.continue ?? '');
      }
      agree =
        listed.size === this.#nodes.size &&
        [...listed].every(([name, version]) => this.#nodes.get(name)?.metadata.resourceVersion === version);
      if (!agree) await pause(STEP_MS);
    }
    this.#report({
      part: 'end',
      machines: names.length,
      nodes: listed.size,
      well: names.filter((name) => this.#isWell(name)).length,
      settledSeconds: seconds,
      watchAgreesWithList: agree,
      consistent: agree && seconds !== undefined && listed.size === names.length,
    });
  }

  #tellErrors(fleet: Fleet, watchEnds: ReadonlyMap<string, number>): void {
    const { registrations, beats, statusPosts, conflicts, failedTurns } = fleet.status();
    const sum = (of: ReadonlyMap<string, number>): number =>
      [...of.values()].reduce((total, count) => total + count, 0);
    this.#report({
      part: 'sum',
      operations: this.#operations,
      kills: this.#kills,
      environmentsEnded: this.#ends,
      ...{ registrations, beats, statusPosts, conflicts, failedTurns },
      falseMarks: this.#falseMarks,
      unexplainedErrors: sum(this.#unexplained),
      errorsOfRestarts: sum(this.#explained),
    });
    for (const [what, count] of this.#unexplained) this.#report({ part: 'unexplained', what, count });
    for (const [why, times] of watchEnds) this.#report({ part: 'watch ended', why, times });
  }
}

const readyOf = (node: KubeNode): string | undefined =>
  node.status?.conditions?.find(({ type }) => type === 'Ready')?.status;

/** 0 when it has exited. */
function rssMegabytes(pid: number): number {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
}
