/**
 * The API through the whole local mode: reads, lists of a large fleet, patches, and the delay of a watch after a write.
 * Also the units of each, counted between local mode and its engine.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { tendStreamRecords } from '../aws-local/engine/stream-records.ts';
import { PRICES } from '../shared/cost/prices.ts';
import { startEngine } from '../test/support/engine.ts';
import { type Benchmark, percentile, type Report, readOptions, rounded, wholeNumbers } from './benchmark.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { clientOf } from './heartbeat.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';

const FLEET_SIZES = [1_000, 10_000];
const SINGLE_SAMPLES = 200;
const LIST_SAMPLES = 5;
const WATCH_SAMPLES = 20;
const PAGE_LIMIT = 500;
const PAGES_MAX = 100;
const CREATE_AT_ONCE = 16;
const ANSWER_MAX_MS = 60_000;
const QUIET_WATCH_MS = 10_000;
const WATCH_GIGABYTES = 0.125;

export const api: Benchmark = {
  name: 'api',
  about: 'get, list, scrape, patch and watch of a large fleet: times and units',
  usage: '[--nodes 1000,10000]',
  run: measureApi,
};

const NODES_MAX = 20_000;

async function measureApi(report: Report, options: readonly string[]): Promise<void> {
  const { nodes } = readOptions(options, { nodes: { type: 'string' } });
  const sizes = wholeNumbers('nodes', nodes, { least: 10, most: NODES_MAX, otherwise: FLEET_SIZES });
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const dbPath = join(folder, 'engine.sqlite');
  const engine = await startEngine({ dbPath });
  const proxy = await startCountingProxy(engine.endpoint);
  const local = await startLocalHost({ controllers: false, dynamodbEndpoint: proxy.endpoint });
  // Local mode tends an engine of its own; this one is ours.
  tendStreamRecords(dbPath, Date.now());
  const reader = createReader(local);
  try {
    let size = 0;
    for (const target of sizes) {
      await fill(local, size, target);
      size = target;
      await measure(report, proxy, { what: 'get node', nodes: size, samples: SINGLE_SAMPLES }, () =>
        reader.read(`/api/v1/nodes/${nameOf(7)}`),
      );
      await measure(report, proxy, { what: 'list, pages of 500', nodes: size, samples: LIST_SAMPLES }, () =>
        listPages(reader),
      );
      await measure(report, proxy, { what: 'list, no limit', nodes: size, samples: LIST_SAMPLES }, () =>
        listPages(reader, 0),
      );
      for (const path of ['/metrics', '/metrics?scope=controller']) {
        await measure(report, proxy, { what: `GET ${path}`, nodes: size, samples: LIST_SAMPLES }, () =>
          reader.readText(path),
        );
      }
    }
    await measureConfiguration(report, local, proxy, reader);
    let value = 0;
    await measure(report, proxy, { what: 'patch a label', nodes: size, samples: SINGLE_SAMPLES }, () => {
      value += 1;
      return reader.patch(`/api/v1/nodes/${nameOf(value % size)}`, { metadata: { labels: { value: `v${value}` } } });
    });
    await measureWatch(report, reader, proxy);
  } finally {
    reader.close();
    await local.stop();
    await proxy.close();
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pages of what charts consist of, with 1,000 characters each. */
const PAGES = [
  { resource: 'configmaps', objects: 1_000 },
  { resource: 'secrets', objects: 500 },
];

async function measureConfiguration(
  report: Report,
  local: LocalHost,
  proxy: CountingProxy,
  reader: Reader,
): Promise<void> {
  const client = clientOf(local, CREATE_AT_ONCE);
  for (const { resource, objects } of PAGES) {
    const path = `/api/v1/namespaces/default/${resource}`;
    const data = { key: Buffer.from('value '.repeat(125)).toString('base64') };
    await inParallel(objects, async (index) => {
      const answer = await client.send({ method: 'POST', path, body: { metadata: { name: nameOf(index) }, data } });
      if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    });
    const what = `page of ${objects} ${resource}`;
    await measure(report, proxy, { what, nodes: 0, samples: LIST_SAMPLES }, () =>
      reader.read(`${path}?limit=${objects}`),
    );
  }
  client.close();
}

async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: CREATE_AT_ONCE }, worker));
}

const nameOf = (index: number): string => `bench-${String(index).padStart(5, '0')}`;

