/**
 * A day of a hub on virtual time, with watches that its clients open again when they end, and a change at the cluster
 * each ten seconds: memory of the process after a collection of garbage, size of the file, and events that were missed
 * (0 is right). The cluster is in memory beside it, and its expired rows are deleted.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { composeHub, type Hub } from '../server/hub/compose-hub.ts';
import { openSqliteStore } from '../server/store/sqlite-store.ts';
import { changeSignals } from '../server/watches/change-signals.ts';
import type { HttpRequest } from '../shared/kubernetes/http.ts';
import { followedCluster } from '../test/support/followed-cluster.ts';
import { type Benchmark, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { slopeOf } from './slope.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
/** Shared by the watches in turn. */
const WATCHED: readonly string[] = [
  ...['/api/v1/pods', '/api/v1/nodes', '/api/v1/configmaps', '/api/v1/services', '/apis/apps/v1/deployments'],
  ...['/apis/apps/v1/daemonsets', '/apis/apps/v1/statefulsets', '/apis/batch/v1/jobs', '/api/v1/namespaces'],
  '/apis/networking.k8s.io/v1/ingresses',
];
const OBJECTS = 50;
const STEP_SECONDS = 10;
/** An event that is not sent after so many turns of the event loop is missed. */
const TURNS_MAX = 20_000;
const REPORTS_A_DAY = 12;
const LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const REVIEW = JSON.stringify({
  status: { authenticated: true, user: { username: 'ada', groups: ['system:masters'] } },
});

export const hubDay: Benchmark = {
  name: 'hub-day',
  about: 'watches of a hub for a day of virtual time: memory, size of the file, missed events',
  usage: '[--watches 500] [--hours 24 | --minutes N]',
  smallest: ['--watches', '10', '--minutes', '2'],
  onlyByName: true,
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { watches: text, hours: text, minutes: text });
    const hours = wholeNumber('hours', values.hours, { least: 1, most: 1_000, otherwise: 24 });
    const minutes = wholeNumber('minutes', values.minutes, { least: 1, most: 60, otherwise: 60 * hours });
    await measure(report, {
      watches: wholeNumber('watches', values.watches, { least: 10, most: 5_000, otherwise: 500 }),
      steps: (minutes * 60) / STEP_SECONDS,
    });
  },
};