async function fill(local: LocalHost, from: number, to: number): Promise<void> {
  const client = clientOf(local, CREATE_AT_ONCE);
  let next = from;
  const work = async (): Promise<void> => {
    while (next < to) {
      const name = nameOf(next);
      next += 1;
      const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
        type,
        status: type === 'Ready' ? 'True' : 'False',
        reason: 'Bench',
        message: 'as a kubelet says it, in so many words',
      }));
      const body = { metadata: { name, labels: { zone: `z${next % 3}` } }, status: { conditions } };
      const lease = { metadata: { name }, spec: { holderIdentity: name, leaseDurationSeconds: 40 } };
      for (const [path, object] of [
        ['/api/v1/nodes', body],
        ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', lease],
      ] as const) {
        const answer = await client.send({ method: 'POST', path, body: object });
        if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(`${name}: ${JSON.stringify(answer)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: CREATE_AT_ONCE }, work));
  client.close();
}

interface Read {
  readonly bytes: number;
  readonly body: { readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string } };
}

interface Reader {
  read(path: string): Promise<Read>;
  readText(path: string): Promise<Pick<Read, 'bytes'>>;
  patch(path: string, body: unknown): Promise<Read>;
  /** Follows the redirect of a watch and calls back for each line. */
  watch(path: string, onLine: (line: string) => void): Promise<() => void>;
  close(): void;
}

const readOf = (answer: Buffer): Read => ({
  bytes: answer.length,
  body: JSON.parse(answer.toString('utf8')) as Read['body'],
});

function createReader(local: LocalHost): Reader {
  const agent = new Agent({ keepAlive: true, ca: local.ca });
  const headers = { authorization: `Bearer ${local.token}` };
  const once = (method: string, path: string, body?: unknown): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const sent = httpsRequest(
        new URL(path, local.url),
        {
          agent,
          method,
          timeout: ANSWER_MAX_MS,
          headers: { ...headers, ...(text === undefined ? {} : { 'content-type': 'application/merge-patch+json' }) },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('error', reject);
          answer.on('end', () => {
            const whole = Buffer.concat(parts);
            if (answer.statusCode !== 200) reject(new Error(`${method} ${path}: ${answer.statusCode}`));
            else resolve(whole);
          });
        },
      );
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer in ${ANSWER_MAX_MS} ms`)));
      sent.on('error', reject);
      sent.end(text);
    });
  const watch = (url: URL, onLine: (line: string) => void, redirects: number): Promise<() => void> =>
    new Promise((resolve, reject) => {
      const sent = httpsRequest(url, { ca: local.ca, headers }, (answer) => {
        if (answer.statusCode === 307 && redirects > 0) {
          answer.resume();
          resolve(watch(new URL(String(answer.headers.location)), onLine, redirects - 1));
          return;
        }
        let rest = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) onLine(line);
        });
        answer.on('error', () => {});
        resolve(() => sent.destroy());
      });
      sent.on('error', reject);
      sent.end();
    });
  return {
    read: async (path) => readOf(await once('GET', path)),
    readText: async (path) => ({ bytes: (await once('GET', path)).length }),
    patch: async (path, body) => readOf(await once('PATCH', path, body)),
    watch: (path, onLine) => watch(new URL(path, local.url), onLine, 1),
    close: () => agent.destroy(),
  };
}

/** Reads a whole list, by pages or by the limit of one answer. */
async function listPages(reader: Reader, limit = PAGE_LIMIT): Promise<Read> {
  let bytes = 0;
  let token = '';
  for (let pages = 1; pages <= PAGES_MAX; pages += 1) {
    const query = new URLSearchParams({
      ...(limit === 0 ? {} : { limit: String(limit) }),
      ...(token === '' ? {} : { continue: token }),
    });
    const page = await reader.read(`/api/v1/nodes?${query}`);
    bytes += page.bytes;
    token = page.body.metadata?.continue ?? '';
    if (token === '') return { bytes, body: page.body };
  }
  throw new Error('a list without an end');
}

async function measure(
  report: Report,
  proxy: CountingProxy,
  of: { readonly what: string; readonly nodes: number; readonly samples: number },
  run: () => Promise<Pick<Read, 'bytes'>>,
): Promise<void> {
  await run();
  proxy.take();
  const times: number[] = [];
  let bytes = 0;
  for (let sample = 0; sample < of.samples; sample += 1) {
    const startedMs = performance.now();
    bytes += (await run()).bytes;
    times.push(performance.now() - startedMs);
  }
  const { readUnits, writeUnits } = proxy.take();
  report({
    ...of,
    p50Ms: rounded(percentile(times, 0.5)),
    p99Ms: rounded(percentile(times, 0.99)),
    bytesEach: Math.round(bytes / of.samples),
    readUnitsEach: rounded(readUnits / of.samples),
    writeUnitsEach: rounded(writeUnits / of.samples),
  });
}

async function measureWatch(report: Report, reader: Reader, proxy: CountingProxy): Promise<void> {
  const { body } = await reader.read('/api/v1/nodes?limit=1');
  const seen = new Map<string, () => void>();
  const end = await reader.watch(
    `/api/v1/nodes?watch=true&resourceVersion=${body.metadata?.resourceVersion ?? ''}`,
    (line) => {
      const { object } = JSON.parse(line) as { object: { metadata: { labels?: Record<string, string> } } };
      seen.get(object.metadata.labels?.['watched'] ?? '')?.();
    },
  );
  const times: number[] = [];
  for (let sample = 0; sample < WATCH_SAMPLES; sample += 1) {
    const value = `w${sample}`;
    const told = new Promise<void>((resolve) => seen.set(value, resolve));
    await reader.patch(`/api/v1/nodes/${nameOf(sample)}`, { metadata: { labels: { watched: value } } });
    const startedMs = performance.now();
    await Promise.race([
      told,
      pause(ANSWER_MAX_MS).then(() => Promise.reject(new Error(`${value} was not delivered`))),
    ]);
    times.push(performance.now() - startedMs);
  }
  await pause(2_000);
  proxy.take();
  await pause(QUIET_WATCH_MS);
  const { readUnits, writeUnits } = proxy.take();
  end();
  const perHour = 3_600_000 / QUIET_WATCH_MS;
  const lambdaDollars = WATCH_GIGABYTES * 3_600 * PRICES.lambdaGigabyteSecond;
  report({
    what: 'watch, from acknowledged write to event',
    samples: WATCH_SAMPLES,
    p50Ms: rounded(percentile(times, 0.5)),
    maxMs: rounded(Math.max(...times)),
    readUnitsPerQuietHour: Math.round(readUnits * perHour),
    writeUnitsPerQuietHour: Math.round(writeUnits * perHour),
    dollarsPerWatcherHour: rounded(
      lambdaDollars + readUnits * perHour * PRICES.readUnit + writeUnits * perHour * PRICES.writeUnit,
    ),
  });
}