async function measure(
  report: Report,
  { watches, steps }: { readonly watches: number; readonly steps: number },
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'nk-hub-day-'));
  const cluster = await followedCluster();
  const signals = changeSignals();
  let hub: Hub | undefined;
  const store = openSqliteStore({
    file: join(folder, 'replica.db'),
    clock: cluster.clock,
    synchronous: 'normal',
    onCommit: (changes) => hub?.onCommit(changes),
  });
  let clients: readonly Client[] = [];
  try {
    const body = { spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }] }, data: { key: 'value' } };
    for (const path of [PODS, CONFIG_MAPS]) {
      for (let index = 0; index < OBJECTS; index += 1) {
        await cluster.api.send('POST', path, { body: { metadata: { name: `o-${index}` }, ...body } });
      }
    }
    const { replica, advance } = await cluster.follow(store.items, undefined, signals.changed);
    hub = composeHub({
      ...{ items: store.items, signals, replica, clock: cluster.clock, log: LOG },
      pause: async () => {},
      families: () => [],
      checks: [],
      connection: {
        send: async () => ({ status: 201, headers: {}, body: Buffer.from(REVIEW) }),
        forward: async () => {
          throw new Error('nothing is passed here');
        },
        stop: () => {},
      },
      meter: { add: () => {} },
    });
    clients = Array.from({ length: watches }, (_, index) => new Client(WATCHED[index % WATCHED.length]!));
    const running = clients.map((client) => client.run(hub!));
    const changing = clients.filter(({ path }) => path === '/api/v1/pods' || path === '/api/v1/configmaps');
    const megabytes: (readonly [hours: number, heap: number])[] = [];
    let missed = 0;
    const every = Math.max(1, Math.floor(steps / REPORTS_A_DAY));
    for (let step = 1; step <= steps; step += 1) {
      const path = step % 2 === 0 ? CONFIG_MAPS : PODS;
      const change = { metadata: { labels: { change: String(step) } } };
      const { body: changed } = await cluster.api.send('PATCH', `${path}/o-${step % OBJECTS}`, {
        body: change,
        contentType: 'application/merge-patch+json',
      });
      await advance(STEP_SECONDS * 1_000);
      const version = String(changed.metadata.resourceVersion);
      const waiting = changing.filter((client) => path.endsWith(client.path.split('/').at(-1)!));
      missed += await missing(waiting, version);
      if (step % 60 === 0) {
        cluster.expire();
        while ((await store.sweepExpired()) > 0);
      }
      if (step % every > 0) continue;
      const { heapUsed, rss } = collected();
      const hours = (step * STEP_SECONDS) / 3_600;
      megabytes.push([hours, heapUsed / 1_048_576]);
      report({
        hours: rounded(hours),
        watches: hub.watches.held(),
        events: clients.reduce((sum, { events }) => sum + events, 0),
        missed,
        heapMegabytes: rounded(heapUsed / 1_048_576),
        residentMegabytes: rounded(rss / 1_048_576),
        fileMegabytes: rounded(store.metrics().fileBytes / 1_048_576),
      });
    }
    // Caches fill in the first half.
    const warm = megabytes.slice(Math.floor(megabytes.length / 2));
    report({
      reopened: clients.reduce((sum, { opened }) => sum + opened - 1, 0),
      missed,
      heapSlopeMegabytesPerDay: warm.length < 3 ? undefined : rounded(24 * slopeOf(warm), 2),
    });
    for (const client of clients) client.leave();
    // A watch that nothing wakes sees a minute later that its client has left.
    signals.withdrawn();
    await Promise.all(running);
    await replica.stop();
  } finally {
    for (const client of clients) client.leave();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Watches one kind from the version that it saw last, as informers do. */
class Client {
  readonly path: string;
  events = 0;
  opened = 0;
  version = '';
  /** Of the open watch. */
  #gone = new AbortController();
  #hasLeft = false;

  constructor(path: string) {
    this.path = path;
  }

  leave(): void {
    this.#hasLeft = true;
    this.#gone.abort();
  }

  async run(hub: Hub): Promise<void> {
    while (!this.#hasLeft) {
      this.opened += 1;
      this.#gone = new AbortController();
      await this.#watch(hub, this.#gone.signal).catch((cause: unknown) => {
        if (!this.#hasLeft) throw cause;
      });
      await turn();
    }
  }

  async #watch(hub: Hub, gone: AbortSignal): Promise<void> {
    const query = new URLSearchParams({ watch: 'true', allowWatchBookmarks: 'true' });
    if (this.version !== '') query.set('resourceVersion', this.version);
    const request: HttpRequest = {
      ...{ method: 'GET', path: this.path, query, sourceIp: '192.0.2.1', body: Buffer.alloc(0) },
      headers: { authorization: 'Bearer token' },
    };
    const { head, lines } = await hub.serve(request, gone);
    if (head.status !== 200 || lines === undefined) throw new Error(`${this.path} was answered ${head.status}`);
    for await (const line of lines) {
      const found = [...line.matchAll(/"resourceVersion":"(\d+)"/g)].at(-1)?.[1];
      if (found === undefined) continue;
      this.version = found;
      this.events += 1;
    }
  }
}

/** @returns the clients that do not get a version this far */
async function missing(clients: readonly Client[], version: string): Promise<number> {
  const behind = (): number => clients.filter((client) => Number(client.version) < Number(version)).length;
  for (let turns = 0; turns < TURNS_MAX && behind() > 0; turns += 1) await turn();
  return behind();
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function collected(): NodeJS.MemoryUsage {
  collectGarbage();
  return process.memoryUsage();
}
